# The commands of this project. `make demo` and `make test` need Python 3.11+ and nothing else;
# `make test-real` also needs Java 17 and Maven.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint test-real bench proto docs clean

demo: $(VENV)/installed
	$(BIN)/pulsar-trio demo

test: lint
	$(BIN)/python -m pytest --cov --cov-report=term --cov-report=json:build/coverage.json

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir build/import-linter

test-real: $(VENV)/installed-test
	$(BIN)/python -m tests.real_pulsar fetch
	$(BIN)/python -m pytest -m real

# URL=pulsar://host:port measures against that broker instead of the embedded one.
bench: $(VENV)/installed-test
	$(BIN)/python -m bench $(if $(URL),--url $(URL))

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

clean:
	rm -rf $(VENV) build dist
