# `make` alone lists what there is. Everything happens in .venv; what is compiled or fetched is kept in ~/.cache/garage.

SHELL := /bin/bash
PYTHON ?= python3
SOURCE ?= examples/library
QUESTION := When does the greenhouse heating start?
BIN := .venv/bin
export SOURCE

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests run stop lint test test-fast bench docs clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing; does nothing when nothing changed
	@command -v $(PYTHON) >/dev/null || { echo "Garage needs Python 3.11 or newer, and there is no $(PYTHON)." >&2; exit 1; }
	@$(PYTHON) setup/bootstrap.py

setup-tests:
	@command -v $(PYTHON) >/dev/null || { echo "Garage needs Python 3.11 or newer, and there is no $(PYTHON)." >&2; exit 1; }
	@$(PYTHON) setup/bootstrap.py --tests

# Most shells leave the tilde of SOURCE=~/Documents alone, so it is read as the home folder here.
run: setup ## start everything and take in a folder: make run SOURCE=~/Documents (default: the example library)
	@$(BIN)/garage up
ifeq ($(SOURCE),examples/library)
	@$(BIN)/garage source add examples/library --include-code
	@$(BIN)/garage update
	@echo && echo 'garage search "$(QUESTION)"' && echo
	@$(BIN)/garage search "$(QUESTION)" -n 3
else
	@$(BIN)/garage source add "$${SOURCE/#\~\//$$HOME/}"
	@$(BIN)/garage update
	@$(BIN)/garage status
endif
	@echo && $(BIN)/garage up

stop: ## stop what `make run` started
	@$(BIN)/garage down

lint: setup-tests ## formatting, style, types, and which module may import which
	@$(BIN)/ruff format --check --quiet . || { echo "Run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

test: lint ## lint, then every test; PYTEST_ARGS="-k chunk" passes options on
	@$(BIN)/pytest $(PYTEST_ARGS)

test-fast: setup-tests ## the tests that take seconds, up to the first failure
	@$(BIN)/pytest -m "not slow" -x $(PYTEST_ARGS)

bench: setup ## measure speed and size; writes bench/results.json
	@$(BIN)/python -m bench

docs: setup ## write the reference pages that are made from the code
	@$(BIN)/python -m garage.serve.reference docs

clean: ## remove the environment and every cache of this checkout
	@rm -rf .venv .setup.log .setup.lock build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
