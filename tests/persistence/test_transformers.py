"""What is saved can be loaded: a pipeline with every transformer of scikit-learn, and with usual arguments of them."""

import io
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - so that scikit-learn lists it
from sklearn.feature_selection import (
    RFECV,
    SelectFromModel,
    SelectKBest,
    f_regression,
    mutual_info_regression,
    r_regression,
)
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.utils import all_estimators
from threadpoolctl import threadpool_limits

import ibug
from ibug import IBUGRegressor
from ibug.exceptions import FileFormatError, NotStorableError
from ibug.persistence._sklearn_trees import is_whole
from tests.persistence.forge import manifest_of, put_together, take_apart

rng = np.random.default_rng(0)
Y = (np.arange(48) % 3).astype(float)  # few values: some transformers want classes
X = rng.random((48, 4))
X[:, 0] += Y
WITH_HOLES = X.copy()
WITH_HOLES[::7, 1] = np.nan
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(letter=np.where(Y > 0, "u", "v"))

# Why a transformer cannot stand before a model of rows of numbers, or cannot be saved.
OTHER_ROWS = {
    "CCA", "DictVectorizer", "FeatureHasher", "GaussianRandomProjection", "HashingVectorizer", "IsotonicRegression",
    "KernelCenterer", "LabelBinarizer", "LabelEncoder", "MultiLabelBinarizer", "PLSCanonical", "PLSRegression",
    "PLSSVD", "PatchExtractor", "SparseRandomProjection", "TSNE",
}  # fmt: skip
NO_SINGLE_ROW = {"MiniBatchSparsePCA", "SparsePCA"}  # scikit-learn's own `transform` fails on one row
REFUSED = {"Birch"}  # skops says no


def wrapped(model, rows):
    """A regressor around a fitted model, the quickest there is."""
    u = IBUGRegressor(model, prefit=True, k=5, distribution="normal", spread="targets", calibrate=False)
    return u.fit(rows, Y)


def assert_comes_back(model, rows, path):
    u = wrapped(model, rows)
    u.save(path)
    loaded = ibug.load(path)
    assert loaded.predict_interval(rows).tobytes() == u.predict_interval(rows).tobytes()


def before_a_forest(transformer, rows):
    """Fit a pipeline of a transformer and a small model; None where the transformer takes other rows."""
    for name in {"max_iter", "n_estimators"} & set(transformer.get_params()):
        transformer.set_params(**{name: 3})  # to be quick; how good it is does not matter here
    try:
        with threadpool_limits(1):
            return make_pipeline(transformer, RandomForestRegressor(3, max_depth=3, random_state=0)).fit(rows, Y)
    except (TypeError, ValueError, AttributeError):
        return None


@pytest.mark.filterwarnings("ignore")  # of scikit-learn, on few rows
def test_every_transformer_of_scikit_learn(tmp_path):
    path, done, problems = tmp_path / "model.ibug", 0, {}
    for name, cls in all_estimators(type_filter="transformer"):
        try:
            transformer = cls()
        except TypeError:  # it takes arguments
            continue
        pipeline = None
        for rows in () if name in NO_SINGLE_ROW else (X, WITH_HOLES):
            pipeline = before_a_forest(transformer, rows)
            if pipeline is not None:
                break
        if pipeline is None:
            if name not in OTHER_ROWS | NO_SINGLE_ROW:
                problems[name] = "cannot be fitted"
            continue
        try:
            assert_comes_back(pipeline, rows, path)
            done += 1
        except NotStorableError as error:
            if name not in REFUSED:
                problems[name] = str(error)
        except Exception as error:
            problems[name] = f"{type(error).__name__}: {error}"
    assert not problems, "\n".join(f"{name}: {problem}" for name, problem in problems.items())
    assert done > 50


USUAL = {
    "median": (SimpleImputer(strategy="median", add_indicator=True), WITH_HOLES),
    "function": (SimpleImputer(strategy=np.nanmedian), WITH_HOLES),
    "iterative": (IterativeImputer(RandomForestRegressor(2, max_depth=2), max_iter=1), WITH_HOLES),
    "neighbours": (KNNImputer(), WITH_HOLES),
    "f": (SelectKBest(f_regression, k=2), X),
    "r": (SelectKBest(r_regression, k=2), X),
    "information": (SelectKBest(mutual_info_regression, k=2), X),
    "folds": (RFECV(LinearRegression(), cv=KFold(3)), X),
    "forest": (SelectFromModel(RandomForestRegressor(2)), X),
    "bins": (KBinsDiscretizer(3, encode="ordinal"), X),
    "splines": (SplineTransformer(extrapolation="periodic"), X),
    "logarithm": (FunctionTransformer(np.log1p, np.expm1), X),
    "clipped": (FunctionTransformer(np.clip, kw_args={"a_min": 0, "a_max": 1}), X),
    "union": (FeatureUnion([("pca", PCA(2)), ("scaled", StandardScaler())]), X),
    "balls": (KNeighborsTransformer(metric="manhattan", algorithm="ball_tree"), X),
    "selected": (
        make_column_transformer(
            (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
            (StandardScaler(), make_column_selector(dtype_include=np.number)),
        ),
        FRAME,
    ),
    "pattern": (
        make_column_transformer((OrdinalEncoder(), make_column_selector("letter")), remainder=SimpleImputer()),
        FRAME,
    ),
    "target": (make_column_transformer((TargetEncoder(cv=2), ["letter"]), remainder="passthrough"), FRAME),
}


@pytest.mark.filterwarnings("ignore")  # of scikit-learn, on few rows
@pytest.mark.parametrize("name", list(USUAL))
def test_transformers_as_people_use_them(name, tmp_path):
    transformer, rows = USUAL[name]
    pipeline = make_pipeline(transformer, RandomForestRegressor(3, max_depth=3, random_state=0)).fit(rows, Y)
    assert_comes_back(pipeline, rows, tmp_path / "model.ibug")


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_an_imputer_before_each_booster(library, tmp_path):
    module = pytest.importorskip(library)
    model = {
        "lightgbm": lambda: module.LGBMRegressor(n_estimators=3, min_child_samples=5, verbose=-1),
        "xgboost": lambda: module.XGBRegressor(n_estimators=3),
        "catboost": lambda: module.CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False),
    }[library]()
    pipeline = make_pipeline(SimpleImputer(), model).fit(WITH_HOLES, Y)
    assert_comes_back(pipeline, WITH_HOLES, tmp_path / "model.ibug")


def test_a_transformed_target(tmp_path):
    model = TransformedTargetRegressor(HistGradientBoostingRegressor(max_iter=3), func=np.log1p, inverse_func=np.expm1)
    assert_comes_back(model.fit(X, Y), X, tmp_path / "model.ibug")


def doubled(rows):
    return 2 * rows


def with_function(function):
    return make_pipeline(FunctionTransformer(function), HistGradientBoostingRegressor(max_iter=3)).fit(X, Y)


def test_a_lambda_is_refused_and_nothing_is_written(tmp_path):
    u = wrapped(with_function(lambda rows: 2 * rows), X)
    with pytest.raises(NotStorableError, match=r"a lambda has no name.*np\.log1p"):
        u.save(tmp_path / "model.ibug")
    with pytest.raises(NotStorableError, match="a lambda"):
        u.save(tmp_path / "model.ibug", trusted=[])
    assert list(tmp_path.iterdir()) == []


def test_a_function_of_ones_own_by_its_name(tmp_path):
    u = wrapped(with_function(doubled), X)
    path, name = tmp_path / "model.ibug", f"{__name__}.doubled"
    with pytest.raises(NotStorableError, match=rf'save\(path, trusted=\["{name}"\]\)'):
        u.save(path)
    assert list(tmp_path.iterdir()) == []
    u.save(path, trusted=[name])
    with pytest.raises(FileFormatError, match=r"not trusted.*doubled"):
        ibug.load(path)
    assert ibug.load(path, trusted=[name]).predict(X).tobytes() == u.predict(X).tobytes()


def test_a_function_that_cannot_be_found_again(tmp_path):
    def local(rows):
        return 2 * rows

    for function, why in ((local, "found again"), (partial(local), "found again")):
        u = wrapped(with_function(function), X)
        with pytest.raises(NotStorableError, match=rf"{why}.*top level of a module"):
            u.save(tmp_path / "model.ibug", trusted=[f"{__name__}.local", f"{__name__}.<lambda>"])
    assert list(tmp_path.iterdir()) == []


def test_a_function_of_the_program_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(doubled, "__module__", "__main__")
    u = wrapped(with_function(doubled), X)
    with pytest.raises(NotStorableError, match="__main__ is another module"):
        u.save(tmp_path / "model.ibug", trusted=["__main__.doubled"])


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
def test_forged_search_trees(algorithm, tmp_path):
    """A search tree that leads out of its arrays would let scikit-learn read foreign memory."""
    path = tmp_path / "model.ibug"
    pipeline = make_pipeline(KNeighborsTransformer(algorithm=algorithm), RandomForestRegressor(3, max_depth=3))
    u = wrapped(pipeline.fit(X, Y), X)
    assert is_whole(pipeline[0]._tree)
    u.save(path)
    members = take_apart(path)
    name = next(name for name in members if name.endswith(".skops") and name.startswith("models/1"))
    forged = io.BytesIO()
    changed = 0
    with zipfile.ZipFile(io.BytesIO(members[name])) as old, zipfile.ZipFile(forged, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith(".npy"):
                array = np.load(io.BytesIO(data))
                if array.dtype.names is not None and "idx_end" in array.dtype.names:
                    array["idx_end"] = 10**9
                    stream = io.BytesIO()
                    np.save(stream, array)
                    data, changed = stream.getvalue(), changed + 1
            new.writestr(info.filename, data)
    assert changed
    members[name] = forged.getvalue()
    put_together(path, members, manifest_of(members))
    with pytest.raises(FileFormatError):
        ibug.load(path)
