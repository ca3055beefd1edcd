"""Intervals that keep their coverage on a stream of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ibug._read_only import read_only
from ibug._typing import Floats
from ibug._validation import check_probability, check_targets, require
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError
from ibug.persistence import save


class AdaptiveIntervals:
    """Intervals for a stream of rows: each observed value moves them, so that their coverage holds.

    An end of an interval is a quantile of the predicted distribution, at a level that follows the observed values:
    adaptive conformal inference with aggregated step sizes, each end by itself. Nothing is trained, and the estimator
    does not change.

    **The guarantee** needs no assumption about the data. After T rows, observed in batches of at most B, the share of
    observed values above the upper end differs from (1 − coverage)/2 by at most (b + 0.05 B)/(0.05 T), and so does that
    below the lower end; b is the largest distance so far between the normal score of an observed value and its
    estimate, a few units where distributions are about right. It is about the long run: at a given time more or fewer
    may be inside.

    Parameters
    ----------
    estimator : fitted estimator with ``predict_dist``
        IBUGRegressor, CBURegressor, ProbabilisticEnsemble, or one of your own.
    coverage : float, default=0.9
        The share of observed values that intervals shall hold.

    Attributes
    ----------
    n_observed_ : int
        The number of rows observed so far.
    n_inside_ : int
        Of these, the rows whose observed value was inside the interval.

    References
    ----------
    Gibbs and Candès, *Conformal inference for online prediction with arbitrary distribution shifts*, JMLR 25 (2024).
    Angelopoulos, Candès and Tibshirani, *Conformal PID control for time series prediction*, NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug import AdaptiveIntervals, IBUGRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> u = IBUGRegressor(random_state=0).fit(X[:300], y[:300])
    >>> stream = AdaptiveIntervals(u, coverage=0.9)
    >>> for row, value in zip(X[300:], y[300:]):
    ...     lower, upper = stream.predict_interval([row])[0]
    ...     stream = stream.observe([row], [value])
    >>> bool(stream.n_inside_ / stream.n_observed_ > 0.85)
    True
    """

    def __init__(self, estimator: Any, coverage: float = 0.9) -> None:
        if not hasattr(estimator, "predict_dist"):
            raise InvalidInputError(f"An estimator with predict_dist is expected; got {type(estimator).__name__}.")
        if isinstance(estimator, BaseEstimator):
            check_is_fitted(estimator)
        if getattr(estimator, "target_names_", None) is not None:
            raise InvalidInputError("AdaptiveIntervals are for one target: fit an IBUGRegressor for each.")
        if np.ndim(coverage) != 0:
            raise InvalidInputError(f"coverage must be one number; got {coverage!r}. Several need a stream each.")
        self.estimator, self.coverage = estimator, check_probability(coverage, "coverage")
        tau = (1 + self.coverage) / 2
        # The lower end is the upper end of what is mirrored.
        self._below, self._above = (Tracker.at(tau, float(ndtri(tau))) for _ in range(2))
        self.n_observed_ = self.n_inside_ = 0

    def __repr__(self) -> str:
        return f"AdaptiveIntervals({type(self.estimator).__name__}, coverage={self.coverage:g})"

    def predict_interval(self, X: Any) -> Floats:
        """Return the intervals of rows that are not observed yet, (n_rows, 2): lower and upper ends.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The next rows.
        """
        return self._ends(self.estimator.predict_dist(X).censored())

    def observe(self, X: Any, y: ArrayLike) -> AdaptiveIntervals:
        """Learn from the observed values of the rows predicted last, in the order in which they arrived.

        Rows that are observed together count as predicted together, with the intervals of before.

        Parameters
        ----------
        X, y : array-like or data frame of shape (n_rows, n_features), array-like of shape (n_rows,)
            The rows and their observed values.
        """
        values = check_targets(X, y, "y")
        distribution = self.estimator.predict_dist(X).censored()
        lower, upper = self._ends(distribution).T
        below, above = values < lower, values > upper
        # Where F jumps at y, y is above a quantile if the level of that is at most the score before the jump.
        before = distribution.normal_score(np.nextafter(values, -np.inf))
        self._above = self._above.after(before, int(above.sum()))
        self._below = self._below.after(-distribution.normal_score(values), int(below.sum()))
        self.n_observed_ += len(values)
        self.n_inside_ += int(np.sum(~(below | above)))
        return self

    def save(
        self,
        path: str | PathLike[str],
        *,
        compress: bool = True,
        metadata: Mapping[str, Any] | None = None,
        trusted: Iterable[str] = (),
    ) -> None:
        """Save the state together with the estimator to one file, which ``ibug.load`` reads.

        Parameters
        ----------
        path, compress, metadata, trusted
            As in ``IBUGRegressor.save``.
        """
        save(self, path, compress=compress, metadata=metadata, trusted=trusted)

    def state(self) -> dict[str, Any]:
        """Return the state of the stream as plain values and arrays, without the estimator."""
        return {
            "coverage": self.coverage,
            "n_observed": self.n_observed_,
            "n_inside": self.n_inside_,
            "below": self._below.state(),
            "above": self._above.state(),
        }

    @classmethod
    def from_state(cls, estimator: Any, state: Mapping[str, Any]) -> AdaptiveIntervals:
        """Return the intervals of a stream in this state.

        Parameters
        ----------
        estimator : fitted estimator with ``predict_dist``
            The one of before.
        state : dict
            What `state` has returned.
        """
        stream = cls(estimator, state["coverage"])
        counts = state["n_observed"], state["n_inside"]
        possible = all(isinstance(n, int) and not isinstance(n, bool) for n in counts) and 0 <= counts[1] <= counts[0]
        require(possible, "the state of its stream is impossible")
        stream.n_observed_, stream.n_inside_ = counts
        stream._below, stream._above = Tracker.from_state(state["below"]), Tracker.from_state(state["above"])
        return stream

    def _ends(self, distribution: Distribution) -> Floats:
        ends = [distribution.from_normal_score(level) for level in (-self._below.level, self._above.level)]
        # Estimates of the two ends may cross; then the interval between them is taken.
        return np.sort(np.stack(ends, axis=1), axis=1)


#: The step sizes that are tried side by side, in normal scores.
STEP_SIZES = tuple(0.01 * 2.0**i for i in range(8))
#: The number of rows within which the best step size may change.
HORIZON = 500
#: The step size of the correction, which guarantees the long-run coverage.
CORRECTION = 0.05
#: Scores beyond it, which a distribution calls impossible, count as this.
FARTHEST = 40.0


@dataclass(frozen=True)
class Tracker:
    r"""The τ-quantile of scores that arrive one after another, by experts of several step sizes; it is not changed.

    Each expert i has an estimate qᵢ and, when the score s arrives, makes the step of quantile tracking,
    :math:`q_i \leftarrow q_i + \gamma_i (1[s > q_i] - (1 - \tau))`. Their mean, m, has weights by exponentially
    weighted pinball losses with a fixed share, as in DtACI (Gibbs and Candès, 2024, Algorithm 1), and the learning rate
    that they recommend. The level is m + c. The correction c makes small steps of its own by the errors of the *issued*
    levels: m is the scorecaster of conformal PID control (Angelopoulos, Candès and Tibshirani, 2023).

    The guarantee, for any scores whatever: after T rows in batches of at most B, the share of rows above the level
    differs from 1 − τ by at most (b + γB)/(γT), where γ is the step size of c and b the largest ``|s − m|`` so far.
    """

    tau: float
    estimates: Floats  # (n_experts,)
    weights: Floats  # (n_experts,)
    correction: float = 0.0  # c
    loss: float = 0.0  # the running mean square of the losses, which sets the learning rate; zero before the first row

    def __post_init__(self) -> None:
        read_only(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tracker, tuple(vars(self).values())

    @classmethod
    def at(cls, tau: float, start: float) -> Tracker:
        """Return the tracker before the first row."""
        n = len(STEP_SIZES)
        return cls(tau, np.full(n, float(start)), np.full(n, 1 / n))

    @property
    def level(self) -> float:
        """The level for the next rows: m + c."""
        return float(self.weights @ self.estimates) + self.correction

    def after(self, scores: Floats, above: int) -> Tracker:
        """Return the tracker after a batch of rows. Shapes: scores (n_rows,)."""
        steps, share = np.array(STEP_SIZES), 1 / (2 * HORIZON)
        estimates, weights, loss = self.estimates.copy(), self.weights.copy(), self.loss
        strength = np.log(len(steps) * HORIZON) + 2
        for score in np.clip(scores, -FARTHEST, FARTHEST):
            distance = score - estimates
            losses = np.maximum(self.tau * distance, (self.tau - 1) * distance)
            square = float(weights @ np.square(losses))
            loss = square if loss == 0 else loss + (square - loss) / HORIZON
            if loss > 0:
                rate = np.sqrt(strength / (HORIZON * loss))
                weights = weights * np.exp(-rate * (losses - losses.min()))
                weights = (1 - share) * weights / weights.sum() + share / len(steps)
            estimates += steps * ((distance > 0) - (1 - self.tau))
        correction = self.correction + CORRECTION * (above - (1 - self.tau) * len(scores))
        return Tracker(self.tau, estimates, weights, float(correction), loss)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Tracker:
        """Return the tracker that has this state."""
        estimates, weights = (np.asarray(state[name], np.float64) for name in ("estimates", "weights"))
        numbers = [float(state[name]) for name in ("tau", "correction", "loss")]
        fits = estimates.shape == weights.shape == (len(STEP_SIZES),) and np.isfinite([*numbers, *estimates]).all()
        require(
            fits and (weights >= 0).all() and abs(weights.sum() - 1) < 1e-6, "the state of its stream is impossible"
        )
        return cls(numbers[0], estimates, weights, *numbers[1:])
