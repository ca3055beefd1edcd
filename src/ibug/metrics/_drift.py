"""Have the data moved? Rows compared with the validation rows of a model, each comparison with a p-value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom, ks_2samp

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.metrics._coverage import coverage as covered
from ibug.metrics._inputs import check_level
from ibug.metrics._pit import pit


@dataclass(frozen=True)
class DriftTest:
    """One comparison.

    Parameters
    ----------
    name : {"familiarity", "pit", "coverage"}
        What is compared.
    p_value : float
        The probability of a difference at least as large by chance alone.
    adjusted : float
        The same after Holm's correction for the number of comparisons.
    observed, expected : float
        Medians of the affinity scores, of the transforms; or the coverage.
    meaning : str
        What it tells.
    """

    name: str
    p_value: float
    adjusted: float
    observed: float
    expected: float
    meaning: str


@dataclass(frozen=True, eq=False)
class Drift:
    """Comparisons of rows with the validation rows: what ``IBUGRegressor.monitor`` returns.

    Parameters
    ----------
    tests : tuple of DriftTest
        The comparisons.
    n_rows : int
        The number of rows.
    alpha : float
        The probability of an alarm where nothing has moved, at most.
    familiarity, familiarity_before : ndarray of shape (n_rows,) and (n,)
        Affinity scores of the rows and of the validation rows.
    transforms, transforms_before : ndarray of shape (n_rows,) and (n,), or None
        F(y) of the rows and of the validation rows; None without truths.
    """

    tests: tuple[DriftTest, ...]
    n_rows: int
    alpha: float
    familiarity: Floats
    familiarity_before: Floats
    transforms: Floats | None = None
    transforms_before: Floats | None = None

    @property
    def p_value(self) -> float:
        """The smallest p-value, corrected for the number of comparisons."""
        return min(test.adjusted for test in self)

    @property
    def moved(self) -> bool:
        """Whether it is an alarm: the corrected p-value is below alpha."""
        return self.p_value < self.alpha

    def __iter__(self) -> Iterator[DriftTest]:
        return iter(self.tests)

    def __getitem__(self, name: str) -> DriftTest:
        found = [test for test in self.tests if test.name == name]
        if not found:
            raise KeyError(f"There is no test {name!r}; there are {[test.name for test in self.tests]}.")
        return found[0]

    def __repr__(self) -> str:
        verdict = "The data have moved" if self.moved else "No sign that the data have moved"
        head = f"{verdict}: {self.n_rows} rows, p = {self.p_value:.2g}, an alarm below {self.alpha:g}"
        lines = [
            f"{test.name:12} p = {test.p_value:<8.2g} {test.observed:.3f}, expected {test.expected:.3f}: {test.meaning}"
            for test in self
        ]
        return "\n".join([head, *lines])

    def to_frame(self) -> Any:
        """Return the comparisons as a pandas DataFrame, indexed by their names."""
        import pandas as pd

        return pd.DataFrame([vars(test) for test in self.tests]).set_index("name")


def drift(
    familiarity: Floats,
    familiarity_before: Floats,
    y: ArrayLike | None = None,
    distribution: Any = None,
    transforms_before: Floats | None = None,
    *,
    coverage: float = 0.9,
    alpha: float = 0.01,
) -> Drift:
    """Compare rows with validation rows.

    Parameters
    ----------
    familiarity, familiarity_before : ndarray of shape (n_rows,) and (n,)
        Affinity scores of the rows and of the validation rows: two samples, compared by Kolmogorov and Smirnov's test.
    y, distribution : optional
        The truths, and what was predicted for them.
    transforms_before : ndarray of shape (n,), optional
        F(y) of the validation rows: compared with those of the rows by the same test.
    coverage : float
        The nominal coverage of the intervals. The binomial test tells whether too few truths are inside.
    alpha : float
        The probability of an alarm where nothing has moved, at most.
    """
    check_level(coverage, "coverage")
    check_level(alpha, "alpha")
    if not len(familiarity_before):
        raise InvalidInputError(
            "This model does not know what its validation rows were like: it had none, or was saved by an older "
            "version. Call recalibrate on rows that the model has not been trained on."
        )
    tests = [_compared("familiarity", familiarity, familiarity_before, "how alike rows are to the training rows")]
    if y is None:
        return Drift(_adjusted(tests), len(familiarity), float(alpha), familiarity, familiarity_before)
    assert transforms_before is not None, "they are kept together with the affinity scores"
    found = pit(y, distribution)
    tests.append(_compared("pit", found, transforms_before, "where truths are in their distributions"))
    inside = np.asarray(covered(y, distribution, coverage, reduce=None))
    n, share = len(inside), float(inside.mean())
    p_value = float(binom.cdf(int(inside.sum()), n, coverage))
    meaning = f"whether {100 * coverage:g} % intervals hold as many truths"
    tests.append(DriftTest("coverage", p_value, p_value, share, float(coverage), meaning))
    found_tests = _adjusted(tests)
    return Drift(found_tests, n, float(alpha), familiarity, familiarity_before, found, transforms_before)


def _compared(name: str, values: Floats, before: Floats, meaning: str) -> DriftTest:
    p_value = float(ks_2samp(values, before).pvalue)
    return DriftTest(name, p_value, p_value, float(np.median(values)), float(np.median(before)), meaning)


def _adjusted(tests: Sequence[DriftTest]) -> tuple[DriftTest, ...]:
    """Return the tests with Holm's corrected p-values: the i-th smallest times the number that is left, rising."""
    p_values = np.array([test.p_value for test in tests])
    order = np.argsort(p_values)
    corrected = np.empty(len(tests))
    corrected[order] = np.minimum(np.maximum.accumulate(p_values[order] * np.arange(len(tests), 0, -1)), 1.0)
    return tuple(
        DriftTest(test.name, test.p_value, float(p), test.observed, test.expected, test.meaning)
        for test, p in zip(tests, corrected, strict=True)
    )
