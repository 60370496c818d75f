# Every target sets up what it needs in .venv; python3 (3.11 or newer, with venv) is all that has to be there.
# `make help` lists the targets from the words behind ##.

SHELL := /bin/sh
BIN := .venv/bin
CONFIG := .dev/customer-context.toml

.PHONY: help demo test lint format serve bench signinbench openapi interop fuzz soak replaysoak lock venv
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: venv ## show the whole thing at work: tokens asked for, verified once, refused ever after
	@$(BIN)/python tests/demo/demo.py

test: lint ## everything that must hold: lint, the tests, the coverage gates, the wheel by itself
	@echo "== tests, the wheel in an environment of its own among them"
	@data=$$(mktemp -d) && trap 'rm -rf "$$data"' EXIT && export COVERAGE_FILE="$$data/coverage" && \
	$(BIN)/pytest -m "not interop" -n 3 --dist loadfile --cov --cov-report= && \
	echo "== branch coverage: 100 % of verifier and keys" && \
	$(BIN)/coverage report --include='verifier/*,keys/*' --fail-under=100 && \
	echo "== branch coverage: 95 % of issuer" && \
	$(BIN)/coverage report --include='issuer/*' --fail-under=95
	@echo "== all good"

lint: venv ## formatting, ruff, mypy --strict
	@echo "== formatting" && $(BIN)/ruff format --check .
	@echo "== ruff" && $(BIN)/ruff check --quiet .
	@echo "== mypy --strict" && $(BIN)/mypy

format: venv ## put the code into its form and mend what ruff can mend
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

serve: venv ## run the service on loopback with a development configuration in .dev
	@test -e $(CONFIG) || $(BIN)/customer-context init .dev
	@$(BIN)/customer-context serve --config $(CONFIG)

bench: venv ## minting and verifying against raw ECDSA, requests a second, and replay stores against raw SET
	@$(BIN)/python tests/bench/bench.py
	@$(BIN)/python tests/bench/replay.py

signinbench: venv ## minting from a sign-in beside npm's oidc-provider; needs wrk, and node with what interop installs
	@$(BIN)/python tests/bench/sign_ins.py

openapi: venv ## write openapi/openapi.json from the code
	@$(BIN)/python -m issuer.openapi openapi/openapi.json

interop: venv ## other implementations against this one; needs node 20 or newer
	@command -v npm >/dev/null || { echo "node 20 or newer with npm is needed"; exit 1; }
	@cd tests/interop && npm install --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	@$(BIN)/pytest -m interop

fuzz: venv ## random and mutated bytes into everything that reads them
	@$(BIN)/python tests/fuzz/fuzz.py

soak: venv ## keys and trail under load, kills, damage and time, for some minutes
	@$(BIN)/python tests/soak/soak.py

replaysoak: venv ## used tokens through restarts, failovers and lost replies, for some twenty minutes
	@$(BIN)/python tests/soak/replay_soak.py

lock: ## pin the dependencies again after a change in pyproject.toml
	@.ci/lock

venv:
	@command -v python3 >/dev/null || { echo "python3 (3.11 or newer, with venv) is needed"; exit 1; }
	@python3 .ci/venv.py
