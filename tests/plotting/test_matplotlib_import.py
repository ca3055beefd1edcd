"""matplotlib is optional, and imported only when something is drawn."""

import subprocess
import sys
from textwrap import dedent

import pytest

WITHOUT = """
import sys
sys.modules["matplotlib"] = None
from ibug import plotting
from ibug.exceptions import MissingDependencyError
try:
    {call}
except MissingDependencyError as error:
    assert isinstance(error, ImportError)
    print(error)
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_does_not_import_matplotlib():
    assert run("import sys, ibug.plotting; print('matplotlib' in sys.modules)") == "False"


def test_pandas_is_not_needed():
    pytest.importorskip("matplotlib")
    code = """
    import sys
    sys.modules["pandas"] = None
    from ibug.plotting import PITDisplay
    print(PITDisplay.from_predictions([0.0], ([0.0], [1.0]), n_bins=2).counts)
    """
    assert run(dedent(code)) == "[0 1]"


@pytest.mark.parametrize(
    "call",
    [
        "plotting.PITDisplay.from_predictions([0.0], ([0.0], [1.0]))",
        "plotting.TreeFractionDisplay.from_estimator(None, *[None] * 6)",
        'plotting.LeafDensityDisplay({}, "tree").plot()',
    ],
)
def test_without_matplotlib_the_error_says_what_to_install(call):
    assert 'pip install "ibug[plot]"' in run(WITHOUT.format(call=call))
