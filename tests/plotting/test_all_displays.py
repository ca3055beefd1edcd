"""What holds for every display: axes, errors, figures that can be saved."""

import numpy as np
import pytest

from ibug import plotting
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.explain import Drivers
from ibug.metrics import drift

plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
Y = RNG.normal(size=50)
DISTRIBUTION = Normal(np.zeros(50), RNG.uniform(0.5, 2, 50))

OF_PREDICTIONS = {
    name: getattr(plotting, f"{name}Display") for name in ("Calibration", "PIT", "Interval", "SpreadError", "Density")
}


def of_predictions(name, y=Y, distribution=DISTRIBUTION, **options):
    return OF_PREDICTIONS[name].from_predictions(y, distribution, **options)


def of_results(name, **options):
    if name == "Tuning":
        return plotting.TuningDisplay.from_results({"k": [3, 5, 9], "score": [2.0, 1.0, 1.5]}, **options)
    if name == "Width":
        return plotting.WidthDisplay(["a", "b"], ["1", "x"], np.array([0.5, -0.2]), 1.0).plot(**options)
    if name == "Drivers":
        return plotting.DriversDisplay.from_results(Drivers(["a", "b"], np.array([3, 1]), np.array([1, 9])), **options)
    if name == "LeafDensity":
        return plotting.LeafDensityDisplay.from_results({"model": [0.1, 0.3, 0.2]}, **options)
    if name == "Joint":
        return plotting.JointDisplay(RNG.normal(size=(20, 2))).plot(**options)
    if name == "Drift":
        return plotting.DriftDisplay.from_results(
            drift({"prediction": np.linspace(0.2, 0.9, 50)}, {"prediction": np.linspace(0.3, 1, 80)}), **options
        )
    return plotting.TreeFractionDisplay.from_results([0.5, 1], {"first": [2, 1]}, {"first": [1, 2]}, **options)


def draw(name, **options):
    return of_predictions(name, **options) if name in OF_PREDICTIONS else of_results(name, **options)


EVERY = [*OF_PREDICTIONS, "Tuning", "LeafDensity", "TreeFraction", "Drift", "Width", "Drivers", "Joint"]


def test_every_display_is_tested():
    assert sorted(plotting.__all__) == sorted([*(f"{name}Display" for name in EVERY), "Diagnosis", "diagnose"])


@pytest.mark.parametrize("name", EVERY)
def test_it_can_be_saved_and_says_what_its_axes_are(name, tmp_path):
    display = draw(name)
    display.figure_.savefig(tmp_path / "plot.png")
    panels = np.ravel(display.ax_)
    assert panels[-1].get_xlabel()
    assert all(ax.get_ylabel() for ax in panels)
    assert panels[0].get_legend() is not None


@pytest.mark.parametrize("name", EVERY)
def test_it_draws_on_given_axes(name, tmp_path):
    figure, (left, _) = plt.subplots(1, 2)
    display = draw(name, ax=left)
    assert display.figure_ is figure
    if name != "TreeFraction":  # which divides the axes into two
        assert display.ax_ is left
    assert plt.get_fignums() == [figure.number]
    # And again: a display can be drawn elsewhere, and returns itself.
    assert display.plot() is display
    assert display.figure_ is not figure
    figure.savefig(tmp_path / "plot.png")


@pytest.mark.parametrize("name", OF_PREDICTIONS)
@pytest.mark.parametrize(
    ("y", "distribution", "message"),
    [
        ([], DISTRIBUTION, "y must have shape"),
        (np.where(np.arange(50) == 3, np.nan, Y), DISTRIBUTION, "y contains 1 NaN"),
        (Y[:7], DISTRIBUTION, r"\(?50"),
        (Y, Y, "distribution"),
        (Y, (np.zeros(50), -np.ones(50)), "above zero|A tuple could be"),
    ],
    ids=["empty", "nan", "mismatch", "no distribution", "bad distribution"],
)
def test_bad_input(name, y, distribution, message):
    with pytest.raises(InvalidInputError, match=message):
        of_predictions(name, y, distribution)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", ["Calibration", "PIT", "Interval", "SpreadError", "Density", "LeafDensity"])
def test_an_estimator_that_cannot_predict_distributions(name, data):
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit(*data["train"])
    arguments = data["test"][:1] if name == "LeafDensity" else data["test"]
    with pytest.raises(InvalidInputError, match="this LinearRegression has no"):
        getattr(plotting, f"{name}Display").from_estimator(model, *arguments)


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_one_row(name, tmp_path):
    options = {"rows": [0]} if name == "Density" else {}
    of_predictions(name, Y[:1], DISTRIBUTION[:1], **options).figure_.savefig(tmp_path / "plot.png")


@pytest.mark.parametrize("name", ["Interval", "SpreadError", "Density", "Tuning", "TreeFraction"])
def test_the_unit_is_on_an_axis(name):
    panels = np.ravel(draw(name, unit="MPa").ax_)
    assert any("(MPa)" in label for ax in panels for label in (ax.get_xlabel(), ax.get_ylabel()))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("PIT", {"n_bins": 0}, "n_bins must be an integer of at least 1; got 0"),
        ("SpreadError", {"n_bins": 2.5}, "n_bins"),
        ("SpreadError", {"n_points": True}, "n_points"),
        ("SpreadError", {"scale": "cubic"}, "scale must be one of"),
        ("Interval", {"n_rows": 0}, "n_rows"),
        ("Interval", {"sort_by": "x"}, "sort_by must be one of"),
        ("Interval", {"coverage": 1.5}, "between 0 and 1"),
        ("Calibration", {"n_levels": 1}, "n_levels"),
        ("LeafDensity", {"n_bins": 0}, "n_bins"),
        ("LeafDensity", {"per": "leaf"}, "per must be one of"),
        ("Width", {"n_features": 0}, "n_features must be an integer of at least 1"),
        ("Drivers", {"n_features": 0}, "n_features must be an integer of at least 1"),
    ],
)
def test_bad_options(name, options, message):
    with pytest.raises(InvalidInputError, match=message):
        draw(name, **options)
