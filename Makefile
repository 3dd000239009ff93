# One virtual environment in .venv; every target that needs it makes it first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: install demo test check wheel slow docs bench clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

demo: install  ## fit the built-in sales data and write runs/sales
	$(BIN)/dfdbayes demo --out runs/sales --force

test: install  ## every promise by one case, and the examples of the package
	$(BIN)/pytest -n 2 --dist loadfile src tests

check: install  ## style, types, and the direction of imports
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/pytest tests/contract/test_imports.py

wheel:  ## the package as a user gets it: built, installed into an empty environment, and used
	.ci/wheel $(PYTHON)

slow: install  ## all other cases of the tests: grids, golden numbers, simulations, fuzzing, real data
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev,slow]"
	$(BIN)/pytest -m slow -n 2 --dist loadfile tests

docs: install  ## the documentation: a site in docs/_build/html, and one page for print in docs/_build/single; runs every tutorial
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[docs]"
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/sphinx-build --quiet -b singlehtml -d docs/_build/doctrees docs docs/_build/single

bench: install  ## measured times and memory, written to benchmarks/results
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/lattice.py
	$(BIN)/python benchmarks/stein.py
	$(BIN)/python benchmarks/samplers.py
	$(BIN)/python benchmarks/bootstrap.py
	$(BIN)/python benchmarks/suite.py
	$(BIN)/python benchmarks/regression.py
	$(BIN)/python benchmarks/graphs.py
	$(BIN)/python benchmarks/questionnaire.py
	$(BIN)/python benchmarks/big.py

clean:
	rm -rf .venv runs build dist docs/_build
