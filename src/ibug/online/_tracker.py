"""One end of adaptive intervals: a quantile of scores that move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibug._inputs import require
from ibug._read_only import read_only
from ibug._typing import Floats

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

    Parameters
    ----------
    tau : float
        The probability of the quantile.
    estimates, weights : ndarray of shape (n_experts,)
        Of the experts.
    correction : float
        The correction c.
    loss : float
        The running mean square of the losses, which sets the learning rate; zero before the first row.
    """

    tau: float
    estimates: Floats
    weights: Floats
    correction: float = 0.0
    loss: float = 0.0

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
        return {name: getattr(self, name) for name in ("tau", "estimates", "weights", "correction", "loss")}

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
