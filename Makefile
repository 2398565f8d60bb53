# Every target sets itself up in .venv. Python 3.11 or newer, make and git are enough.
#
#   make install   .venv/bin/reverie with the core alone
#   make run       a session from end to end, without a key or a network
#   make chat      the terminal agent
#   make test      every promise at small scale; 10 minutes at most on 2 cores
#   make proof     the same at full scale, then the mutations; 75 minutes at most
#   make bench     ratios and times, written to bench/out
#   make check     format, lint, types, import rules, manifest, tree
#   make lock      write locks/*.txt again (UPGRADE=1 takes newer versions)
#   make clean     remove what the other targets made

SHELL := /bin/sh
.DELETE_ON_ERROR:
.PHONY: install run chat test proof bench check lock clean \
	format check-format check-lint check-types check-imports check-manifest check-tree

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
WORKERS ?= 2
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# A stamp is named after the lock and pyproject.toml it stands for: nothing to do while
# they stay as they are, a new installation as soon as one of them changes.
stamp = $(VENV)/.set-up/$(1)-$(shell cat locks/$(1).txt pyproject.toml | cksum | tr ' ' '-')
RUN := $(call stamp,run)
DEV := $(call stamp,dev)
PROOF := $(call stamp,proof)

# Only what the lock names, hash by hash; the project itself without looking anywhere.
define set-up
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --require-hashes --no-deps --only-binary :all: -r locks/$(1).txt
	$(PIP) install --quiet --no-deps --no-build-isolation --no-index -e .
	@mkdir -p $(VENV)/.set-up
endef

install: $(RUN)
	@echo "$(BIN)/reverie is ready"

run: $(RUN)
	$(BIN)/reverie demo

chat: $(RUN)
	$(BIN)/reverie chat

test: $(DEV)
	REVERIE_BUDGET=600 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

proof: $(PROOF)
	REVERIE_SCALE=proof REVERIE_BUDGET=3600 \
		$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --timeout 1800 $(PYTEST_ARGS)
	$(BIN)/python -m scripts.mutations --jobs $(WORKERS)

bench: $(DEV)
	$(BIN)/python -m bench

check: check-format check-lint check-types check-imports check-manifest check-tree

check-format: $(DEV)
	$(BIN)/ruff format --check .

check-lint: $(DEV)
	$(BIN)/ruff check .

check-types: $(DEV)
	$(BIN)/basedpyright

check-imports: $(DEV)
	$(BIN)/lint-imports --no-logo

check-manifest: $(DEV)
	$(BIN)/python -m scripts.manifest

check-tree: $(DEV)
	$(BIN)/python -m scripts.tree

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

lock:
	$(PYTHON) -m scripts.lock $(if $(UPGRADE),--upgrade)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	rm -rf bench/out dist
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN):
	$(call set-up,run)
	@touch $@

$(DEV):
	$(call set-up,dev)
	@touch $(RUN) $@

$(PROOF):
	$(call set-up,proof)
	@touch $(RUN) $(DEV) $@
