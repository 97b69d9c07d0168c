# The commands of this project. `make demo` and `make test` need Python 3.11+ and nothing else;
# `make test-real`, `make test-cluster` and `make test-spark` also need Java 17 and Maven, `make demo-spark` Java 17.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Where it is set, each of the many processes of tests, demos and Spark compiles all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint test-real test-cluster test-spark test-browser demo-spark bench bench-spark proto clean

demo: $(VENV)/installed
	$(BIN)/pulsar-trio demo

# Which lines no test runs: `.venv/bin/coverage report`, or build/coverage.json.
test: lint
	$(BIN)/python -m pytest --numprocesses auto --cov --cov-report=json:build/coverage.json
	$(BIN)/coverage report | grep '^TOTAL'

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright --pythonpath $(BIN)/python --warnings
	$(BIN)/lint-imports --cache-dir build/import-linter

# Two processes, each with a Pulsar of its own: most of these tests wait for the broker. LONG=1: the Go client too.
test-real: $(VENV)/installed-test
	$(BIN)/python -m tests.real_pulsar fetch
	$(BIN)/python -m pytest -m 'real$(if $(LONG),, and not long)' --numprocesses 2

# ZooKeeper, a bookie and two brokers, plain and with TLS and tokens: about twenty minutes. SHORT=1: three of
# its scenarios, about two minutes.
test-cluster: $(VENV)/installed-test
	$(BIN)/python -m tests.real_pulsar fetch
	$(BIN)/python -m pytest tests/cluster -m 'cluster$(if $(SHORT), and not long)'

# tests/spark, against our broker and a real Pulsar. LONG=1: on a standalone Spark cluster, too.
test-spark: java-for-test-spark $(VENV)/installed-test-spark
	$(BIN)/python -m tests.real_pulsar fetch
	$(BIN)/python -m pytest tests/spark -m '(spark or not spark)$(if $(LONG),, and not long)' \
	    --cov --cov-config=tests/spark/coverage.ini --cov-report=
	$(BIN)/coverage report --rcfile tests/spark/coverage.ini | grep '^TOTAL'

# In headless Chromium, which the machine has to have.
test-browser: $(VENV)/installed-test
	$(BIN)/python -m pytest tests/browser -m browser

demo-spark: java-for-demo-spark $(VENV)/installed-spark
	$(BIN)/python examples/spark-orders/demo.py

# Before anything is installed: in one line where there is no Java that Spark can run on.
java-for-%:
	@$(PYTHON) src/pulsar_spark/java.py 'make $*'

# URL=pulsar://host:port measures against that broker instead of the embedded one; TLS_URL=pulsar+ssl://… and
# TRUST=FILE: with TLS, too.
bench: $(VENV)/installed-test
	$(BIN)/python -m bench $(if $(URL),--url $(URL))

bench-spark: java-for-bench-spark $(VENV)/installed-test-spark
	$(BIN)/python -m tests.real_pulsar fetch
	$(BIN)/python -m bench.spark

proto: $(VENV)/installed-test
	$(BIN)/python tools/generate_proto.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found %d.%d" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@ $(VENV)/installed

$(VENV)/installed-spark: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[spark]'
	touch $@ $(VENV)/installed

$(VENV)/installed-test-spark: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,spark]'
	touch $@ $(VENV)/installed $(VENV)/installed-test $(VENV)/installed-spark

clean:
	rm -rf $(VENV) build dist
