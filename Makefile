# make demo   set everything up and run the main job on real data
# make test   set everything up and check everything: lint, types, layers, tests (newest and oldest versions)
# make check  the same with the newest versions only
# make test-oldest TESTS=all  all tests with the oldest versions; make test leaves some of them out
# make sanitize  run the tests of the compiled kernels with every memory access and all arithmetic checked (minutes)
# make test-browser  test the report in headless Chromium, which must be there
# make test-arm  test the search loops for 64-bit ARM (NEON), compiled by a cross compiler and run by an emulator, which must be there
# make docs   build the documentation, with every example run, into docs/_build/html (minutes)
# make bench  measure the speed (minutes); make bench-document  all figures of docs/performance.md (an hour)
# make rehearsal  build, check, install, test and uninstall what a release would publish; PYTHONS="python3.10 …" names interpreters (minutes)
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
VENV_SANITIZE ?= .venv-sanitize
BIN = $(VENV)/bin
CPP = $(shell find cpp tests/cpp -name '*.[ch]pp')

# Python keeps what it has compiled, even if it is told to write no bytecode: the tests start many processes, each of which
# would compile scikit-learn, SciPy and pandas again. It keeps it here, as a folder beside the sources would look like a new module.
BYTECODE = $(CURDIR)/build/bytecode
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX = $(BYTECODE)

# An editable install knows the modules that were there when it was made, and the kernel as it was built then: made again
# when the build's sources change, or a module comes or goes (a folder's time tells).
SOURCES = pyproject.toml CMakeLists.txt $(shell find cpp -type f) $(shell find src/ibug -type d -not -name __pycache__)

# uv installs in seconds what takes pip minutes: the one on the path, or one that pip gets; pip itself where that fails.
UV = $(or $(shell command -v uv),$(BIN)/uv)
# $(call install,environment,requirements)
install = $(UV) pip install --quiet --python $(1)/bin/python $(2) || \
	{ $(1)/bin/python -m ensurepip >/dev/null && $(1)/bin/python -m pip install --quiet $(2); }
# $(call install-ibug,environment,[extra],more requirements): the last step is for a wheel of the same version as before.
# The first step is for environments of before 0.2.0: they have the distribution by its former name, ibug.
install-ibug = @echo "Installing ibug$(2) into $(1)" && \
	rm -rf $(addprefix $(1)/lib/python*/site-packages/,ibug-*.dist-info _editable_skbc_ibug.*) $(BYTECODE)$(abspath $(1)) && \
	{ $(call install,$(1),"$(WHEEL)$(2)" $(3)); } && { $(call install,$(1),--force-reinstall --no-deps "$(WHEEL)"); }

.PHONY: demo test check lint types layers pytest test-oldest test-browser test-arm test-bridges docs bench bench-document bench-serving study study-env study-treeffuser-env test-study format clean

demo: $(VENV)/demo.stamp
	$(BIN)/python examples/demo.py

# Beside the tests, which do not keep every processor busy all the time, runs what uses one only: the other checks, and
# the installation of the other environments. If one fails, make waits for the other, and fails.
CHECKS = lint types layers pytest

test:
	@$(MAKE) --no-print-directory --jobs=2 $(CHECKS) $(ENV_OLDEST) $(VENV_BRIDGES)/stamp
	@$(MAKE) --no-print-directory test-oldest test-bridges

check:
	@$(MAKE) --no-print-directory --jobs=2 $(CHECKS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CPP)

types: $(VENV)/dev.stamp
	$(BIN)/mypy

layers: $(VENV)/dev.stamp
	$(BIN)/lint-imports

pytest: $(VENV)/dev.stamp
	$(BIN)/pytest $(IN_PARALLEL)

# A test that is long does not leave the other processors idle at the end.
IN_PARALLEL = -n auto --dist worksteal

# The oldest supported versions, from tests/oldest.txt. They have no builds for Python 3.13 and newer. Benchmarks and the
# study are not part of what is supported: they run with the newest versions, and with those of the study. Left out, too,
# is what takes long and has no library as its subject: documents, the index and its kernels, our own formulas, loops and
# choices, forged files, the starts and deaths of processes; the other tests reach nearly every line of ibug that these
# reach. TESTS=all leaves nothing out, and so does the workflow.
OLDEST_WITHOUT = benchmarks study
ifneq ($(TESTS),all)
OLDEST_WITHOUT += cpp docs examples tools test_architecture.py test_source_code.py test_extras.py neighbors calibration describe online \
	leaves/walk/test_walk_kernel.py leaves/test_library_imports.py dask/test_faults.py report/test_browser.py \
	regressor/test_spread_parameter.py regressor/test_conformal_parameter.py regressor/test_stack_parameter.py \
	distributions/test_far_tails.py distributions/test_likelihood.py distributions/test_mixture.py distributions/test_roots.py \
	distributions/test_stack.py distributions/test_truncated.py persistence/test_atomic.py persistence/test_budget.py \
	persistence/test_damage.py persistence/test_file_fuzz.py persistence/test_forged_trees.py persistence/test_isolated.py \
	persistence/test_threads.py cli/test_process.py cli/test_start.py
endif
ifeq ($(shell $(PYTHON) -c "import sys; print(sys.version_info < (3, 13))"),True)
ENV_OLDEST = $(VENV_OLDEST)/stamp
test-oldest: $(ENV_OLDEST)
	$(VENV_OLDEST)/bin/pytest $(IN_PARALLEL) $(OLDEST_WITHOUT:%=--ignore=tests/%)
else
test-oldest:
	@echo "The oldest supported versions cannot be installed on this Python: not tested. Set PYTHON to 3.10, 3.11 or 3.12."
endif

# Installs no browser: says what is missing, and fails.
test-browser: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.report.browser
	$(BIN)/pytest tests/report/test_browser.py

# Installs neither the cross compiler nor the emulator: says what is missing, and fails.
test-arm: $(VENV)/dev.stamp
	@command -v aarch64-linux-gnu-g++ && command -v qemu-aarch64 || \
	{ echo "aarch64-linux-gnu-g++ or qemu-aarch64 is missing (Debian: g++-aarch64-linux-gnu, qemu-user)."; exit 1; }
	$(BIN)/pytest tests/cpp/test_loops.py

# skpro, MLflow, skforecast and the service, in an environment of their own: some of them hold pandas back.
test-bridges: $(VENV_BRIDGES)/stamp
	$(VENV_BRIDGES)/bin/pytest $(IN_PARALLEL) tests/skpro tests/mlflow tests/regressor/test_skforecast.py tests/examples/test_serve.py src/ibug/skpro src/ibug/mlflow

bench-serving: $(VENV_BRIDGES)/stamp
	$(VENV_BRIDGES)/bin/python benchmarks/serving.py --requests 100000 --write

# The code of the pages and the gallery's examples are run; a warning is an error. One environment has all packages that they show.
docs: $(VENV_DOCS)/stamp
	$(VENV_DOCS)/bin/python docs/run_pages.py
	rm -rf docs/_build docs/api/generated docs/gallery  # nothing of an earlier build
	$(VENV_DOCS)/bin/sphinx-build -q -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/speed.py

# All figures of docs/performance.md but those of fewer trees, on an idle machine (an hour). IBUG_DATA names the folder of datasets; TREEFFUSER may
# name a file of results of benchmarks/treeffuser.py, and PEERS the Python of an environment that has the other packages.
PEERS ?= $(BIN)/python

bench-document: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/speed.py --peers-python $(PEERS) $(if $(TREEFFUSER),--treeffuser $(TREEFFUSER)) --report docs/performance.md
	$(BIN)/python benchmarks/sharing.py --write
	$(BIN)/python benchmarks/search.py --write
	$(BIN)/python benchmarks/search.py --growth --write
	$(BIN)/python benchmarks/search.py --growth --grown facebook --write

# The paper's study needs Python 3.11: some of its methods have no packages for newer ones. STUDY has the options of the run.
STUDY ?= --folds 10 --grid full --max-rows 10000 --jobs 2

study-env: $(VENV_STUDY)/stamp

# Treeffuser pins LightGBM 4.3, scikit-learn 1.5 and NumPy 1, so that ibug cannot be installed beside it.
study-treeffuser-env: $(VENV_TREEFFUSER)/stamp

study: $(VENV_STUDY)/stamp
	$(VENV_STUDY)/bin/python -m benchmarks run $(STUDY)

# The study's tests, with all of its methods; `make check` skips those whose packages are not there.
test-study: $(VENV_STUDY)/stamp
	$(VENV_STUDY)/bin/pytest -n auto tests/study

# AddressSanitizer and UndefinedBehaviorSanitizer, by GCC on Linux, over the tests that reach the kernels most directly. Their
# libraries must be loaded before all others. Python never gives all of its memory back, so leaks are not looked for. Their reports
# go past Python, and so past what pytest would capture. What they add to all memory is too much for a test of its amount.
SANITIZED ?= tests/neighbors $(addprefix tests/leaves/walk/,test_walk_kernel.py test_walk_fuzz.py) \
  tests/distributions/test_likelihood.py tests/distributions/test_stack.py tests/rule/stack tests/rule/spread \
  $(addprefix tests/persistence/,test_damage.py test_file_fuzz.py test_forged_trees.py test_budget.py test_threads.py)
SANITIZERS = $(foreach library,libasan.so libubsan.so libstdc++.so,$(shell $(CXX) -print-file-name=$(library)))

.PHONY: sanitize
sanitize: $(VENV_SANITIZE)/stamp
	LD_PRELOAD="$(SANITIZERS)" ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
	$(VENV_SANITIZE)/bin/python -m pytest -p no:cacheprovider --capture=sys $(SANITIZED) --ignore=tests/neighbors/test_memory.py

# The interpreters to rehearse a release with, oldest first.
PYTHONS ?= $(PYTHON)

.PHONY: rehearsal
rehearsal:
	$(PYTHON) tools/rehearsal.py $(PYTHONS)

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# Environments.

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	@command -v uv >/dev/null || $(BIN)/python -m pip install --quiet uv || echo "There is no uv: pip takes longer."

$(VENV_OLDEST)/bin/python $(VENV_BRIDGES)/bin/python $(VENV_DOCS)/bin/python: | $(BIN)/python
	$(PYTHON) -m venv --without-pip $(@:/bin/python=)

# The extensions are compiled once, and what has not changed is not compiled again: what builds them stays in $(VENV), and
# each environment installs the same editable wheel.
EDITABLE = build/editable
WHEEL = $$(ls ./$(EDITABLE)/*.whl)
HOOKS = $(BIN)/python -c "from scikit_build_core import build
BUILD_SYSTEM = $(shell sed -n 's/^requires = \[\(.*\)\]/\1/p' pyproject.toml | tr ',' ' ')

$(EDITABLE)/stamp: $(SOURCES) | $(BIN)/python
	@echo "Compiling what has changed; $(EDITABLE)/log has the compiler's messages" && rm -rf $(EDITABLE) && mkdir -p $(EDITABLE)
	@$(call install,$(VENV),$(BUILD_SYSTEM))
	@$(HOOKS); print(*build.get_requires_for_build_editable(), sep='\n')" >$(EDITABLE)/requires.txt  # CMake, where there is none
	@$(call install,$(VENV),$(BUILD_SYSTEM) --requirement $(EDITABLE)/requires.txt)
	@$(HOOKS); build.build_editable('$(EDITABLE)')" >$(EDITABLE)/log 2>&1 || { cat $(EDITABLE)/log; exit 1; }
	touch $@

$(VENV)/demo.stamp: $(EDITABLE)/stamp
	$(call install-ibug,$(VENV),[lightgbm])
	touch $@

$(VENV)/dev.stamp: $(EDITABLE)/stamp
	$(call install-ibug,$(VENV),[dev])
	touch $@ $(VENV)/demo.stamp

$(VENV_OLDEST)/stamp: tests/oldest.txt $(EDITABLE)/stamp | $(VENV_OLDEST)/bin/python
	$(call install-ibug,$(VENV_OLDEST),[all],--constraint tests/oldest.txt --requirement tests/oldest.txt)
	touch $@

$(VENV_BRIDGES)/stamp: $(EDITABLE)/stamp | $(VENV_BRIDGES)/bin/python
	$(call install-ibug,$(VENV_BRIDGES),[bridges])
	touch $@

$(VENV_DOCS)/stamp: $(EDITABLE)/stamp | $(VENV_DOCS)/bin/python
	$(call install-ibug,$(VENV_DOCS),[docs])
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

$(VENV_SANITIZE)/stamp: $(SOURCES)
	$(PYTHON) -m venv $(VENV_SANITIZE)
	$(VENV_SANITIZE)/bin/python -m pip install --quiet --upgrade pip
	$(VENV_SANITIZE)/bin/python -m pip install --quiet --editable ".[lightgbm,skops]" "pytest>=8.3" "hypothesis>=6.100" "pandas>=2.2" \
	  --config-settings=build-dir=build/sanitize --config-settings=cmake.build-type=RelWithDebInfo \
	  --config-settings=cmake.define.IBUG_SANITIZE=ON
	touch $@

clean:
	rm -rf build dist docs/_build docs/api/generated docs/gallery $(VENV) $(VENV_OLDEST) $(VENV_STUDY) $(VENV_TREEFFUSER) $(VENV_BRIDGES) $(VENV_DOCS) $(VENV_SANITIZE)
