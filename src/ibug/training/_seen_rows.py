"""Which rows a model was trained on: new rows that are training rows, and training rows that are other ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from ibug._typing import Floats, Rows
from ibug.leaves import Bagging, Boosting, LeafReader, NotRedoneError, RepeatedReader, is_pandas
from ibug.training._own_residuals import recipe_of

Hashes = NDArray[np.uint64]

# This many new rows are looked up: enough to tell a tenth of them from chance.
_LOOKED_UP = 1000
# Training rows are hashed in chunks of about this many numbers: 32 MB.
_NUMBERS_PER_CHUNK = 2**22
# The share of equal rows that is suspicious, beyond that of training rows which have a twin among themselves.
SUSPICIOUS_SHARE = 0.1
# The number of rows that tell whether the values of leaves follow from them, at most and at least.
_ROWS_TO_FOLLOW, _LEAST_ROWS = 4000, 150
# Where the mean error is a larger share of its standard deviation, an outlier or another unit governs leaf values.
_OFF = 0.3
# The number of standard errors beyond which a difference is no chance.
_CERTAIN = 4.0
# The number of trees whose leaves are counted; those that differ need this number of splits.
_ROUNDING = 1e-4
_TREES_TO_COUNT, _SPLITS_TO_COUNT = 10, 4


def seen_share(train: Rows, new: Rows) -> float:
    """Return the share of the new rows that are training rows, target and all; 0 where chance may explain it.

    Data may well have equal rows. So the share counts only if it exceeds that of training rows which have a twin among
    the training rows by 10 percentage points, and by three standard errors. Of many new rows a thousand are looked up.
    Rows of a kind that cannot be compared count as new.
    """
    (X, y), (X_new, y_new) = train, new
    if y.ndim > 1:  # the first of several targets tells as much
        y, y_new = y[:, 0], y_new[:, 0]
    chosen = np.unique(np.linspace(0, len(y_new) - 1, _LOOKED_UP).astype(np.intp))
    targets = y_new[chosen]
    if X_new is X and np.array_equal(y, y_new):
        return 1.0
    known = np.isin(targets, y)  # most new targets are others, and rows need not be hashed
    if known.mean() <= SUSPICIOUS_SHARE:
        return 0.0
    wanted = row_hashes(_safe_indexing(X_new, chosen), targets)
    candidates = np.flatnonzero(np.isin(y, targets[known]))
    hashes = _in_chunks(X, y, candidates)
    if wanted is None or hashes is None:
        return 0.0
    share = float(np.isin(wanted, hashes).mean())
    if share <= SUSPICIOUS_SHARE:
        return 0.0
    usual = _share_of_twins(X, y)
    noise = 3 * np.sqrt(usual * (1 - usual) / len(chosen))
    return share if share > usual + SUSPICIOUS_SHARE + noise else 0.0


def _share_of_twins(X: Any, y: Floats) -> float:
    """Return the share of the rows that are equal to another one."""
    hashes = _in_chunks(X, y, np.arange(len(y)))
    assert hashes is not None, "some of these rows were hashed before"
    _, times = np.unique(hashes, return_counts=True)
    return float(times[times > 1].sum() / len(hashes))


def _in_chunks(X: Any, y: Floats, rows: NDArray[np.intp]) -> Hashes | None:
    """Return the hashes of some rows, (n_rows,); None for rows of a kind that cannot be hashed."""
    parts: list[Hashes] = []
    size = max(1, _NUMBERS_PER_CHUNK // max(1, X.shape[1]))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        hashes = row_hashes(_safe_indexing(X, some), y[some])
        if hashes is None:
            return None
        parts.append(hashes)
    return np.concatenate(parts)


def row_hashes(X: Any, y: Floats) -> Hashes | None:
    """Return one number per row, the same for rows with the same values and target, (n_rows,). Shapes: y (n_rows,)."""
    multipliers = np.random.default_rng(0).integers(2**63, size=X.shape[1] + 1, dtype=np.uint64) * 2 + 1
    total = multipliers[-1] * _of_numbers(y)
    try:
        for place, column in enumerate(_columns(X)):
            total += multipliers[place] * column
    except (TypeError, ValueError):  # of values that are no numbers and cannot be hashed, lists say
        return None
    return _mixed(total)


def _columns(X: Any) -> Iterator[Hashes]:
    """Yield the hashes of the values of one column after another, (n_rows,) each."""
    if is_pandas(X):
        from pandas.util import hash_array

        for place, dtype in enumerate(X.dtypes.tolist()):
            column = X.iloc[:, place]
            if getattr(dtype, "kind", "O") in "biuf":
                yield _of_numbers(column.to_numpy(np.float64, na_value=np.nan))
            else:  # categories, texts, dates
                yield hash_array(column.astype(object).to_numpy(), categorize=True)
    elif hasattr(X, "hash_rows"):  # polars
        yield X.hash_rows(seed=0).to_numpy()
    elif issparse(X):
        yield _of_numbers(X @ np.random.default_rng(1).random(X.shape[1]))
    else:
        values = np.asarray(X, np.float64)
        for place in range(values.shape[1]):
            yield _of_numbers(values[:, place])


def _of_numbers(values: Any) -> Hashes:
    numbers = np.ascontiguousarray(values, np.float64) + 0.0  # no negative zero
    numbers[np.isnan(numbers)] = np.nan  # which has one form then
    return _mixed(numbers.view(np.uint64))


def _mixed(bits: Hashes) -> Hashes:
    """Spread differences over all bits, as SplitMix64 does."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def fills_leaves(reader: LeafReader, X: Any, weights: Floats | None = None) -> bool:
    """Tell whether rows fill the leaves of the first trees just as the model's training rows did.

    Shapes: weights (n_rows,).
    """
    reader = reader.inner if isinstance(reader, RepeatedReader) else reader
    sizes = reader.leaf_sizes(_TREES_TO_COUNT)
    if sizes is None or sum(int(np.sum(size > 0)) - 1 for size in _distinct(sizes)) < _SPLITS_TO_COUNT:
        return False
    n = X.shape[0]
    total = sizes[0].sum()
    ways = [None] if weights is None else [None, weights]
    ways = [one for one in ways if np.isclose(total, n if one is None else one.sum(), rtol=_ROUNDING, atol=0)]
    if not ways:
        return False
    leaves = reader.read_leaves(X, trees=np.arange(len(sizes)))
    return any(
        all(
            np.allclose(np.bincount(own, one, len(size))[: len(size)], size, rtol=0, atol=_ROUNDING * total)
            for own, size in zip(leaves.T, sizes, strict=True)
        )
        for one in ways
    )


def _distinct(sizes: list[Floats]) -> list[Floats]:
    return list({size.tobytes(): size for size in sizes}.values())


class Follows(NamedTuple):
    """How far the values of a model's leaves follow from the targets of some rows."""

    share: float  # 1 or more of training rows, on average; the less the better a model fits noise, of other rows
    error: float  # its standard error
    least: float  # what training rows have at least, on average; 0 where that is not known

    def is_below(self, other: Follows | float) -> bool:
        """Tell whether the share is below another one, or a number, beyond chance."""
        share, error = (other.share, other.error) if isinstance(other, Follows) else (other, 0.0)
        return self.share + _CERTAIN * float(np.hypot(self.error, error)) < share


def follows_from(reader: LeafReader, rows: Rows, weights: Floats | None = None) -> Follows | None:
    """Return how far the values of a model's leaves follow from some rows; None where that is not known.

    A leaf has the value that its training rows pull it to: of boosting, −rate · G/(H + λ). So Σ −g·v of training rows
    is Σ h·v²/rate at least, in each tree, and that of a random part of them is so on average. Rows that the model has
    not seen pull less, as splits and values fit noise of the training rows, the more so in late trees: the second half
    counts. Of a forest, v is what the last split adds to the value of the node above.

    Shapes: weights (n_rows,).
    """
    X, y = rows
    counted = np.arange(len(y)) if weights is None else np.flatnonzero(weights > 0)
    if len(counted) < _LEAST_ROWS:
        return None
    some = counted[np.unique(np.linspace(0, len(counted) - 1, _ROWS_TO_FOLLOW).astype(np.intp))]
    X, y, weights = _safe_indexing(X, some), y[some], None if weights is None else weights[some]
    reader = reader.inner if isinstance(reader, RepeatedReader) else reader
    leaves, predicted = (
        reader.read_leaves(X).astype(np.intp),
        np.asarray(reader.predict(X), np.float64).reshape(len(y), -1),
    )
    found = []
    for j, column in enumerate(y.reshape(len(y), -1).T):
        own = leaves if reader.outputs is None else leaves[:, reader.outputs == j]
        try:
            recipe = recipe_of(reader, column, weights, None if y.ndim == 1 else j)
            pulls, steps, ends = _pulls(recipe, own)
        except NotRedoneError:
            continue
        known = np.allclose(ends, predicted[:, j], rtol=1e-3, atol=1e-3 * np.std(predicted[:, j]))
        errors = column - predicted[:, j]
        if known and steps.sum() > 0 and abs(np.mean(errors)) <= _OFF * np.std(errors):
            share = pulls.sum() / steps.sum()
            error = np.sqrt(np.sum((pulls - share * steps) ** 2)) / steps.sum()
            least = recipe.drawn if isinstance(recipe, Bagging) else float(not recipe.sampled)
            found.append(Follows(float(share), float(error), least))
    return max(found, default=None)


def _pulls(recipe: Boosting | Bagging, leaves: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
    """Return Σ −g·v and Σ h·v²/rate of the trees that count, and the prediction, (n_rows,) each."""
    n, n_trees = leaves.shape
    if recipe.leaves.n_trees != n_trees:
        raise NotRedoneError("it does not tell the values of all trees")
    weights = np.ones(n) if recipe.weights is None else recipe.weights
    pulls, steps = np.zeros(n), np.zeros(n)
    raw = np.zeros(n) if isinstance(recipe, Bagging) else np.full(n, recipe.start)
    for tree in range(n_trees):
        value = recipe.leaves.at(np.full(n, tree), leaves[:, tree])
        if isinstance(recipe, Bagging):
            above = recipe.parents.at(np.full(n, tree), leaves[:, tree])
            bounded = weights * _bounded(value - above)
            pulls += bounded * (recipe.targets - above)
            steps += bounded * (value - above)
            raw += value / n_trees
            continue
        if tree >= max(n_trees // 2, 1) and recipe.rates[tree] > 0:
            gradient, hessian = recipe.loss.slopes(raw, recipe.targets)
            bounded = _bounded(value)
            pulls -= bounded * gradient * weights
            steps += bounded * hessian * value / recipe.rates[tree] * weights
        raw += value
    return pulls, steps, recipe.link(raw)


def _bounded(values: Floats) -> Floats:
    """Return leaf values, no larger than usual ones, so that outliers, which only some of the rows have, count less."""
    usual = float(np.median(np.abs(values)))
    return np.clip(values, -usual, usual) if usual > 0 else np.sign(values)
