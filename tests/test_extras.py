"""What a user is told who has not installed an extra."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("library", ["skpro", "mlflow"])
def test_the_error_says_what_to_install(library):
    code = f"import sys; sys.modules[{library!r}] = None; import ibug.{library}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ibug.exceptions.MissingDependencyError" in done.stderr
    assert f'pip install "ibug[{library}]"' in done.stderr
