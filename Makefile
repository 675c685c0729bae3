# Two commands are enough on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2

.PHONY: setup demo test test-full lint types bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer; set PYTHON=python3.x")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[dev]'; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'; \
	fi
	@touch $@

demo: setup
	$(BIN)/discreet demo --out out/demo

test: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not full_size"

test-full: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

lint: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m bench

clean:
	rm -rf out $(VENV)
