"""What a method is: it is fitted on training and validation rows, and predicts a mean and a variance for each row.

The paper models every output by a normal distribution (its section 5.1), so mean and variance are all there is to say.
The distribution, its calibration and its scores are made in one place for all methods, benchmarks/study/protocol.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.study.memory import Memory
from ibug.distributions import Distribution

Floats = NDArray[np.float64]

SCORINGS = ("crps", "nll")
GRIDS = ("quick", "full", "paper")

# The numbers of neighbours that are tried (paper, section B.2).
K_CANDIDATES = (3, 5, 7, 9, 11, 15, 31, 61, 91, 121, 151, 201, 301, 401, 501, 601, 701)

# What stands for a variance of zero, for targets of unit variance.
TINY_VARIANCE = 1e-15


class Moments(NamedTuple):
    """Predicted means and variances, (n_rows,) each."""

    mean: Floats
    variance: Floats


def moments_of(distribution: Distribution) -> Moments:
    """Return the means and variances of a batch."""
    return Moments(distribution.mean(), distribution.var())


@dataclass
class Split:
    """The rows of one fold that a method may see.

    ``X_part`` and ``X_val`` are the 80 % and 20 % of ``X_train`` that hyperparameters are tuned with. All are arrays of
    numbers, (n_rows, n_features).
    """

    X_part: Floats
    y_part: Floats
    X_val: Floats
    y_val: Floats
    X_train: Floats
    y_train: Floats
    grid: str = "quick"
    seed: int = 0
    dataset: str = ""  # as the paper names it
    memory: Memory = field(default_factory=Memory)

    @property
    def tiny(self) -> float:
        """The smallest variance that is predicted."""
        return TINY_VARIANCE * (float(np.var(self.y_train)) or 1.0)


class Fitted(ABC):
    """A fitted method.

    Attributes
    ----------
    held_out : dict of Moments
        By score that it was tuned for: the predictions of the validation rows, by a model that has not seen them.
    parameters : dict of dict
        Likewise, what was chosen.
    """

    held_out: dict[str, Moments]
    parameters: dict[str, dict[str, Any]]

    @abstractmethod
    def predict(self, X: Floats, scoring: str) -> Moments:
        """Return means and variances before calibration, tuned for that score."""

    def calibrated(self, X: Floats, scoring: str) -> Moments | None:
        """Return calibrated means and variances, if that is not the calibration of what `predict` returns."""
        return None

    def distribution(self, X: Floats, scoring: str, *, calibrated: bool) -> Distribution | None:
        """Return the method's own distributions, if they are not normal ones and are to be scored as they are."""
        return None

    def quantiles(self, X: Floats, levels: Floats) -> Floats | None:
        """Return the method's own quantiles, (n_rows, n_levels), if they are not those of a normal distribution."""
        return None

    def interval(self, X: Floats, coverage: float) -> Floats | None:
        """Return the method's own interval, (n_rows, 2), if it is not that of a normal distribution."""
        return None


class Method(ABC):
    """A method of the study.

    Attributes
    ----------
    name, title
        As the command line and as the tables call it.
    package
        The import name of the package it needs.
    row_limit : dict of int
        By grid, the most rows of a dataset that it can be run on in reasonable time; without an entry no limit.
    varies
        The name of the method that this one is a variant of, to find out why that one differs from the paper; empty for
        the others.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    package: ClassVar[str]
    row_limit: ClassVar[dict[str, int]] = {}
    varies: ClassVar[str] = ""

    @abstractmethod
    def fit(self, split: Split) -> Fitted:
        """Tune on the part and the validation rows, then fit on all training rows."""


def importable(package: str) -> bool:
    """Tell whether a package is installed, without importing it."""
    from importlib.util import find_spec

    return find_spec(package) is not None
