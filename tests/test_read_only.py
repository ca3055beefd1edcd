"""What an estimator has learned shares no memory with what it was given, and nobody can write to it."""

import pickle
from copy import copy, deepcopy
from types import FunctionType, MappingProxyType, MethodType

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputRegressor
from xgboost import XGBRegressor

import ibug
from ibug import AdaptiveIntervals, CBURegressor, IBUGRegressor, ProbabilisticEnsemble, Sampling, VarianceCalibrator
from ibug.calibration import DistributionConformal, LikelihoodRatio, ScaleConformal
from ibug.distributions import Normal
from ibug.explain import plain_neighbors
from ibug.online import DriftMonitor

N = 150
GIVEN_MODELS = ("estimator", "estimators", "model", "inner")  # what belongs to the user, or to another library


def arrays_of(root):
    """Return path and array of all that can be reached from an object, but for models."""
    found, seen, todo = [], {}, [("", root)]
    while todo:
        path, one = todo.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one  # kept, so that no other object gets its id
        inner = {}
        if isinstance(one, np.ndarray):
            found.append((path, one))
            inner = dict(enumerate(one.ravel().tolist())) if one.dtype == object else {}
        elif isinstance(one, (dict, MappingProxyType)):
            inner = one
        elif isinstance(one, (list, tuple, set, frozenset)):
            inner = dict(enumerate(one))
        elif isinstance(one, MethodType):
            inner = {"self": one.__self__}
        elif isinstance(one, FunctionType):
            inner = {i: cell.cell_contents for i, cell in enumerate(one.__closure__ or ())}
        elif not isinstance(one, type):
            names = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
            inner = {name: getattr(one, name) for name in names if hasattr(one, name)} | getattr(one, "__dict__", {})
            inner = {name: value for name, value in inner.items() if name not in GIVEN_MODELS}
        todo += [(f"{path}/{name}", value) for name, value in inner.items()]
    return found


class Given:
    """Hands out copies of data, in arrays or in pandas, and keeps their buffers."""

    def __init__(self, rng, *, frames=False, n_targets=1):
        X = rng.normal(size=(4 * N, 4))
        X[:, 0] = np.round(X[:, 0]).clip(-1, 1)
        noise = rng.normal(size=(4 * N, n_targets))
        self.X, self.frames, self.buffers = X, frames, []
        self.y = (X[:, [1]] + np.abs(X[:, [2]]) + 0.3 * noise)[:, 0 if n_targets == 1 else slice(None)]

    def rows(self, part):
        X, y = self._part(self.X, part), self._part(self.y, part)
        if not self.frames:
            return X, y
        frame, series = pd.DataFrame(X, columns=list("abcd"), copy=False), pd.Series(y, copy=False)
        self.buffers += [frame.columns.to_numpy(), np.asarray(frame.columns)]
        return frame, series

    def weights(self, part):
        return self._part(1.0 + np.abs(self.X[:, 3]), part)

    def _part(self, values, part):
        self.buffers.append(values[part * N : (part + 1) * N].copy())
        return self.buffers[-1]

    def check(self, learned):
        arrays = arrays_of(learned)
        assert arrays
        shared = [path for path, one in arrays for buffer in self.buffers if np.shares_memory(one, buffer)]
        assert not shared
        assert not [path for path, one in arrays if one.flags.writeable]


def check_everywhere(given, learned, path):
    """Check an estimator, what comes back from a file and a pickle, and copies."""
    learned.predict_interval(given.rows(3)[0])  # arrays that are made on demand are kept as well
    given.check(learned)
    for other in (pickle.loads(pickle.dumps(learned)), copy(learned), deepcopy(learned)):
        given.check(other)
    for compress in (True, False):
        learned.save(path, compress=compress)
        for mmap in (True, False):
            given.check(ibug.load(path, mmap=mmap))


def boosting(given, weights=None):
    return GradientBoostingRegressor(n_estimators=20).fit(*given.rows(0), weights)


def catboost(**options):
    return CatBoostRegressor(iterations=20, verbose=0, allow_writing_files=False, **options)


REGRESSORS = {
    "prefit": (lambda given: IBUGRegressor(boosting(given), prefit=True), {}),
    "groups": (lambda given: IBUGRegressor(boosting(given), prefit=True, conformal=ScaleConformal(groups=0)), {}),
    "frames": (lambda given: IBUGRegressor(boosting(given), prefit=True), {"frames": True}),
    "trained": (lambda given: IBUGRegressor(LGBMRegressor(n_estimators=20, verbose=-1)), {"frames": True}),
    "cross-fitted": (lambda given: IBUGRegressor(XGBRegressor(n_estimators=20)), {"validation": False}),
    "held out": (
        lambda given: IBUGRegressor(catboost(), spread="targets", distribution="kde", conformal="distribution"),
        {"validation": False},
    ),
    "sampled": (
        lambda given: IBUGRegressor(
            boosting(given),
            prefit=True,
            sampling=Sampling(tree_fraction=0.5, tree_order="gain", row_fraction=0.9),
            distribution="student_t",
        ),
        {},
    ),
    "validation residuals": (
        lambda given: IBUGRegressor(boosting(given), prefit=True, residuals="none", spread="residuals"),
        {},
    ),
    "uncalibrated": (lambda given: IBUGRegressor(boosting(given), prefit=True, calibrate=False, k=5), {}),
    "several": (
        lambda given: IBUGRegressor(MultiOutputRegressor(GradientBoostingRegressor(n_estimators=10))),
        {"n_targets": 2, "validation": False},
    ),
    "several, one set of trees": (
        lambda given: IBUGRegressor(catboost(loss_function="MultiRMSE"), conformal="scale"),
        {"n_targets": 2},
    ),
}


@pytest.mark.filterwarnings("ignore::ibug.exceptions.IBUGWarning")
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressor(name, rng, tmp_path):
    make, options = REGRESSORS[name]
    validation = options.get("validation", True)
    given = Given(rng, **{key: value for key, value in options.items() if key != "validation"})
    u, (X_val, y_val) = make(given), given.rows(1)
    kwargs = {"X_val": X_val, "y_val": y_val, "sample_weight_val": given.weights(1)} if validation else {}
    u.fit(*given.rows(0), **kwargs)
    check_everywhere(given, u, tmp_path / "u.ibug")
    given.check(plain_neighbors(u))
    u.update(*given.rows(2))
    check_everywhere(given, u, tmp_path / "u.ibug")
    u.recalibrate(*given.rows(3), given.weights(3))
    check_everywhere(given, u, tmp_path / "u.ibug")
    if u.target_names_ is None and name != "sampled":
        given.check(u.recalibrate(*given.rows(3), distribution="tune"))


def test_weights_of_neighbors(rng, tmp_path):
    given = Given(rng)
    weights = given.weights(0)
    u = IBUGRegressor(boosting(given, weights), prefit=True, sampling=Sampling(weight_neighbors=True))
    X_val, y_val = given.rows(1)
    u.fit(*given.rows(0), weights, X_val=X_val, y_val=y_val).update(*given.rows(2), given.weights(2))
    check_everywhere(given, u, tmp_path / "u.ibug")


@pytest.mark.filterwarnings("ignore::ibug.exceptions.IBUGWarning")
def test_likelihood_ratio(rng):
    given = Given(rng)
    (X, y), (X_val, y_val) = given.rows(0), given.rows(1)
    u = IBUGRegressor(boosting(given), prefit=True).fit(X, y, X_val=X_val, y_val=y_val)
    ratio = LikelihoodRatio.estimate(u, X_val, given.rows(2)[0])
    given.buffers.append(ratio.table)
    u.set_params(conformal=ScaleConformal(ratio=ratio)).recalibrate(X_val, y_val)
    assert isinstance(u.conformal_.ratio, LikelihoodRatio)
    given.check(u.rule_)
    assert ratio.table.flags.writeable, "which is the user's"


@pytest.mark.filterwarnings("ignore::ibug.exceptions.IBUGWarning")
@pytest.mark.parametrize("frames", [False, True])
def test_other_regressors(frames, rng, tmp_path):
    given = Given(rng, frames=frames)
    X_val, y_val = given.rows(1)
    cbu = CBURegressor(catboost(), conformal="scale").fit(*given.rows(0), X_val=X_val, y_val=y_val)
    check_everywhere(given, cbu, tmp_path / "u.ibug")
    model = GradientBoostingRegressor(n_estimators=20)
    members = [("ibug", IBUGRegressor(model, distribution="normal")), ("cbu", CBURegressor(catboost()))]
    u = ProbabilisticEnsemble(members, calibrate=True, conformal="distribution", weights=[0.7, 0.3])
    u.fit(*given.rows(0), X_val=X_val, y_val=y_val)
    check_everywhere(given, u, tmp_path / "u.ibug")


def test_calibrators_and_streams(rng, tmp_path):
    given = Given(rng)
    X, y = given.rows(0)
    weights, mean, variance = given.weights(0), given.rows(0)[1], given.weights(0)
    for method in ("grid", "continuous"):
        calibrator = VarianceCalibrator(method=method).fit(mean, variance, y, weights)
        given.check(calibrator)
        given.check(pickle.loads(pickle.dumps(calibrator)))
    for kind in (ScaleConformal, DistributionConformal):
        for groups in (None, X[:, 0]):
            calibrator = kind().fit(Normal(mean, np.sqrt(variance)), y, groups, weights)
            given.check(calibrator)
            given.check(pickle.loads(pickle.dumps(calibrator)))
    X_val, y_val = given.rows(1)
    stream = AdaptiveIntervals(IBUGRegressor(boosting(given), prefit=True).fit(X, y, X_val=X_val, y_val=y_val))
    check_everywhere(given, stream.observe(*given.rows(2)), tmp_path / "stream.ibug")
    monitor = DriftMonitor(stream.estimator)
    monitor.observe(*given.rows(2))
    for one in (monitor, pickle.loads(pickle.dumps(monitor))):
        given.check(one.tests_)


def test_changes_of_the_inputs_change_nothing(rng):
    given = Given(rng)
    (X, y), (X_val, y_val) = given.rows(0), given.rows(1)
    u = IBUGRegressor(boosting(given), prefit=True).fit(X, y, X_val=X_val, y_val=y_val)
    expected, new = u.predict_interval(given.X), given.X.copy()
    for buffer in given.buffers:
        buffer *= 1000
    np.testing.assert_array_equal(u.predict_interval(new), expected)
    with pytest.raises(ValueError, match="read-only"):
        u.training_targets_[:5] = 0


def test_model_of_the_user_can_still_be_written_to(rng):
    """Only ibug's own arrays become read-only, not those that a model, or a part of it, has."""
    given = Given(rng)
    (X, y), (X_val, y_val) = given.rows(0), given.rows(1)
    member = LinearRegression().fit(X, y)
    member.extra_ = np.zeros(3)
    model = boosting(given)
    model.extra_ = member.coef_
    IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=y_val)
    for array in (model.extra_, member.coef_, member.extra_, X, y, X_val, y_val):
        assert array.flags.writeable


@pytest.fixture
def rng():
    return np.random.default_rng(0)
