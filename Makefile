# make demo   set everything up and run the main job on real data
# make test   set everything up and check everything: lint, types, layers, tests (newest and oldest versions)
# make test-browser  test the report in headless Chromium, which must be there
# make docs   build the documentation, with every example run, into docs/_build/html (minutes)
# make bench  measure the speed (minutes)
# make study  run the paper's study, in an environment of its own (hours; it goes on where it was stopped)
# make study-treeffuser-env  make the environment in which benchmarks/treeffuser.py measures Treeffuser

PYTHON ?= python3
VENV ?= .venv
VENV_OLDEST ?= .venv-oldest
VENV_STUDY ?= .venv-study
PYTHON_STUDY ?= python3.11
VENV_TREEFFUSER ?= .venv-treeffuser
VENV_BRIDGES ?= .venv-bridges
VENV_DOCS ?= .venv-docs
BIN = $(VENV)/bin

# An editable install knows the modules that were there when it was made, and the kernel as it was built then: made again
# when the build's sources change, or a module comes or goes (a folder's time tells).
SOURCES = pyproject.toml CMakeLists.txt $(wildcard cpp/*.cpp cpp/ibug/*) $(shell find src/ibug -type d -not -name __pycache__)

.PHONY: demo test check lint types layers pytest test-oldest test-browser test-bridges docs bench bench-serving study study-env study-treeffuser-env test-study format clean

demo: $(VENV)/demo.stamp
	$(BIN)/python examples/demo.py

test: check test-oldest test-bridges

check: lint types layers pytest

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

layers: $(VENV)/dev.stamp
	$(BIN)/lint-imports

pytest: $(VENV)/dev.stamp
	$(BIN)/pytest -n auto

# The oldest supported versions, from tests/oldest.txt. They have no builds for Python 3.13 and newer. Benchmarks and the
# study are not part of what is supported: they run with the newest versions, and with those of the study.
ifeq ($(shell $(PYTHON) -c "import sys; print(sys.version_info < (3, 13))"),True)
test-oldest: $(VENV_OLDEST)/stamp
	$(VENV_OLDEST)/bin/pytest -n auto --ignore tests/benchmarks --ignore tests/study
else
test-oldest:
	@echo "The oldest supported versions cannot be installed on this Python: not tested. Set PYTHON to 3.10, 3.11 or 3.12."
endif

# Installs no browser: says what is missing, and fails.
test-browser: $(VENV)/dev.stamp
	@$(BIN)/python tests/report/browser.py
	$(BIN)/pytest tests/report/test_browser.py

# skpro, MLflow and the service, in an environment of their own: skpro holds pandas back.
test-bridges: $(VENV_BRIDGES)/stamp
	$(VENV_BRIDGES)/bin/pytest tests/bridges src/ibug/skpro src/ibug/mlflow

bench-serving: $(VENV_BRIDGES)/stamp
	$(VENV_BRIDGES)/bin/python benchmarks/serving.py --requests 100000 --write

# The code of the pages and the gallery's examples are run; a warning is an error. One environment has all packages that they show.
docs: $(VENV_DOCS)/stamp
	$(VENV_DOCS)/bin/python docs/run_pages.py
	rm -rf docs/_build docs/api/generated docs/gallery  # nothing of an earlier build
	$(VENV_DOCS)/bin/sphinx-build -q -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/speed.py

# The paper's study needs Python 3.11: some of its methods have no packages for newer ones. STUDY has the options of the run.
STUDY ?= --folds 10 --grid quick --jobs 2

study-env: $(VENV_STUDY)/stamp

# Treeffuser pins LightGBM 4.3, scikit-learn 1.5 and NumPy 1, so that ibug cannot be installed beside it.
study-treeffuser-env: $(VENV_TREEFFUSER)/stamp

study: $(VENV_STUDY)/stamp
	$(VENV_STUDY)/bin/python -m benchmarks run $(STUDY)

# The study's tests, with all of its methods; `make check` skips those whose packages are not there.
test-study: $(VENV_STUDY)/stamp
	$(VENV_STUDY)/bin/pytest -n auto tests/study

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/demo.stamp: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[lightgbm]"
	touch $@

$(VENV)/dev.stamp: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ $(VENV)/demo.stamp

$(VENV_OLDEST)/stamp: tests/oldest.txt $(SOURCES)
	$(PYTHON) -m venv $(VENV_OLDEST)
	$(VENV_OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(VENV_OLDEST)/bin/python -m pip install --quiet --editable ".[all]" --constraint tests/oldest.txt --requirement tests/oldest.txt
	touch $@

$(VENV_STUDY)/stamp: benchmarks/study/requirements.lock $(SOURCES)
	$(PYTHON_STUDY) -m venv $(VENV_STUDY)
	$(VENV_STUDY)/bin/python -m pip install --quiet --upgrade pip
	$(VENV_STUDY)/bin/python -m pip install --quiet --no-deps --requirement benchmarks/study/requirements.lock
	$(VENV_STUDY)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

$(VENV_TREEFFUSER)/stamp: benchmarks/treeffuser/requirements.lock
	$(PYTHON_STUDY) -m venv $(VENV_TREEFFUSER)
	$(VENV_TREEFFUSER)/bin/python -m pip install --quiet --upgrade pip
	$(VENV_TREEFFUSER)/bin/python -m pip install --quiet --no-deps --requirement benchmarks/treeffuser/requirements.lock
	touch $@

$(VENV_BRIDGES)/stamp: $(SOURCES)
	$(PYTHON) -m venv $(VENV_BRIDGES)
	$(VENV_BRIDGES)/bin/python -m pip install --quiet --upgrade pip
	$(VENV_BRIDGES)/bin/python -m pip install --quiet --editable ".[bridges]"
	touch $@

$(VENV_DOCS)/stamp: $(SOURCES)
	$(PYTHON) -m venv $(VENV_DOCS)
	$(VENV_DOCS)/bin/python -m pip install --quiet --upgrade pip
	$(VENV_DOCS)/bin/python -m pip install --quiet --editable ".[docs]"
	touch $@

clean:
	rm -rf build dist docs/_build docs/api/generated docs/gallery $(VENV) $(VENV_OLDEST) $(VENV_STUDY) $(VENV_TREEFFUSER) $(VENV_BRIDGES) $(VENV_DOCS)
