# Everything runs in a virtual environment of the project's own. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Each worker of `make test` has a Spark of its own, which takes about 2 GiB.
WORKERS ?= 2

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# What a user installs, at the locked versions, and a Java where none fits.
$(VENV)/.installed: setup.py requirements-dev.txt scripts/provide_java.py
	$(PYTHON) -c 'import sys; assert (3, 10) <= sys.version_info < (3, 14), "dbt-sparkevolve needs Python 3.10 to 3.13: make PYTHON=python3.11 ..."'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint requirements-dev.txt --config-settings editable_mode=compat --editable '.[session]'
	$(BIN)/python scripts/provide_java.py
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --requirement requirements-dev.txt
	@touch $@

.PHONY: demo
demo: $(VENV)/.installed ## Load five releases of a data set, keep every column, compare with the expected values
	$(BIN)/python integration_tests/demo.py

.PHONY: test
test: $(VENV)/.installed-dev ## All tests: unit, functional on a real session, the integration project
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope tests/unit
	@# One process alone downloads Spark's jars on a new machine: two at once would write the same files.
	$(BIN)/python -m pytest tests/functional/columns/test_added_and_removed.py::test_add_one_later_remove_one
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope tests/functional

.PHONY: test-unit
test-unit: $(VENV)/.installed-dev ## The tests that need no Java, a few seconds
	$(BIN)/python -m pytest tests/unit

.PHONY: test-thrift
test-thrift: $(VENV)/.installed-dev ## Thrift connections, lost ones too, and the integration project on a real Spark Thrift server
	$(BIN)/python -m pytest --profile thrift tests/functional/connections/test_thrift.py tests/functional/failures/test_lost_connections.py tests/functional/test_integration_project.py

.PHONY: lint
lint: $(VENV)/.installed-dev ## ruff, mypy, import-linter and codespell
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/lint_imports.py
	$(BIN)/codespell

.PHONY: lock
lock: ## Write requirements-dev.txt again (needs uv)
	uv pip compile --quiet --universal --python-version 3.10 --no-header --no-annotate \
		--extra dev setup.py requirements-dev.in --output-file requirements-dev.txt

.PHONY: clean
clean: ## Remove the virtual environment and all that tests and the demo made
	rm -rf $(VENV) build dist *.egg-info integration_tests/.sparkevolve integration_tests/target integration_tests/logs
