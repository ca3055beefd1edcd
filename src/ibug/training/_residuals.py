"""Out-of-sample residuals of the training rows by the model itself: its trees, without the row in their leaves.

With the trees as they are, a leaf of a boosting model has the value −rate · G/(H + λ), of the gradients and hessians of
the rows in it. Without the row itself it has another: these values sum to a prediction that the row has not pulled to
its target. The splits have seen the row, so that such residuals are too small; but where they are large, predictions of
new rows are far off. Their level comes from validation rows.

Random forests have trees that have not seen a row: those predict it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from ibug._compiled import refit as kernel
from ibug._progress import Progress
from ibug._typing import Floats
from ibug.leaves import Bagging, Boosting, LeafReader, RecipeError
from ibug.neighbors import JoinedIndex, LeafIndex, LeafNumbers, Residuals

#: The share of rate · Σ|g|/Σh of a tree, or of the value, by which a value may differ from the model's own: libraries
#: compute in single precision, a thousand times finer; a row too many or too few is far coarser in most leaves.
TOLERANCE = 1e-4
_ROUNDING = 1e-9  # of numbers as large as a raw prediction

# Codes of this many rows and trees, and leaves of this many trees, are worked on at a time.
_CODES_PER_CHUNK = 2**22
# Rows that one task sums; always the same, so that sums do not depend on the number of threads.
_ROWS_PER_TASK = 2**14


def own_residuals(
    reader: LeafReader,
    index: LeafIndex | JoinedIndex,
    y: Floats,
    sample_weight: Floats | None,
    *,
    X: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Residuals:
    """Return the residuals of the training rows by the model itself. Shapes: y (n_rows,); sample_weight (n_rows,)."""
    weightings, reasons = [sample_weight], []
    if sample_weight is not None and np.all(sample_weight == sample_weight[0]):
        weightings.append(None)  # the model may have been trained without them: its leaf values show which
    for weights in weightings:
        try:
            return _own_residuals(reader, index, y, weights, X, n_jobs, verbose)
        except RecipeError as reason:
            reasons.append(reason)
    return Residuals(
        None, "none", f"The model cannot compute out-of-sample residuals of its training rows: {reasons[0]}."
    )


def _own_residuals(
    reader: LeafReader,
    index: LeafIndex | JoinedIndex,
    y: Floats,
    sample_weight: Floats | None,
    X: Any,
    n_jobs: int | None,
    verbose: bool,
) -> Residuals:
    """Return the residuals of each target, or raise RecipeError where the model cannot compute them."""
    residuals, kind = np.empty(y.shape), "none"  # all models are of one kind
    for j, (column, found) in enumerate(zip(y.reshape(len(y), -1).T, residuals.reshape(len(y), -1).T, strict=True)):
        recipe, own = recipe_of(reader, column, sample_weight, j), index
        if y.ndim > 1 and reader.outputs is not None:  # the trees of one target have an index of their own
            trees = np.flatnonzero(reader.outputs == j)
            own = LeafNumbers(reader, reader.n_trees, trees).index_of(X, n_jobs=n_jobs, verbose=verbose)
        if recipe.refusal:
            raise RecipeError(recipe.refusal)
        if isinstance(recipe, Bagging):
            predictions, kind = _out_of_bag(recipe, own), "out-of-bag"
        else:
            predictions, kind = _leave_one_out(recipe, own, n_jobs, verbose), "leave-one-out"
        found[:] = column - predictions
    return Residuals(residuals, kind)


def recipe_of(reader: LeafReader, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting | Bagging:
    """Return how a model came to its leaf values, for one of its outputs."""
    try:
        given = reader.recipe(y, sample_weight, output)
    except RecipeError:
        raise
    except Exception as error:
        # A parameter or an attribute that is another one in a version of the library that is yet unknown.
        raise RecipeError(f"its parameters cannot be read ({type(error).__name__}: {error})") from error
    if sample_weight is not None and given.weights is not None and np.any((given.weights == 0) & (sample_weight > 0)):
        # Values of leaves that weigh nothing are compared with nothing, so that any model would pass.
        raise RecipeError("some of its weights are zero in single precision")
    return given


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Some trees: the codes of all rows' leaves, in the order of the index, and what belongs to each leaf."""

    codes: NDArray[Any]  # (n_trees, n_places), of which the first n_rows count
    trees: slice
    first: NDArray[np.int64]  # (n_trees + 1,)
    tree_of: NDArray[np.intp]  # (n_leaves,)
    values: Floats  # (n_leaves,)
    l2: Floats  # (n_leaves,)


def _chunks(recipe: Boosting | Bagging, index: LeafIndex | JoinedIndex) -> Iterator[_Chunk]:
    arrays = index.arrays()
    tiles, numbering, counts = arrays["tiles"], arrays["numbering"], arrays["leaf_counts"]
    if recipe.leaves.n_trees != len(counts):
        raise RecipeError("the values of some of its trees are not known")
    per_tree = max(tiles.shape[0] * tiles.shape[2], 2 * kernel.LANES * int(counts.max()))
    size = max(1, _CODES_PER_CHUNK // per_tree)
    l2 = np.broadcast_to(recipe.l2 if isinstance(recipe, Boosting) else 0.0, recipe.leaves.values.shape)
    for start in range(0, len(counts), size):
        stop = min(start + size, len(counts))
        codes = np.ascontiguousarray(tiles[:, start:stop].transpose(1, 0, 2)).reshape(stop - start, -1)
        first = np.concatenate([[0], np.cumsum(counts[start:stop], dtype=np.int64)])
        own, leaves = np.nonzero(numbering[start:stop] >= 0)
        given = np.empty(first[-1], np.int64)  # where the recipe has each leaf
        given[first[own] + numbering[start:stop][own, leaves]] = recipe.leaves.places(own + start, leaves)
        tree_of = np.repeat(np.arange(stop - start), counts[start:stop])
        yield _Chunk(codes, slice(start, stop), first, tree_of, recipe.leaves.values[given], l2[given])


def _leave_one_out(recipe: Boosting, index: LeafIndex | JoinedIndex, n_jobs: int | None, verbose: bool) -> Floats:
    """Return the prediction of each training row by the model's trees, without the row in their leaves."""
    order = index.arrays()["order"]
    n = len(order)
    weights = np.empty((0, n)) if recipe.weights is None else recipe.weights[order][None]
    loss = (recipe.single, recipe.loss.name, recipe.loss.parameter)
    targets = recipe.targets[order]
    raw = np.full(n, recipe.start)
    left_out = raw.copy()
    ranges = list(pairwise([*range(0, n, _ROWS_PER_TASK), n]))
    threads = min(effective_n_jobs(n_jobs), len(ranges))
    largest = _ROUNDING * (abs(recipe.start) + float(np.abs(recipe.targets).max()))
    with (
        Progress("taking rows out of their leaves", index.n_trees, enabled=verbose) as progress,
        Parallel(n_jobs=threads, require="sharedmem") as parallel,
    ):
        for chunk in _chunks(recipe, index):
            trees = (chunk.codes, chunk.first, chunk.values)
            if recipe.seen is None:
                rows = (targets, weights, *loss)
            else:
                seen = np.ascontiguousarray(recipe.seen(chunk.trees)[:, order], np.float64)
                rows = (targets, seen if recipe.weights is None else seen * weights, *loss)
            sums, sizes = np.zeros((len(chunk.values), 2)), np.zeros((len(chunk.first) - 1, 2))
            for some in (ranges[first : first + threads] for first in range(0, len(ranges), threads)):
                parts = [(np.zeros((len(sums), kernel.LANES, 2)), np.zeros_like(sizes)) for _ in some]
                parallel(
                    delayed(kernel.leaf_sums)(*trees, *rows, raw, start, stop, *part)
                    for (start, stop), part in zip(some, parts, strict=True)
                )
                for part, size in parts:
                    sums += part.sum(axis=1)
                    sizes += size
            _check(recipe, chunk, sums, sizes, largest)
            formula = (recipe.rates[chunk.trees], chunk.l2, recipe.l1, recipe.max_step)
            parallel(
                delayed(kernel.leave_out)(*trees, *rows, *formula, sums, start, stop, raw, left_out)
                for start, stop in ranges
            )
            progress.advance(chunk.trees.stop - chunk.trees.start)
    predictions = np.empty(n)
    predictions[order] = recipe.link(left_out)
    if not np.isfinite(predictions).all():
        raise RecipeError("some predictions without the row itself are not finite")
    return predictions


def _check(recipe: Boosting, chunk: _Chunk, sums: Floats, sizes: Floats, rounding: float) -> None:
    """Raise RecipeError unless the values of all rows together are the model's own."""
    gradient, hessian = sums.T
    shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - recipe.l1, 0.0)
    below = np.maximum(hessian + chunk.l2, np.finfo(float).tiny)
    steps = -shrunk / below
    if recipe.max_step > 0:
        steps = np.clip(steps, -recipe.max_step, recipe.max_step)
    rates = recipe.rates[chunk.trees][chunk.tree_of]
    usual = sizes[:, 0] / np.maximum(sizes[:, 1], np.finfo(float).tiny)  # the step of a row in each tree
    allowed = TOLERANCE * rates * np.maximum(usual[chunk.tree_of], np.abs(steps)) + rounding
    # Of a leaf whose rows weigh nothing, nothing is known.
    wrong = (hessian > 0) & ~(np.abs(rates * steps - chunk.values) <= allowed)
    if not wrong.any():
        return
    tree = chunk.trees.start + int(chunk.tree_of[np.argmax(wrong)])
    cause = recipe.suspects or "from another start, say"
    raise RecipeError(
        f"the values of its leaves do not follow from these rows, from tree {tree} on. It was trained on other rows, "
        f"targets or weights, or in another way than is known ({cause})"
    )


def _out_of_bag(recipe: Bagging, index: LeafIndex | JoinedIndex) -> Floats:
    """Return the mean of the trees that have not seen a row, for each row."""
    order = index.arrays()["order"]
    n = len(order)
    targets = recipe.targets[order]
    weights = np.ones(n) if recipe.weights is None else recipe.weights[order]
    total, times = np.zeros(n), np.zeros(n, np.int64)
    largest, samples = float(np.abs(targets).max()), recipe.samples()
    for chunk in _chunks(recipe, index):
        for tree, number in enumerate(range(chunk.trees.start, chunk.trees.stop)):
            drawn = np.bincount(samples[number], minlength=n)[order]
            codes = chunk.codes[tree, :n]
            values = chunk.values[chunk.first[tree] : chunk.first[tree + 1]]
            below = np.bincount(codes, drawn * weights, len(values))
            sums = np.bincount(codes, drawn * weights * targets, len(values))
            known = below > 0
            if not np.allclose(sums[known] / below[known], values[known], rtol=0, atol=TOLERANCE * 1e-3 * largest):
                raise RecipeError(
                    "the values of its leaves are not the means of these rows: it was trained on other rows, targets "
                    "or weights, or for another criterion"
                )
            unseen = drawn == 0
            total[unseen] += values[codes[unseen]]
            times += unseen
    if not times.all():
        raise RecipeError(f"{np.sum(times == 0)} of its training rows are out of no bag: it has too few trees")
    predictions = np.empty(n)
    predictions[order] = recipe.link(total / times)
    return predictions
