"""A model with hostile names and values in its data, and the report of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("plotly")
pd = pytest.importorskip("pandas")

from sklearn.ensemble import GradientBoostingRegressor  # noqa: E402 - after the skip
from sklearn.multioutput import MultiOutputRegressor  # noqa: E402 - after the skip
from sklearn.preprocessing import OrdinalEncoder  # noqa: E402 - after the skip

import ibug.report  # noqa: E402 - after the skip
from ibug import IBUGRegressor  # noqa: E402 - after the skip

#: Each would run a script if it became markup, script or part of an attribute.
HOSTILE = [
    "</script><img src=x onerror=\"document.title='hacked'\">",
    "<svg onload=\"document.title='hacked'\">",
    "\"><script>document.title='hacked'</script>",
    "<a href=\"javascript:document.title='hacked'\">a</a>",
    "${document.title='hacked'}\u2028@@data@@",
    "<!--<script>",
]


@dataclass
class Written:
    """A report, and what it was made of."""

    path: Path
    u: Any
    X: Any
    y: Any
    X_train: Any
    ids: list


@pytest.fixture(scope="session")
def model():
    rng = np.random.default_rng(0)
    n = 420
    frame = pd.DataFrame({"size": rng.uniform(0, 10, n), "age": rng.integers(0, 60, n).astype(float)})
    frame[HOSTILE[0]] = rng.choice(HOSTILE, n)
    frame.loc[::17, "age"] = np.nan
    y = 3 * frame["size"].to_numpy() + rng.normal(0, 1 + 0.3 * frame["size"].to_numpy())
    encoder = OrdinalEncoder().fit(frame[[HOSTILE[0]]])
    encoded = frame.assign(**{HOSTILE[0]: encoder.transform(frame[[HOSTILE[0]]]).ravel()}).fillna(-1.0)
    booster = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(encoded[:200], y[:200])
    u = IBUGRegressor(booster, prefit=True).fit(encoded[:200], y[:200], X_val=encoded[200:300], y_val=y[200:300])
    return u, encoded, frame, y


@pytest.fixture(scope="session")
def written(model, tmp_path_factory):
    u, encoded, frame, y = model
    path = tmp_path_factory.mktemp("report") / "report.html"
    ids = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(120)]
    ibug.report.write(
        u, encoded[300:], y[300:], path, X_train=frame[:200], X_shown=frame[300:], ids=ids, target=HOSTILE[1],
        title=HOSTILE[0], data=HOSTILE[2], width_seconds=2.0,
    )  # fmt: skip
    return Written(path, u, encoded[300:], y[300:], frame[:200], ids)


@pytest.fixture(scope="session")
def several():
    """Return a report of three targets, of which one has a hostile name, and what it was made of."""
    rng = np.random.default_rng(0)
    n = 420
    frame = pd.DataFrame({"size": rng.uniform(0, 10, n), "age": rng.integers(0, 60, n).astype(float)})
    common = rng.normal(size=(n, 1))
    Y = np.column_stack([frame["size"], frame["age"] / 10, frame["size"] - frame["age"] / 20])
    Y = pd.DataFrame(Y + common + 0.3 * rng.normal(size=(n, 3)), columns=["price", HOSTILE[0], "days"])
    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=20, random_state=0)).fit(frame[:200], Y[:200])
    u = IBUGRegressor(model, prefit=True, conformal="scale", random_state=0)
    u.fit(frame[:200], Y[:200], X_val=frame[200:300], y_val=Y[200:300])
    return u, frame, Y


@pytest.fixture(scope="session")
def several_written(several, tmp_path_factory):
    u, frame, Y = several
    path = tmp_path_factory.mktemp("several") / "report.html"
    ids = [f"order {i}" for i in range(120)]
    ibug.report.write(u, frame[300:], Y[300:], path, X_train=frame[:200], ids=ids, groups="size")
    return Written(path, u, frame[300:], Y[300:].to_numpy(), frame[:200], ids)
