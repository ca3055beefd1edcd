"""The kinds of cases: each takes a seed, and says how it ended."""

import tempfile
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

import ibug
from benchmarks.fuzz import forged
from ibug import IBUGRegressor, LeafIndex
from ibug.exceptions import IBUGError, InvalidInputError
from ibug.neighbors import instruction_sets

#: With weights and few rows LightGBM may choose a split without rows on one side: the model alone cannot be trained.
_LIGHTGBM_FAILS = "Check failed: (best_split_info.left_count) > (0)"


class UnexpectedError(Exception):
    """A case has ended as it must not."""


@cache
def rows():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.iloc[:150].assign(letter=np.array(["low", "middle", "high"])[np.arange(150) % 3])
    return X.astype({"letter": "category"}), y.to_numpy()[:150]


@cache
def saved():
    """Return small files of several kinds of models; boosters' own formats are parsed by their libraries."""
    X, y = rows()
    numbers = X.drop(columns="letter")
    models = [
        (RandomForestRegressor(3, max_leaf_nodes=6, random_state=0), numbers),
        (ExtraTreesRegressor(3, max_leaf_nodes=6, random_state=0), numbers),
        (GradientBoostingRegressor(n_estimators=3, random_state=0), numbers),
        (HistGradientBoostingRegressor(max_iter=3, random_state=0), numbers),
        (HistGradientBoostingRegressor(max_iter=3, categorical_features="from_dtype", random_state=0), X),
    ]
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for i, (model, table) in enumerate(models):
            options = {"distribution": "normal"} if i % 2 else {"conformal": "scale"}
            u = IBUGRegressor(model.fit(table[:100], y[:100]), prefit=True, k=7, random_state=0, **options)
            u.fit(table[:100], y[:100], X_val=table[100:], y_val=y[100:])
            path = Path(folder) / f"{i}.ibug"
            u.save(path, compress=False)
            made.append((path.read_bytes(), table[:4]))
    return made


def file_case(rng):
    """Load a forged file, and predict with what was loaded."""
    data, table = saved()[rng.integers(len(saved()))]
    with tempfile.NamedTemporaryFile(suffix=".ibug") as file:
        file.write(forged.change_file(data, rng))
        file.flush()
        try:
            u = ibug.load(file.name, verify=bool(rng.integers(2)))
        except IBUGError:
            return "refused"
        except MemoryError as error:
            raise UnexpectedError("MemoryError") from error
        except Exception as error:
            raise UnexpectedError(f"load raises {type(error).__name__}: {error}") from error
    try:
        u.predict_interval(table)
        u.kneighbors(table)
    except MemoryError as error:
        raise UnexpectedError("MemoryError when predicting") from error
    except Exception:  # a strange parameter may be found out only when it is used: as an error, not as a crash
        return "loaded, refuses to predict"
    return "predicts"


def array_case(rng):
    """Make an index of forged arrays, and ask it."""
    n_rows, n_trees = int(rng.choice([1, 15, 64, 65, 700])), int(rng.integers(1, 20))
    leaves = rng.integers(0, rng.choice([2, 9, 300]), (n_rows, n_trees)).astype(np.int32)
    arrays = {name: array.copy() for name, array in LeafIndex.build(leaves).arrays().items()}
    name = list(arrays)[rng.integers(len(arrays))]
    arrays[name] = np.ascontiguousarray(forged.change_array(arrays[name], rng))
    if rng.random() < 0.3:
        arrays["tiles"][...] = rng.integers(0, 3, arrays["tiles"].shape)
    try:
        index = LeafIndex.from_arrays(arrays)
        for instruction_set in instruction_sets():
            _, found = index.query(leaves[:5], min(5, len(index)), instruction_set=instruction_set)
            if found.size and not -1 <= found.min() <= found.max() < len(index):
                raise UnexpectedError(f"rows from {found.min()} to {found.max()} of {len(index)}")
    except IBUGError:
        return "refused"
    return "answers"


@cache
def estimator():
    X, y = rows()
    numbers = X.drop(columns="letter")
    model = HistGradientBoostingRegressor(max_iter=3, random_state=0).fit(numbers, y)
    return IBUGRegressor(model, prefit=True, k=7, distribution="normal", calibrate=False).fit(numbers, y), numbers


def row_case(rng):
    """Ask for rows with strange values, types and shapes."""
    u, table = estimator()
    asked = table.iloc[: rng.integers(0, 4)].copy().astype(object if rng.random() < 0.4 else float)
    for _ in range(rng.integers(0, 4)):
        if not asked.size:
            break
        at = tuple(rng.integers(asked.shape))
        strange = forged.STRANGE[rng.integers(len(forged.STRANGE))]
        texts = asked.dtypes.iloc[at[1]].kind == "O"
        asked.iat[at] = str(strange) if texts else forged.FLOATS[rng.integers(len(forged.FLOATS))]
    if rng.random() < 0.2:
        asked = asked.iloc[:, rng.permutation(asked.shape[1])[: rng.integers(0, 11)]]
    try:
        interval = u.predict_interval(asked)
    except (ValueError, TypeError, OverflowError):
        return "refused"
    if not np.isfinite(interval).all():
        raise UnexpectedError("an interval that is not finite")
    return "answers"


def options_case(seed):
    """Fit a regressor with random options, and check what must hold of every one.

    Returns how the case ended and, where coverage is guaranteed, the number of new rows inside their intervals.
    """
    from benchmarks.fuzz import invariants, options  # every booster, which the other kinds do without

    case = options.draw(seed)
    with warnings.catch_warnings(record=True) as told, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always", RuntimeWarning)
        try:
            u = case.fit()
        except InvalidInputError as error:
            return f"refused: {' '.join(str(error).split()[:12])} …"
        except Exception as error:
            if _LIGHTGBM_FAILS in str(error):
                return "LightGBM cannot train this model"
            raise UnexpectedError(f"fit raises {type(error).__name__}: {error}\n  {case}") from error
        try:
            inside = invariants.check(case, u)
        except Exception as error:
            raise UnexpectedError(f"{type(error).__name__}: {error}\n  {case}") from error
    ours = [str(one.message) for one in told if "/ibug/" in one.filename and issubclass(one.category, RuntimeWarning)]
    if ours:
        raise UnexpectedError(f"warnings of NumPy: {Counter(ours)}\n  {case}")
    return "holds" if inside is None else f"holds; inside: {inside}"


KINDS = {"files": file_case, "arrays": array_case, "rows": row_case}


def run(kind, seed):
    """Run one case, and return how it ended; UnexpectedError tells of one that ended as it must not."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if kind == "options":
            return options_case(seed)
        return KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind)]))
