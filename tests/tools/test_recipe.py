"""The recipe for conda-forge can be rendered, and says the same as the package's metadata."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

jinja2 = pytest.importorskip("jinja2")
yaml = pytest.importorskip("yaml")

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
# conda's names of what is named otherwise on PyPI, and the package that shares the import name.
RENAMED = {"matplotlib-base": "matplotlib", "dask-core": "dask"}
NAMESAKE = "ibug"


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def recipe():
    template = (ROOT / "recipe" / "meta.yaml").read_text("utf-8")
    functions = {name: lambda language, name=name: f"{name}_{language}" for name in ("compiler", "stdlib")}
    rendered = jinja2.Template(template, undefined=jinja2.StrictUndefined).render(
        **functions, PYTHON="python", target_platform="linux-64"
    )
    return yaml.safe_load(rendered)


def bounds(requirements):
    found = [Requirement(one) for one in requirements]
    return {RENAMED.get(one.name, one.name): str(one.specifier) for one in found}


def test_name_version_and_licence(recipe, project):
    assert recipe["package"] == {"name": project["project"]["name"], "version": project["project"]["version"]}
    assert recipe["about"]["license"] == project["project"]["license"]
    assert recipe["about"]["summary"] == project["project"]["description"]
    assert (ROOT / recipe["about"]["license_file"]).exists()
    for command in project["project"]["scripts"].items():
        assert " = ".join(command) in recipe["build"]["entry_points"]


def test_it_asks_for_what_the_package_asks_for(recipe, project):
    requirements = recipe["requirements"]
    assert bounds(set(requirements["run"]) - {"python"}) == bounds(project["project"]["dependencies"])
    assert bounds(project["build-system"]["requires"]).items() <= bounds(requirements["host"]).items()


def test_what_it_constrains_are_the_extras(recipe, project):
    constrained = bounds(recipe["requirements"]["run_constrained"])
    assert constrained.pop(NAMESAKE) == "<0"
    extras = project["project"]["optional-dependencies"]
    names = ("lightgbm", "xgboost", "catboost", "plot", "report", "dask", "skops", "cli", "explain")
    assert constrained == bounds(one for name in names for one in extras[name])
