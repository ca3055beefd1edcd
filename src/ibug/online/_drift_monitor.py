"""Data drift that is looked for again and again: one alpha for all nights together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from ibug._read_only import keeps_read_only
from ibug._typing import Floats, Integers
from ibug._validation import check_probability, check_targets, require
from ibug.exceptions import InvalidInputError
from ibug.metrics import pit
from ibug.persistence import replacing
from ibug.rule import joined, most_needed

#: Stakes on p-values that are too low or too high (2p - 1), and too often near both ends or in the middle (P2(2p - 1)).
STAKES = np.array([-0.95, -0.4, -0.1, 0.1, 0.4, 0.95])
#: Rows whose p-values are computed at once.
_CHUNK = 512
#: Cells of a grid, which decides what counts as equal.
_N_CELLS = 1000
_NOT_A_LOG = "it is not a log of ibug.online.DriftMonitor, or it is damaged"


@dataclass(frozen=True, eq=False)
class BettingTest:
    r"""A test of exchangeability by betting against conformal p-values; it is not changed.

    The p-value of each row is its rank among *all* rows so far, calibration rows and earlier new rows, with ties broken
    at random. If all are exchangeable, these p-values are independent and uniform. (Ranks among the calibration rows
    alone would depend on each other through them.) A stake ε turns 1 into :math:`1 + \varepsilon b(p)`, with
    :math:`\int b = 0`: the wealth is a martingale, and exceeds 1/alpha, ever, with probability alpha at most (Ville).

    Drift may begin on any night: in night t, 1/(t + 1) of the cash that is left is divided between the stakes.
    """

    edges: Floats  # (n_cells - 1,) the inner edges of the grid, which must not depend on the rows that are ranked
    counts: Integers  # (n_cells,) the rows so far
    cash: float  # what is not at stake yet
    log_capital: Floats  # (n_stakes,) the logarithm of the wealth of each stake; -inf before the first night
    log_highest: float = 0.0  # the logarithm of the highest wealth so far
    n_rows: int = 0  # the new rows so far
    n_nights: int = 0  # the nights that had some

    @classmethod
    def against(cls, edges: Floats, reference: Floats) -> BettingTest:
        """Return the test before the first night. Shapes: edges (n_cells - 1,); reference (n_rows,)."""
        counts = _counted(np.searchsorted(edges, reference, "right"), len(edges) + 1)
        return cls(edges, counts, 1.0, np.full(2 * len(STAKES), -np.inf))

    @property
    def log_wealth(self) -> float:
        """The logarithm of cash and capital together."""
        return float(np.logaddexp(np.log(self.cash), logsumexp(self.log_capital)))

    def p_values(self, values: Floats, rng: np.random.Generator) -> Floats:
        """Return the p-value of each row among those before it, (n_rows,), in the order given.

        Shapes: values (n_rows,).
        """
        cells, uniform = np.searchsorted(self.edges, values, "right"), rng.uniform(size=len(values))
        counts, found = self.counts.copy(), []
        for start in range(0, len(cells), _CHUNK):
            chunk = cells[start : start + _CHUNK]
            earlier = np.tri(len(chunk), k=-1, dtype=bool)
            lower = (np.cumsum(counts) - counts)[chunk] + np.sum(earlier & (chunk < chunk[:, None]), axis=1)
            equal = counts[chunk] + np.sum(earlier & (chunk == chunk[:, None]), axis=1)
            n_before = counts.sum() + np.arange(len(chunk))
            found.append((lower + uniform[start : start + _CHUNK] * (equal + 1)) / (n_before + 1))
            counts += _counted(chunk, len(counts))
        return np.concatenate(found)

    def after(self, values: Floats, rng: np.random.Generator) -> BettingTest:
        """Return the test after the rows of one night, which are ranked in random order. Shapes: values (n_rows,)."""
        if not len(values):
            return self
        values = rng.permutation(values)
        z = 2 * self.p_values(values, rng) - 1
        n_nights = self.n_nights + 1
        share = self.cash / (n_nights + 1)
        cash, capital = self.cash - share, np.logaddexp(self.log_capital, np.log(share / len(self.log_capital)))
        highest = self.log_highest
        for start in range(0, len(z), _CHUNK):
            bets = np.column_stack([z[start : start + _CHUNK], (3 * z[start : start + _CHUNK] ** 2 - 1) / 2])
            path = capital + np.cumsum(np.log1p((bets[:, :, None] * STAKES).reshape(len(bets), -1)), axis=0)
            highest = max(highest, float(np.logaddexp(np.log(cash), logsumexp(path, axis=1)).max()))
            capital = path[-1]
        counts = self.counts + _counted(np.searchsorted(self.edges, values, "right"), len(self.counts))
        return BettingTest(self.edges, counts, cash, capital, highest, self.n_rows + len(values), n_nights)

    def state(self) -> dict[str, Any]:
        """Return plain values, which `from_state` takes."""
        filled = np.flatnonzero(self.counts)
        return {
            "edges": self.edges.tolist(),
            "counts": [filled.tolist(), self.counts[filled].tolist()],
            "cash": self.cash,
            "log_capital": self.log_capital.tolist() if self.n_nights else None,
            "log_highest": self.log_highest,
            "rows": self.n_rows,
            "nights": self.n_nights,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> BettingTest:
        """Return the test that has this state."""
        edges, cells, counts = np.array(state["edges"], float), *(np.array(part, int) for part in state["counts"])
        numbers = float(state["cash"]), float(state["log_highest"])
        n_rows, n_nights = (_count(state[name]) for name in ("rows", "nights"))
        capital = np.full(2 * len(STAKES), -np.inf) if not n_nights else np.array(state["log_capital"], float)
        require(
            edges.ndim == 1
            and np.all(np.diff(edges) > 0)
            and cells.ndim == 1
            and cells.shape == counts.shape
            and np.all((cells >= 0) & (cells <= len(edges)) & (counts >= 0))
            and capital.shape == (2 * len(STAKES),)
            and np.isfinite([*edges, *numbers, *(capital if n_nights else ())]).all()
            and 0 < numbers[0] <= 1
            and numbers[1] >= 0,
            _NOT_A_LOG,
        )
        every = np.bincount(cells, counts, len(edges) + 1).astype(np.int64)
        return cls(edges, every, numbers[0], capital, numbers[1], n_rows, n_nights)


@keeps_read_only
class DriftMonitor:
    """A test for data drift that may be asked every night: the probability of ever a false alarm is alpha at most.

    ``u.monitor(X)`` is one test: of a hundred nights without data drift, one has a false alarm at alpha = 0.01. Here
    each night adds to the evidence of those before. For the similarity to the training data, the predictions and, with
    observed values, the place of these in their distributions (PIT), each new row is ranked among the validation rows
    and *all* earlier new rows, and a fortune is bet on these ranks not being uniform. Without drift it exceeds a bound
    only with probability alpha, over any number of nights.

    Validation rows begin the ranks where new rows are like them, as in ``u.monitor``: with `prefit`, or after
    ``recalibrate``. Otherwise the first night does: a model that was trained here, or one after ``update``, has no rows
    for that, and what is found is a change since then.

    It is about rows that are exchangeable without drift. Rows of one night may come in any order, but weekends that
    differ from weekdays are drift, and an alarm stays. After ``recalibrate`` or ``update`` begin a new one.

    Parameters
    ----------
    estimator : IBUGRegressor
        The fitted model, which is not changed.
    random_state : int, default=0
        For the order of the rows and the ranks of equal values.

    Attributes
    ----------
    tests_ : dict of str to BettingTest
        The tests by name: ``similarity``, ``prediction`` (with several targets ``prediction 0`` and so on) and ``pit``.
    history_ : list of float
        The p-value after each night.

    References
    ----------
    Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, second edition (2022), part III.

    Examples
    --------
    >>> from ibug import IBUGRegressor
    >>> from ibug.online import DriftMonitor
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(3000, noise=1.0, random_state=0)
    >>> u = IBUGRegressor(random_state=0).fit(X[:500], y[:500]).recalibrate(X[500:1000], y[500:1000])
    >>> nights = DriftMonitor(u)
    >>> for night in range(1000, 3000, 200):
    ...     nights = nights.observe(X[night : night + 200], y[night : night + 200])
    >>> nights.drifted()
    False
    >>> nights.observe(X[:200] + 0.3).drifted()
    True
    """

    def __init__(self, estimator: Any, random_state: int = 0) -> None:
        if not all(hasattr(estimator, name) for name in ("monitor", "batches")):
            raise InvalidInputError(f"An IBUGRegressor is expected; got {type(estimator).__name__}.")
        check_is_fitted(estimator)
        self.estimator, self.random_state = estimator, _count(random_state)
        reference, targets = estimator.rule_.reference, np.asarray(estimator.training_targets_)
        columns = targets.reshape(len(targets), -1).T
        exact = {name: one for name, one in reference.samples.items() if not reference.tolerance.get(name)}
        known = exact.get("prediction", np.empty((0, len(columns)))).T
        self.tests_ = {"similarity": BettingTest.against(_similarity_grid(), exact.get("similarity", np.empty(0)))}
        for name, column, sample in zip(_names(len(columns)), columns, known, strict=True):
            self.tests_[name] = BettingTest.against(_grid_of(column), sample)
        if len(columns) == 1:
            grid = np.linspace(0, 1, _N_CELLS + 1)[1:-1]
            self.tests_["pit"] = BettingTest.against(grid, exact.get("pit", np.empty(0)))
        self.history_: list[float] = []

    def __repr__(self) -> str:
        lines = [f"{len(self.history_)} nights, p = {self.p_value:.2g} for all of them together"]
        for name, p_value in self.p_values.items():
            lines.append(f"{name:12} p = {p_value:<8.2g} {self.tests_[name].n_rows:,} rows")
        return "\n".join(lines)

    @property
    def p_value(self) -> float:
        """The smallest alpha at which there has been an alarm; it never rises."""
        return min(self.p_values.values())

    @property
    def p_values(self) -> dict[str, float]:
        """The p-value of each test, corrected for their number."""
        n = len(self.tests_)
        return {name: float(min(1.0, n * np.exp(-test.log_highest))) for name, test in self.tests_.items()}

    def drifted(self, alpha: float = 0.01) -> bool:
        """Return whether there has been an alarm.

        Parameters
        ----------
        alpha : float, default=0.01
            The probability of ever an alarm without data drift, at most: over all nights and tests.
        """
        return self.p_value <= check_probability(alpha, "alpha")

    def observe(self, X: Any, y: ArrayLike | None = None) -> DriftMonitor:
        """Add the rows of a night, each only once, and return this monitor.

        Parameters
        ----------
        X, y : array-like or data frame of shape (n_rows, n_features), array-like of shape (n_rows,), optional
            Rows that the model has not been trained on, and their observed values. Default of y: None.
        """
        if y is not None:
            if "pit" not in self.tests_:
                raise InvalidInputError("DriftMonitor with y is for one target; leave y out.")
            y = check_targets(X, y, "y")
        found = monitored_values(self.estimator, X, y)
        predictions = found.pop("prediction")
        columns = predictions.reshape(len(predictions), -1).T
        found |= zip(_names(len(columns)), columns, strict=True)
        rng = np.random.default_rng([self.random_state, len(self.history_)])
        self.tests_ |= {name: self.tests_[name].after(values, rng) for name, values in found.items()}
        self.history_ = [*self.history_, self.p_value]
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the log as JSON, without the model; a file is replaced when the new one is complete.

        Parameters
        ----------
        path
            The file, ``drift.json`` say.
        """
        tests = {name: test.state() for name, test in self.tests_.items()}
        model = _fingerprint(self.estimator)
        log = {"ibug_drift_log": 1, "model": model, "random_state": self.random_state, "history": self.history_}
        with replacing(path) as file:
            file.write(json.dumps({**log, "tests": tests}, allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | PathLike[str], estimator: Any) -> DriftMonitor:
        """Return the monitor that `save` has written, to go on with it.

        Parameters
        ----------
        path, estimator
            The file, and the same model as before.
        """
        monitor, text = cls(estimator), Path(path).read_bytes()
        try:
            log = json.loads(text)
            require(log["ibug_drift_log"] == 1, _NOT_A_LOG)
            random_state = _count(log["random_state"])
            tests = {name: BettingTest.from_state(state) for name, state in log["tests"].items()}
            history = [float(p) for p in log["history"]]
            require(all(0 <= p <= 1 for p in history), _NOT_A_LOG)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"{path} cannot be read: {_NOT_A_LOG}. Choose another name.") from error
        if log["model"] != _fingerprint(estimator) or list(tests) != list(monitor.tests_):
            raise InvalidInputError(
                f"{path} is the log of another model, or of this one before recalibrate or update, and its rows cannot "
                "be compared with new ones. Begin another log: choose another name, or remove the file."
            )
        monitor.random_state, monitor.tests_, monitor.history_ = random_state, tests, history
        return monitor


def monitored_values(estimator: Any, X: Any, y: Floats | None) -> dict[str, Floats]:
    """Return what is compared: ``similarity`` (n,), ``prediction`` (n,) or (n, n_targets), and with y ``pit`` (n,).

    Shapes: X, y (n_rows, n_features).
    """
    k, rule = estimator.k_, estimator.rule_
    needs = {"targets": k} if y is None else most_needed(rule.needs, {"targets": k})
    similarity, prediction, distributions = [], [], []
    for batch in estimator.batches(X, needs):
        similarity.append(batch.affinities[:, :k].mean(axis=1) / batch.n_trees)
        prediction.append(batch.mean)
        if y is not None:
            distributions.append(rule.distribution(batch))
    values = {"similarity": np.concatenate(similarity), "prediction": np.concatenate(prediction)}
    if y is not None:
        values["pit"] = pit(y, joined(distributions))
    return values


def _names(n_targets: int) -> list[str]:
    return ["prediction"] if n_targets == 1 else [f"prediction {number}" for number in range(n_targets)]


def _counted(cells: NDArray[np.intp], n_cells: int) -> Integers:
    return np.bincount(cells, minlength=n_cells).astype(np.int64)


def _count(value: Any) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 0:
        raise InvalidInputError(f"A whole number from 0 on is expected; got {value!r}.")
    return int(value)


def _similarity_grid() -> Floats:
    """Return edges that are fine where scores are small as well: many deep trees share few leaves."""
    return np.unique(np.concatenate([np.linspace(0, 1, _N_CELLS + 1)[1:-1], np.geomspace(1e-4, 1, _N_CELLS)]))


def _grid_of(targets: Floats) -> Floats:
    """Return edges by quantiles and by distance: predictions of targets of few values lie between these."""
    levels = np.linspace(0, 1, _N_CELLS // 2)
    return np.unique(
        np.concatenate([np.quantile(targets, levels), np.linspace(targets.min(), targets.max(), len(levels))])
    )


def _fingerprint(estimator: Any) -> str:
    """Return a hash of what makes the compared values comparable: the training targets, k, and the validation rows."""
    digest = hashlib.sha256(f"{estimator.k_} {estimator.source_.index.n_trees}".encode())
    reference = estimator.rule_.reference
    for array in (estimator.training_targets_, reference.similarity, reference.prediction, reference.pit):
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()
