# Every target sets up what it needs in .venv; python3 (3.11 to 3.13), make and the Python registry are all it assumes;
# the tests with the real agent clients need npm and its registry as well.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
# Tests spend half of their time waiting for processes, so there are two workers for each processor.
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))')
# `run` needs a third of the packages that development needs, so each has its own stamp file.
RUNS := $(VENV)/.runs
DEVELOPS := $(VENV)/.develops
DOCUMENTS := $(VENV)/.documents

.DEFAULT_GOAL := help
.PHONY: run test quick test-clients test-engines test-installs check screenshots bench bench-peers clean help crashtest mutations fuzz docs exhaustive nightly

run: $(RUNS) ## run the demo: in a terminal the cockpit, otherwise a printed session
	@$(BIN)/whisper-tui demo

test: $(DEVELOPS) ## all tests except the slow ones, with two workers for each processor, eight at most
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow"

quick: $(DEVELOPS) ## the tests of what differs from the main branch, for a minute: the table is in CONTRIBUTING.md
	@$(BIN)/python -m tests.quick -n $(WORKERS)

test-clients: $(DEVELOPS) ## the tests with the real agent clients, which npm installs once, into .clients
	@$(BIN)/python tests/clients/install.py || true # without a client, its tests fail and name it
	@$(BIN)/pytest -n 2 --dist loadgroup tests/clients

test-engines: $(DEVELOPS) ## the tests of places in docker, podman, systemd, Slurm, Kubernetes and Ray, as far as they are installed
	@$(PIP) --editable '.[dev,ray]'
	@TEST_ENGINES=1 $(BIN)/pytest tests/supervisor/places/engines -rs
	@$(BIN)/python -m tests.supervisor.places.engines.ray_faults --faults $(or $(FAULTS),30)

test-installs: $(DEVELOPS) ## each line by which people install this program, with uv and pipx, from checkout, sdist and wheel
	@TEST_INSTALLS=1 $(BIN)/pytest -n 2 tests/test_one_line_installs.py

check: $(DEVELOPS) ## format, lint, types, layers, and all tests except those with the real agent clients
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal
	@$(BIN)/python -m tests.as_user -n $(WORKERS) --dist worksteal -m "not slow" $(AS_USER)

# What depends on the user (previews, undo, keepers, the sandbox, files of state): root runs it again as an ordinary one.
AS_USER := tests/changes tests/supervisor --ignore tests/supervisor/places

MANY_CASES := tests/changes tests/supervisor/preview tests/supervisor/places tests/cli/test_three_machines.py tests/cli/test_lossy_network.py

exhaustive: $(DEVELOPS) ## all cases of the tests that `make check` leaves out or tries a part of
	@EXHAUSTIVE=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal $(MANY_CASES)
	@EXHAUSTIVE=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "few or one_in or exhaustive"
	@$(BIN)/python -m tests.supervisor.places.faults

nightly: exhaustive ## the same, and tests against data that is not ours: GTFOBINS names a checkout of GTFOBins
	@$(BIN)/pytest tests/policy/test_against_gtfobins.py -rs

crashtest: $(DEVELOPS) ## kill processes at random, KILLS times (default 300), and check that nothing was lost
	@$(BIN)/python -m tests.crash --kills $(or $(KILLS),300)
	@$(BIN)/python -m tests.crash.previews --kills $(or $(KILLS),300)
	@$(BIN)/python -m tests.crash.held_back --sequences $(or $(KILLS),300)
	@$(BIN)/python -m tests.crash.drafts --sequences $(or $(KILLS),300)

mutations: $(DEVELOPS) ## remove each defence in a copy, and check that its tests then fail
	@$(BIN)/python -m tests.mutations

fuzz: $(DEVELOPS) ## send random requests to every interface for SECONDS (default 300)
	@$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),300)

screenshots: $(DEVELOPS) ## draw screenshots/*.svg again
	@$(BIN)/python screenshots/draw.py

docs: $(DOCUMENTS) ## build the documentation site into build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "build/site/index.html"

bench: $(DEVELOPS) ## measure everything that is promised, and write the tables in benchmarks/README.md
	@$(BIN)/python benchmarks/run_all.py

bench-peers: $(DEVELOPS) ## compare with other programs, which are installed into .peers; SIZE=short, usual (12 minutes) or full
	@$(BIN)/python -m benchmarks.peers --size $(or $(SIZE),usual)

clean: ## remove the virtual environment, the agent clients, the peers, caches and built packages
	rm -rf $(VENV) .clients .peers .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist snapshot_report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## print this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1	\2/p' Makefile

$(BIN)/python:
	@$(PYTHON) -c '$(SUITABLE)' || { echo "whisper_tui needs Python 3.11 to 3.13; $(PYTHON) is another one. Name one with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(RUNS): pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV): this needs a minute, once." >&2
	@$(PIP) --editable .
	@touch $@

$(DEVELOPS): pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) for development: this needs a minute or two, once." >&2
	@$(PIP) --editable '.[dev]'
	@touch $@ $(RUNS)

$(DOCUMENTS): pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) for the documentation: this needs a minute, once." >&2
	@$(PIP) --editable '.[docs]'
	@touch $@
