# cronq: `make` alone prints this menu.
PYTHON ?= python3
BIN := .venv/bin
FOR ?=
STAMP := .venv/.installed
RUN_STAMP := .venv/.installed-to-run

.DEFAULT_GOAL := help
SEED ?= 1
HOURS ?= 1
JOBS ?= 2
N ?= 10000
.PHONY: help setup run check servers test bench faults mutants fault-report simulate soak lock

help: ## print this menu
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(STAMP) ## make .venv with the locked dependencies

# --no-deps: the lock is complete, so nothing may be resolved a second time.
PIP_LOCKED = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r

$(RUN_STAMP): requirements-run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "cronq needs Python 3.11 or newer; say which with: make PYTHON=python3.12 …"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP_LOCKED) requirements-run.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(STAMP): $(RUN_STAMP) requirements.lock
	$(PIP_LOCKED) requirements.lock
	@touch $@

# Stand-ins for the world around the deployment: people, a payment service, services to look after.
run: export VISITORS ?= 1
run: export PAYMENTS_URL ?= http://127.0.0.1:8790
run: export BILLING_PERIOD_MINUTES ?= 10
run: export HEALTH_CHECKS ?= api=http://127.0.0.1:8787/healthz,reports=http://127.0.0.1:8788/healthz,feed=http://127.0.0.1:8788/api/feed/healthz,payments=http://127.0.0.1:8790/
run: export REPOSITORIES_DIR ?= data/repositories
run: export MAINTENANCE_AT ?= */15 * * * *
run: export TENANT_REPORTS_AT ?= 0 * * * *
run: export RANKING_EVERY ?= 2m
run: export CRONQ_KEEP_JOBS_S ?= 86400
run: export CRONQ_PROGRESS_TTL_S ?= 3600
run: $(RUN_STAMP) ## start the development stack with the reference deployment (FOR=60: stop by itself)
	$(BIN)/cronq up --beat-app beat.app --worker-app workers.app \
	  --also tasks.payment_service --also tasks.api --enqueue tasks.visit --enqueue tasks.transcode $(if $(FOR),--for $(FOR))

check: setup ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

servers: ## install the servers that the tests start (Debian; a no-op where they are there)
	@tools/install-test-servers

# Most tests wait for processes more than they compute; each worker of pytest has servers of its own.
test: setup servers ## run every test (JOBS=2 at a time)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(PYTEST)

bench: setup servers ## measure beats against RedBeat and workers against plain Celery (half an hour)
	$(BIN)/python -m benchmarks all

faults: setup servers ## break everything once while it works, and count what was lost (ten minutes; SEED=)
	$(BIN)/python -m tests.faults.bench faults --seed $(SEED)

mutants: setup servers ## show that the fault bench notices a cronq without one of its guarantees
	$(BIN)/python -m tests.faults.bench mutants --seed $(SEED)

fault-report: setup servers ## both, beside Celery's own beat and RedBeat, written down with plots (half an hour)
	$(BIN)/python -m tests.faults.bench report --seed $(SEED) docs/operations

simulate: setup ## live through N= simulated schedules of faults, from SEED= on
	$(BIN)/python -m tests.simulation --schedules $(N) --seed $(SEED)

soak: setup servers ## break things at random for HOURS= hours
	$(BIN)/python -m tests.faults.bench soak --seed $(SEED) --hours $(HOURS)

COMPILE = uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras \
	  --generate-hashes --no-emit-index-url --no-header --quiet

lock: ## write both locks anew from pyproject.toml (needs uv on PATH)
	$(COMPILE) --group build --group work --group check --group bench -o requirements.lock
	$(COMPILE) --group build --group work --constraints requirements.lock -o requirements-run.lock
