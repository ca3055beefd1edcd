"""All scores of one model on one set of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.metrics._check_score import check_score
from ibug.metrics._coverage import coverage
from ibug.metrics._crps import crps
from ibug.metrics._crps_skill import crps_skill
from ibug.metrics._inputs import as_distribution, as_targets, check_levels
from ibug.metrics._interval_score import interval_score
from ibug.metrics._mace import mace
from ibug.metrics._mae import mae
from ibug.metrics._mean_width import mean_width
from ibug.metrics._miscalibration_area import miscalibration_area
from ibug.metrics._nll import nll
from ibug.metrics._rms_calibration_error import rms_calibration_error
from ibug.metrics._rmse import rmse
from ibug.metrics._scorers import predict_dist
from ibug.metrics._sharpness import sharpness

_METRICS: dict[str, tuple[Callable[..., Any], str]] = {
    "rmse": (rmse, "root mean squared error of the point prediction"),
    "mae": (mae, "mean absolute error of the point prediction"),
    "crps": (crps, "continuous ranked probability score"),
    "nll": (nll, "negative log likelihood"),
    "check_score": (check_score, "pinball loss over 99 quantiles"),
    "interval_score": (interval_score, "width and misses over 99 intervals"),
    "mace": (mace, "mean absolute calibration error"),
    "rms_calibration_error": (rms_calibration_error, "root mean squared calibration error"),
    "miscalibration_area": (miscalibration_area, "area between calibration curve and diagonal"),
    "sharpness": (sharpness, "root mean predicted variance"),
}


class Scores(Mapping[str, float]):
    """The scores by name: a mapping that prints as a table; ``pandas.Series(scores)`` and ``to_frame()`` work.

    Parameters
    ----------
    values : mapping of str to float
        The scores.
    meanings : mapping of str to str
        What each of them tells.
    n_rows : int
        How many rows they are of.
    """

    def __init__(self, values: Mapping[str, float], meanings: Mapping[str, str], n_rows: int) -> None:
        self._values = dict(values)
        self._meanings = dict(meanings)
        self.n_rows = n_rows

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        width = max(map(len, self._values))
        lines = [f"{name:{width}}  {value:12.6g}  {self._meanings[name]}" for name, value in self._values.items()]
        return "\n".join([f"Scores on {self.n_rows} rows", *lines])

    @property
    def meanings(self) -> dict[str, str]:
        """What each score means, in a few words."""
        return dict(self._meanings)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns ``score`` and ``meaning``, indexed by the metric's name."""
        import pandas as pd

        table = {"score": list(self._values.values()), "meaning": [self._meanings[name] for name in self._values]}
        return pd.DataFrame(table, index=pd.Index(self._values, name="metric"))


def _skill(y: Floats, distribution: Any, reference: ArrayLike | None) -> float:
    """Return the skill, against the training targets if the estimator keeps them; NaN where targets do not vary."""
    try:
        return crps_skill(y, distribution, reference=reference)
    except InvalidInputError:
        return float("nan")


def evaluate(estimator: Any, X: Any, y: ArrayLike, *, levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95)) -> Scores:
    """Return all scores of an estimator on rows that it has not seen.

    Parameters
    ----------
    estimator
        Anything with ``predict_dist``.
    X, y
        The rows and their observed values.
    levels
        Nominal coverages of the intervals whose observed coverage and mean width are reported.

    Examples
    --------
    >>> from ibug import IBUGRegressor
    >>> from ibug.metrics import evaluate
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> u = IBUGRegressor(random_state=0).fit(X[:300], y[:300])
    >>> scores = evaluate(u, X[300:], y[300:], levels=[0.9])
    >>> scores["coverage_90"] > 0.8
    True
    """
    values = as_targets(y)
    distribution = as_distribution(predict_dist(estimator, X), len(values))
    # The point prediction is the model's own; a conformal distribution may have another mean.
    points = estimator.predict(X) if hasattr(estimator, "predict") else distribution
    scores: dict[str, float] = {}
    meanings: dict[str, str] = {}
    for name, (metric, meaning) in _METRICS.items():
        scores[name] = metric(values, points if metric in (rmse, mae) else distribution)
        meanings[name] = meaning
    scores["crps_skill"] = _skill(values, distribution, getattr(estimator, "training_targets_", None))
    meanings["crps_skill"] = "1 is perfect, 0 as good as no model"
    for level in check_levels(levels, "levels"):
        percent = f"{100 * level:g}"
        for kind, level_metric, meaning in (
            ("coverage", coverage, f"share of values inside the {percent} % interval"),
            ("width", mean_width, f"mean width of the {percent} % interval"),
        ):
            scores[f"{kind}_{percent}"] = level_metric(values, distribution, float(level))
            meanings[f"{kind}_{percent}"] = meaning
    return Scores(scores, meanings, len(values))
