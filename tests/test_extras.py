"""The core works alone: no extra is imported unless it is needed, and where one is missing the error names it."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.once

# What a user of the core asks for, and the extra that it needs.
ASKED = {
    "import ibug.skpro": "skpro",
    "import ibug.mlflow": "mlflow",
    "import ibug.dask": "dask",
    "ibug.CBURegressor().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0])": "catboost",
    "from ibug.explain import explain_width; explain_width(None, None)": "explain",
    'import ibug.report; ibug.report.write(None, None, None, "x.html")': "report",
    "from ibug.plotting import *; PITDisplay.from_predictions([0.0], ([0.0], [1.0]))": "plot",
    "from ibug.plotting import *; TreeFractionDisplay.from_estimator(None, *[None] * 6)": "plot",
    'from ibug.plotting import *; LeafDensityDisplay({}, "tree").plot()': "plot",
}
BOOSTERS = ("lightgbm", "xgboost", "catboost")
OPTIONAL = (*BOOSTERS, "skops", "dask", "distributed", "matplotlib", "plotly", "shap", "skpro", "mlflow")

# One process for all questions: to import scikit-learn takes most of its time.
WITHOUT_EXTRAS = f"""
import json, sys
sys.modules |= dict.fromkeys({OPTIONAL})
import ibug
told = {{}}
for asked in json.loads(sys.argv[1]):
    try:
        exec(asked)
    except ImportError as error:
        told[asked] = [type(error).__module__ + "." + type(error).__name__, str(error)]
print(json.dumps(told))
"""


def run(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def told():
    return json.loads(run(WITHOUT_EXTRAS, json.dumps(list(ASKED))))


@pytest.mark.parametrize("asked", ASKED)
def test_the_error_says_what_to_install(told, asked):
    error, message = told[asked]
    assert error == "ibug.exceptions.MissingDependencyError"
    assert f'pip install "ibug-learn[{ASKED[asked]}]", or pip install ".[{ASKED[asked]}]"' in message


def test_importing_imports_no_extra():
    code = f"import sys, ibug, ibug.plotting; print(sorted({{*{OPTIONAL}, 'ibug.dask'}} & set(sys.modules)))"
    assert run(code).strip() == "[]"


def test_plots_need_no_pandas():
    pytest.importorskip("matplotlib")
    code = (
        "import sys; sys.modules['pandas'] = None; from ibug.plotting import PITDisplay\n"
        "print(PITDisplay.from_predictions([0.0], ([0.0], [1.0]), n_bins=2).counts)"
    )
    assert run(code).strip() == "[0 1]"
