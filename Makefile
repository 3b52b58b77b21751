# Every command for working on Sluice. `make` alone lists them.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-long wheel up down check infra-plan infra-create infra-delete bench-quick bench-appends bench-changes bench-keep bench-shaping bench-stream bench-catalogs

help:  ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## Make .venv and get the jars; takes no time when they are there (PYTHON=python3.11 chooses a Python)
	@$(BIN)/sluice setup registry

demo: setup  ## Real Kafka, shipped specs, through Dagster into Iceberg; KEEP=1 leaves Kafka running
	@$(BIN)/sluice demo

test: setup  ## All but what is long: what each change is judged by
	@$(BIN)/python -m pytest tests -n 2 -m "not long"

test-long: setup  ## Wide searches, every page of the docs done as it is written, what restarts or waits, and all bars of seconds
	@$(BIN)/python -m pytest tests -n 2 -m "long and not timed"
	@SLUICE_BARS=1 $(BIN)/python -m pytest tests -m timed

QUICK := $(BIN)/python -m pytest tests -p no:xdist -m "not spark and not kafka and not slow and not long"
test-fast: setup  ## The quick part of the suite, without Spark and Kafka
	@$(QUICK) --half 2 -o cache_dir=.pytest_cache/half > .sluice/test-fast.log 2>&1 & other=$$!; trap "kill $$other" INT TERM; \
		$(QUICK) --half 1; first=$$?; wait $$other; second=$$?; cat .sluice/test-fast.log; exit $$((first + second))

wheel: setup  ## Build dist/*.whl, which have the decoders compiled: the whole, and sluice-slim
	@rm -rf build deploy/slim/build  # setuptools packs what is left there of modules that are gone
	@$(BIN)/python -m framework.machine.jvm.build
	@$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . ./deploy/slim

up: setup  ## Start the local services
	@$(BIN)/sluice services up

down:  ## Stop the local services; their data stays
	@if test -x $(BIN)/sluice; then $(BIN)/sluice services down; else echo "nothing runs: make setup was never done"; fi

check: $(READY)  ## Lint, format, types, import directions, names
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest tests/house/test_layers.py tests/house/test_words.py -q

DEPLOY = infra/deploy.sh $(1) --env "$(if $(findstring command,$(origin ENV)),$(ENV),$(error which environment? make $@ ENV=name))" $(if $(findstring command,$(origin PROFILE)),--profile "$(PROFILE)")

infra-plan: $(READY)  ## Show what infra-create would make in the cloud; ENV=name of a file in infra/environments, PROFILE=of AWS
	@$(call DEPLOY,plan)

infra-create: $(READY)  ## Make the cloud side of ENV, after it was shown; YES=1 does not ask
	@$(call DEPLOY,create) $(if $(filter 1,$(YES)),--yes)

infra-delete: $(READY)  ## Delete it, after what is lost was shown; WITH_TABLES=1 deletes a bucket with files
	@$(call DEPLOY,delete) $(if $(filter 1,$(YES)),--yes) $(if $(filter 1,$(WITH_TABLES)),--with-tables)

bench-quick: setup  ## Measure against a hand-written job, and how long a new user waits; a quarter of an hour
	@$(BIN)/python -m bench.quick

bench-appends: setup  ## Measure appends of other shapes beside the same by hand; ten minutes
	@$(BIN)/python -m bench.appends

bench-changes: setup  ## Measure formats of a registry and upserts, each beside what is written by hand; a quarter of an hour
	@$(BIN)/python -m bench.changes
	@$(BIN)/python -m bench.upserts

bench-keep: setup  ## Measure what keeps tables small: thousands of commits, compaction; twenty minutes
	@$(BIN)/python -m bench.keep

bench-shaping: setup  ## Measure steps that shape rows: duplicates left out; ten minutes
	@$(BIN)/python -m bench.shaping

bench-stream: setup  ## Measure how long a message takes until readers see it, with `sluice stream`; a quarter of an hour
	@$(BIN)/python -m bench.stream

bench-catalogs: setup  ## Measure a REST catalog with an object store beside the SQLite file with a folder; a few minutes
	@$(BIN)/python -m bench.catalogs

# Java is asked for before half a gigabyte of packages is. The locked pip comes first, because it is faster than older ones, and
# setuptools, so that what is built (pyspark, Sluice) is built with it and pip fetches nothing that requirements.lock does not name.
# setuptools warns of every editable installation; that is not shown.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "setup: Python 3.10 or later is needed, $(PYTHON) is not; install it, or: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -B -m framework.machine.java.java
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "setup: $(PYTHON) cannot make a virtual environment; install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@echo "packages: installing into .venv, a few minutes the first time ..."
	@sed -nE '/^(pip|setuptools)==/,/# via/p' requirements.lock > .venv/build.lock
	@$(PIP) --require-hashes -r .venv/build.lock && \
	  $(PIP) --require-hashes --use-pep517 -r requirements.lock && \
	  PYTHONWARNINGS=ignore $(PIP) -e . || { echo "$(NO_PACKAGES)" >&2; exit 1; }
	@touch $@

PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --retries 2 --no-deps --no-build-isolation
NO_PACKAGES := setup: the packages were not installed (pip says why above); check the network, or set PIP_INDEX_URL to your company's mirror; then make setup again
