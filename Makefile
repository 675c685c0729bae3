# Two commands are enough on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
WORKERS ?= 2

.PHONY: setup demo test walks test-full mutants fuzz lint types bench reliability pages map docs clean

setup: $(TOOLS)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer; set PYTHON=python3.x")'
	@$(PYTHON) -m venv $(VENV)

# $(call install,WHAT): with uv where it is present, with pip otherwise; the papers' experiments beside it.
define install
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '$(1)' --editable ./papers; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '$(1)' --editable ./papers; \
	fi
	@touch $@
endef

$(READY): pyproject.toml papers/pyproject.toml constraints.txt | $(VENV)/bin/python
	$(call install,.[all])

$(TOOLS): pyproject.toml papers/pyproject.toml constraints.txt | $(VENV)/bin/python
	$(call install,.[dev])

demo: $(READY)
	$(BIN)/discreet demo --out out/demo

# Test workers share the cores: BLAS threads of each would only wait for each other's. Tests start hundreds of
# processes: what they import is compiled once, also where Python is told to keep nothing.
test walks test-full: export OPENBLAS_NUM_THREADS ?= 1
test walks test-full: export PYTHONDONTWRITEBYTECODE =

# IN=changes: the tests of one wing or room.
test: setup
	$(BIN)/python -m pytest -n $(WORKERS) -m "not walk and not full_size" $(if $(IN),$(wildcard tests/$(IN) tests/unit/$(IN) tests/reference/$(IN)))

# With a browser, with Spark, and along the pages and examples.
walks: setup
	$(BIN)/python -m pytest -n $(WORKERS) -m "walk and not full_size"

test-full: setup
	$(BIN)/python -m pytest -n $(WORKERS)

# ONLY='*erm*': those whose file and reason match.
mutants: setup
	$(BIN)/python tests/mutants/run.py --workers $(WORKERS) $(if $(ONLY),--only '$(ONLY)')

# What breaks a promise is kept in out/fuzz.
fuzz: setup
	$(BIN)/python tests/worlds/run.py --minutes $(or $(MINUTES),60) $(if $(WORLDS),--worlds $(WORLDS)) $(if $(SEED),--seed $(SEED))

lint: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# What pages show, run and written anew where it differs; then notebooks, the keys of a plan, the README's picture.
pages: setup
	$(BIN)/python tests/pages.py
	$(BIN)/discreet plan schema > docs/reference/plan.schema.json
	$(BIN)/python docs/plan_fields.py
	$(BIN)/python docs/picture.py

# The picture of the house and its table in ARCHITECTURE.md, from the imports.
map: setup
	$(BIN)/python docs/house.py

docs: setup
	$(BIN)/sphinx-build -W --keep-going -q -b html docs out/docs

# QUICK=1: small sizes, under five minutes; says which ratios fell, changes no file.
bench: setup
	$(BIN)/python -m bench $(if $(QUICK),--quick)

# Accidents on purpose: kills, full and failing disks, jumping clocks, sixteen processes on one ledger. Those of disks need root.
reliability: setup
	$(BIN)/python -m bench kills kills_on_spark ledgers disks clocks

clean:
	rm -rf out $(VENV)
