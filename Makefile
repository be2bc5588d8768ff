# Everything runs in one virtual environment, .venv, which each target fills with what it needs the first time.
# Only make and Python 3.11 or newer have to be there; choose another interpreter with `make test PYTHON=python3.12`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
PYTEST := -m pytest -n auto --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two pips writing into one environment at the same time would break it under `make -j`.
.NOTPARALLEL:
# Bytecode is kept: without it every process that the tests start would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(VENV)/.installed-demo ## Forecast late flights on real data; judge, watch and repair the forecast, and write a report (a minute or two)
	@$(BIN)/python examples/flights.py

# The workers of pytest fill the cores: threads of linear algebra beside them spend a quarter of the time on waiting.
test coverage oldest: export OMP_NUM_THREADS = 1
test coverage oldest: export OPENBLAS_NUM_THREADS = 1

.PHONY: test
test: lint ## Run the checks of `make lint`, then every test and documented example
	$(BIN)/python $(PYTEST)

.PHONY: coverage
coverage: lint ## The same as `make test`, and name the lines and branches of src that no test reaches
	$(BIN)/python $(PYTEST) --cov

.PHONY: oldest
# The lowest versions are ours only: what those libraries import is recent, and has deprecated some of what they use;
# and Spark 3.5 leaves it to Python to close its sockets.
oldest: $(OLDEST)/.installed ## Run every test on the lowest versions that pyproject.toml allows
	$(OLDEST)/bin/python $(PYTEST) -W ignore::DeprecationWarning -W "ignore:unclosed <socket.socket:ResourceWarning"

.PHONY: lint
lint: $(VENV)/.installed-dev ## Check style, formatting, types and import directions
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

.PHONY: reference
reference: ## Compute the reference values of R anew, where R is installed, and compare them with those in tests/reference
	@$(PYTHON) .ci/reference.py

.PHONY: bench
bench: $(VENV)/.installed-bench ## Compare values and speed with other packages, side by side
	@$(BIN)/python benchmarks/run.py

.PHONY: bench-scale
bench-scale: $(VENV)/.installed-test ## Time and memory of a certificate for up to 10^8 rows in files, and on Spark
	@$(BIN)/python benchmarks/scale.py

.PHONY: docs
docs: $(VENV)/.installed-docs ## Build the documentation site, with every example of the gallery; a warning is an error
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --jobs auto --quiet docs docs/_build
	@echo "Open docs/_build/index.html in a browser; it needs no network."

.PHONY: links
links: $(VENV)/.installed-docs ## Ask whether the addresses elsewhere that the documentation links to still answer
	$(BIN)/python -m sphinx --builder linkcheck --define plot_gallery=0 --jobs auto --quiet docs docs/_build/links

.PHONY: dist
dist: $(VENV)/.installed-dist ## Build what a release consists of, check it and try it in new environments
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .ci/smoke.py dist/*

.PHONY: clean
clean: ## Remove the environments, built files and caches
	rm -rf $(VENV) $(OLDEST) build dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf docs/_build docs/gallery docs/reference/api docs/reference/commands docs/reference/schemas
	find src tests examples benchmarks .ci -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The package is installed editable, so only a change of pyproject.toml calls for a new installation.
$(VENV)/.installed-%: pyproject.toml | $(VENV)/.created
	@echo "Installing calibrant and its '$*' dependencies into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --editable . --group $*
	@touch $@

# Nothing is written twice: uv reads the lower bounds of pyproject.toml, and takes them. Matplotlib 3.9 calls what
# pyparsing 3.3 warns of, and some tests start processes in which a warning is an error.
$(OLDEST)/.installed: pyproject.toml | $(VENV)/.installed-oldest
	@echo "Installing calibrant and the lowest versions it allows into $(OLDEST) ..."
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(OLDEST)
	@$(BIN)/uv pip install --quiet --python $(OLDEST) --resolution lowest-direct --editable ".[all]" --group test "pyparsing>=3.1,<3.3"
	@$(BIN)/uv pip list --quiet --python $(OLDEST)
	@touch $@

# The pip inside a fresh environment can be too old to know --group (25.1), hence the upgrade.
$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11 or newer, or run make with PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("calibrant needs Python 3.11 or newer, and $(PYTHON) is %d.%d: run make with PYTHON=/path/to/a/newer/python" % sys.version_info[:2])'
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@
