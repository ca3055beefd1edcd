"""Data drift: new rows compared with the validation rows of a model, each comparison with a p-value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import betabinom, ks_2samp, kstwo

from ibug._typing import Floats
from ibug._validation import check_probability
from ibug.exceptions import InvalidInputError

MEANINGS = {
    "similarity": "similarity of the rows to the training data",
    "prediction": "the model's predictions",
    "pit": "where observed values lie in their distributions",
}

#: The validation rows' own coverage is too high by about this many rows: their targets have fitted the distributions.
_ROWS_GAINED = 2

#: The number of models that have usually predicted the rows in place of the final one.
_USUAL_CLONES = 5


@dataclass(frozen=True)
class DriftTest:
    """One comparison.

    Parameters
    ----------
    name : {"similarity", "prediction", "pit", "coverage"}
        What is compared.
    p_value : float
        The probability of a difference at least as large by chance alone.
    adjusted : float
        The same after Holm's correction for the number of comparisons.
    observed, expected : float
        Medians in the new rows and in the validation rows; or the coverage.
    meaning : str
        The same in words.
    """

    name: str
    p_value: float
    adjusted: float
    observed: float
    expected: float
    meaning: str


@dataclass(frozen=True, eq=False)
class Drift:
    """Comparisons of new rows with the validation rows: what ``IBUGRegressor.monitor`` returns.

    Parameters
    ----------
    tests : tuple of DriftTest
        The comparisons.
    n_rows : int
        The number of new rows.
    alpha : float
        The probability of an alarm without data drift, at most.
    samples : dict of pair of ndarray
        By test, the values of the new rows and of the validation rows: affinity scores (``"similarity"``), predictions
        (``"prediction"``; with several targets, of the one that differs most) and transforms F(y) (``"pit"``).
    """

    tests: tuple[DriftTest, ...]
    n_rows: int
    alpha: float
    samples: Mapping[str, tuple[Floats, Floats]]

    @property
    def p_value(self) -> float:
        """The smallest p-value, corrected for the number of comparisons."""
        return min(test.adjusted for test in self)

    @property
    def drifted(self) -> bool:
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
        verdict = "Data drift" if self.drifted else "No sign of data drift"
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
    values: Mapping[str, Floats],
    reference: Mapping[str, Floats],
    *,
    tolerance: Mapping[str, float] | None = None,
    coverage: float = 0.9,
    alpha: float = 0.01,
) -> Drift:
    """Compare new rows with validation rows: what both have, by Kolmogorov and Smirnov's test of two samples.

    Parameters
    ----------
    values, reference : dict of ndarray
        Of the new rows and of the validation rows: ``similarity`` and ``pit``, (n,), and ``prediction``,
        (n, n_targets). With transforms, the coverage is compared as well.
    tolerance : dict of float, optional
        By name, a difference between shares of the rows that is no evidence of drift, because the validation rows were
        predicted in another way.
    coverage : float
        The nominal coverage of the intervals.
    alpha : float
        The probability of an alarm without data drift, at most.
    """
    check_probability(coverage, "coverage")
    check_probability(alpha, "alpha")
    names = [name for name in MEANINGS if name in values and name in reference]
    if not names:
        raise InvalidInputError(
            "This model has no validation rows to compare new rows with. Call recalibrate on rows that the model has "
            "not been trained on."
        )
    allowed = tolerance or {}
    tests, samples = [], {}
    for name in names:
        targets = zip(_columns(values[name]), _columns(reference[name]), strict=True)
        found = [(_p_value(new, old, allowed.get(name, 0.0)), new, old) for new, old in targets]
        smallest, new, old = min(found, key=lambda one: one[0])
        p_value, samples[name] = min(1.0, len(found) * smallest), (new, old)
        tests.append(DriftTest(name, p_value, p_value, float(np.median(new)), float(np.median(old)), MEANINGS[name]))
    if "pit" in samples:
        new, old = samples["pit"]
        tests.append(_coverage_test(new, old, coverage, allowed.get("pit", 0.0)))
    return Drift(_adjusted(tests), len(values[names[0]]), float(alpha), samples)


def _columns(values: Floats) -> list[Floats]:
    return [values] if values.ndim == 1 else list(values.T)


def _p_value(values: Floats, reference: Floats, tolerance: float) -> float:
    """Return the p-value of a distance between two distribution functions that is larger than the tolerance."""
    if not tolerance:
        return float(ks_2samp(values, reference).pvalue)
    # A model of few leaves predicts few values, each clone other ones: a value of the model has shares in all clones'.
    most_frequent = np.unique(reference, return_counts=True)[1].max()
    tolerance = max(tolerance, _USUAL_CLONES * (float(most_frequent - 1) / len(reference)))
    distance = ks_2samp(values, reference, method="asymp").statistic
    n, m = len(values), len(reference)
    return float(kstwo.sf(max(0.0, distance - tolerance), max(1, round(n * m / (n + m)))))


def _coverage_test(transforms: Floats, reference: Floats, coverage: float, tolerance: float) -> DriftTest:
    """Return whether too few new rows are inside their intervals, compared with the validation rows.

    If j of n validation rows are inside, the share of new rows inside has the distribution Beta(j, n + 1 - j), as for
    split conformal intervals; so their number is beta-binomial.
    """
    inside = [np.abs(2 * one - 1) <= coverage for one in (transforms, reference)]
    n, m = len(reference), len(transforms)
    j = inside[1].sum() - _ROWS_GAINED - tolerance * n
    p_value = float(min(1.0, betabinom.cdf(inside[0].sum(), m, j, n + 1 - j))) if j > 0 else 1.0
    meaning = f"the share of observed values inside {100 * coverage:g} % intervals"
    return DriftTest("coverage", p_value, p_value, float(inside[0].mean()), float(inside[1].mean()), meaning)


def _adjusted(tests: Sequence[DriftTest]) -> tuple[DriftTest, ...]:
    """Return the tests with Holm's corrected p-values: the i-th smallest times the number that is left, rising."""
    p_values = np.array([test.p_value for test in tests])
    order = np.argsort(p_values)
    corrected = np.empty(len(tests))
    corrected[order] = np.minimum(np.maximum.accumulate(p_values[order] * np.arange(len(tests), 0, -1)), 1.0)
    return tuple(replace(test, adjusted=float(p)) for test, p in zip(tests, corrected, strict=True))
