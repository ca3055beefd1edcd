# Every target sets up what it needs. `.venv/bin/nox --list` names all sessions; noxfile.py says what they do.
PYTHON ?= python3
NOX = .venv/bin/nox --session
# An editable install knows the modules that were there when it was made, and the kernels as they were built then.
SOURCES = pyproject.toml CMakeLists.txt noxfile.py $(shell find cpp -type f) $(shell find src/ibug -type d -not -name __pycache__)

.PHONY: demo test check docs bench study sanitize rehearsal format clean
demo: .venv/demo.stamp  # train LightGBM on real data, wrap it, show what a user gets
	.venv/bin/python examples/demo.py
test: check  # all checks, with the newest and with the oldest versions
	$(NOX) oldest bridges
check: .venv/dev.stamp  # style, types, import layers, and the tests with the newest versions
	$(NOX) lint tests
docs: .venv/bin/nox  # build the documentation, with every example run, into docs/_build/html (minutes)
	$(NOX) docs
bench: .venv/dev.stamp  # the cost of a prediction as a ratio to the model's own (minutes, on an idle machine)
	.venv/bin/python benchmarks/speed.py
study: .venv/bin/nox  # the paper's study (hours; it goes on where it was stopped)
	$(NOX) study
sanitize: .venv/bin/nox  # the tests of the kernels with every memory access and all arithmetic checked (minutes)
	$(NOX) sanitize
rehearsal: .venv/bin/nox  # build, check, install, test and uninstall what a release would publish (minutes)
	$(NOX) rehearsal
format: .venv/dev.stamp
	$(NOX) style
clean:
	rm -rf build dist docs/_build docs/api/generated docs/gallery .venv .nox

.venv/bin/nox:
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet "nox>=2025.2.9"
	command -v uv >/dev/null || .venv/bin/python -m pip install --quiet uv || echo "There is no uv: pip takes longer."
.venv/demo.stamp: $(SOURCES) | .venv/bin/nox
	$(NOX) demo && touch $@
.venv/dev.stamp: $(SOURCES) | .venv/bin/nox
	$(NOX) dev && touch $@ .venv/demo.stamp
