# The commands of the README. Each makes its own .venv and needs nothing but Python 3.11 and make.
PYTHON ?= python3
BIN := .venv/bin
# One version of torch, triton as that one wants it, and one version of the tools that check. Where a CPU build of it is offered, pip takes that.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many programs: none compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test pytest check coverage bench torture clean

demo: .venv/demo.stamp
	$(BIN)/scalor demo --out demo

# The checks run beside the tests.
test: .venv/dev.stamp
	$(MAKE) -j 2 check pytest

pytest: .venv/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: .venv/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --cov --cov-report=term --cov-report=xml

# On a GPU: PYTHONPATH=. python -m benchmarks gpu
bench: .venv/demo.stamp
	$(BIN)/python -m benchmarks cpu

# Hostile inputs, kills and exhausted machines: make torture BUDGET=600 (seconds) SEED=0
torture: .venv/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.torture --budget $(or $(BUDGET),600) --seed $(or $(SEED),0)

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e '.[video]'
	touch $@

.venv/dev.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@ .venv/demo.stamp

clean:
	rm -rf .venv demo runs
