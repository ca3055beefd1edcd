"""The page about plots: its code runs, and its images are there."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from sklearn.ensemble import GradientBoostingRegressor

from ibug import plotting

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def make_images():
    spec = importlib.util.spec_from_file_location("make_images", DOCS / "make_images.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def images():
    return re.findall(r"\(images/(\w+\.png)\)", (DOCS / "plotting.md").read_text(encoding="utf-8"))


def test_the_command_makes_every_image_of_the_page(make_images, monkeypatch, tmp_path):
    pytest.importorskip("shap", exc_type=ImportError)
    monkeypatch.delenv("IBUG_DATA", raising=False)
    monkeypatch.setattr(make_images, "train", lambda X, y: GradientBoostingRegressor(n_estimators=20).fit(X, y))
    monkeypatch.setattr(sys, "argv", ["make_images.py", "--out", str(tmp_path)])
    make_images.main()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(images())


def test_the_page_shows_every_display_and_its_image_is_there():
    text = (DOCS / "plotting.md").read_text(encoding="utf-8")
    displays = [name for name in plotting.__all__ if name.endswith("Display")]
    assert all(f"plotting.{name}." in text for name in displays)
    assert "plotting.diagnose(" in text
    assert len(images()) == len(displays) + 1
    for name in images():
        most = 250_000 if name == "diagnose.png" else 150_000  # which is seven in one
        assert 0 < (DOCS / "images" / name).stat().st_size <= most
