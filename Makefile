# `make run` shows one cycle on the sample; `make test` is what has to pass. `make help` lists the rest.
PYTHON ?= python3
SAMPLE := sample/slackwater
REPO = $(SAMPLE)
BIN := .venv/bin
# One more than the processors of a small runner: tests wait for programs that they start.
WORKERS ?= 3

# Byte code is kept, out of the way of the sources: else each process of the tests compiles the product anew.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX = $(CURDIR)/.venv/bytecode

.DEFAULT_GOAL := help
.PHONY: help install install-dev run test test-long test-real test-explorer release-check crash guards mutants trust check bench proof changelog site pictures lock clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*##/  make \1	/p' Makefile

install:  ## set up .venv with what ralph needs, and more with EXTRAS="charts web" (a second call does nothing)
	@command -v $(PYTHON) >/dev/null || { echo "[make] $(PYTHON) not found: install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -I scripts/environment.py runtime $(EXTRAS)

install-dev:  ## the same, with the tools for working on ralph
	@command -v $(PYTHON) >/dev/null || { echo "[make] $(PYTHON) not found: install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -I scripts/environment.py dev $(EXTRAS)

run: install  ## one cycle on the sample, or on another repository: make run REPO=DIR
	@[ -n "$$REPO" ] || { echo "[make] name a repository: make run REPO=DIR" >&2; exit 2; }
	@if [ "$$REPO" = "$(SAMPLE)" ] && [ ! -e "$$REPO" ]; then $(BIN)/python examples/unpack.py "$$REPO"; fi
	@$(PYTHON) -I scripts/environment.py runtime $(EXTRAS) $$($(BIN)/python -I -m ralph_mission.app.extras "$$REPO")
	@$(BIN)/ralph cycle --repo "$$REPO" --force

test: install-dev  ## all tests (make test COVERAGE=1 also tells what they do not reach)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(COVERAGE),--cov --cov-report=term)

test-long: install-dev  ## whole lives among faults, forgeries and hostile sessions; many more inputs (half an hour)
	@$(BIN)/python -m pytest -q -m "long and not crash" -n $(WORKERS)
	@$(BIN)/python -m pytest -q -m "hypothesis and not real and not crash" --hypothesis-profile=long -n $(WORKERS)

test-real: install-dev  ## what is too large for that: real agents, an emulator of GitHub (400 MB), a cold runner
	@$(BIN)/python scripts/node.py
	@$(BIN)/python -m pytest -q -m real -n $(WORKERS)

test-explorer: install-dev  ## an explorer's world on PostgreSQL, with a clone of validatorinfo its own: VALIDATORINFO=DIR
	@VALIDATORINFO="$(VALIDATORINFO)" $(BIN)/python -m pytest -q -m "long or not long" -n 0 \
		tests/integration/test_explorer_cycle.py tests/adapters/observers/database/test_explorer.py

release-check: install-dev  ## build a release, install it from nothing and use it: DIST=DIR for one that is built
	@DIST="$(DIST)" $(BIN)/python -m pytest -q -s -m real -n 0 tests/supply/test_built.py

crash: install-dev  ## every moment of dying, every fault at every sort of call, races, pairs, a soak (less than an hour)
	@$(BIN)/python -m pytest -q -m crash -n $(WORKERS)

guards: install-dev  ## the guard of each promise and rule switched off once: a named test has to fail (minutes)
	@$(BIN)/python -m tests.guards --jobs $(WORKERS)

mutants: install-dev  ## what the tests of safety and policy do not notice when it is changed (hours)
	@$(PYTHON) -I scripts/environment.py dev mutants
	@place=$$(mktemp -d) && TMPDIR=$$place $(BIN)/python -m mutmut run --max-children $(WORKERS); code=$$?; \
	  rm -rf "$$place"; exit $$code
	@$(BIN)/python -m mutmut export-cicd-stats
	@cat mutants/mutmut-cicd-stats.json

trust: install-dev  ## measure everything that docs/trust.md says, and write it again (hours)
	@$(BIN)/python scripts/node.py
	@$(BIN)/python -m tools.trust all

check: install-dev  ## style, types, floors, and what must not be in the repository
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pytest -q tests/test_house.py

bench: install-dev  ## how fast it is beside what it replaces
	@$(BIN)/python -m bench.start
	@$(BIN)/python -m bench.run
	@$(BIN)/python -m bench.github
	@$(BIN)/python -m bench.drift
	@$(BIN)/python -m bench.loop
	@$(BIN)/python -m bench.agents
	@$(BIN)/python -m bench.senses
	@$(BIN)/python -m bench.load

proof: install-dev  ## does the gate of claims about code hold: CLONES=DIR has clones of the repositories, hours
	@$(BIN)/python -m bench.proof $(if $(CLONES),--clones $(CLONES))

changelog: install-dev  ## gather changelog.d into CHANGELOG.md, under the version of pyproject.toml
	@$(BIN)/towncrier build --yes --version "$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)"

site: install-dev  ## build the site of the documents into site/; a broken link fails it
	@$(PYTHON) -I scripts/environment.py dev docs
	@$(BIN)/python -m tools.site

pictures: install-dev  ## make the pictures of the documents again, from real runs: Chromium and npm on the path
	@$(PYTHON) -I scripts/environment.py dev docs
	@$(BIN)/python -m tools.pictures

lock: install-dev  ## pin the newest dependencies that fit, with hashes and without naming a registry
	@$(BIN)/python -I scripts/lock.py

clean:  ## remove what make made: .venv, the sample, caches
	@rm -rf .venv sample mutants .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

export REPO
