# Everything runs in .venv, which is made on first use; `make test` and `make demo` need Python >= 3.11, Rust and make.
PYTHON ?= python3
VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
DEPENDENCIES := $(VENV)/.dependencies
NATIVE := $(VENV)/.native
RUST_SOURCES := $(shell find rust Cargo.toml Cargo.lock \( -name target -o -path rust/fuzz \) -prune -o -type f -print)

.PHONY: setup build test test-rust test-python test-slow types demo bench bench-counts fuzz format lint clean

setup: $(NATIVE)
build: $(NATIVE)

$(DEPENDENCIES): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("groundkit needs Python 3.11 or newer; call make with PYTHON=/path/to/python3.11")'
	test -x $(VENV_PYTHON) || $(PYTHON) -m venv $(VENV)
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev polars pydantic
	touch $@

$(NATIVE): $(DEPENDENCIES) $(RUST_SOURCES)
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" PIP_CONSTRAINT=constraints.txt PIP_QUIET=1 $(VENV_PYTHON) -m maturin develop --release --locked --quiet
	touch $@

test: test-rust types test-python

test-rust:
	cargo test --locked --quiet

types: $(NATIVE)
	$(VENV_PYTHON) -m mypy

test-python: $(NATIVE)
	$(VENV_PYTHON) -m pytest

# The error rates that docs/sweeps.md claims, and 400 runs killed at random instants; some minutes.
test-slow: $(NATIVE)
	$(VENV_PYTHON) -m pytest -m slow

# DATA=a/beir/folder instead of the small dataset, OUT=where/to/keep/the/adapted/dataset, SPLIT=dev. The shell reads
# them from the environment, so that they may hold spaces.
demo: $(NATIVE)
	@$(VENV_PYTHON) examples/demo.py $${OUT:+--output="$$OUT"} $${SPLIT:+--split="$$SPLIT"} -- "$${DATA:-examples/beir-small}"

# Every benchmark beside its peers; a quarter of an hour on two idle cores. Reports as JSON go to target/bench.
BENCH_PEERS := $(VENV)/.benchmarks
bench: $(NATIVE) $(BENCH_PEERS)
	mkdir -p target/bench
	$(VENV_PYTHON) benchmarks/significance.py --json target/bench/significance.json
	$(VENV_PYTHON) benchmarks/sweep.py --json target/bench/sweep.json
	$(VENV_PYTHON) benchmarks/corpus_scan.py --json target/bench/corpus_scan.json
	cargo build --release --locked --quiet --package groundkit-core --examples
	$(VENV_PYTHON) benchmarks/adapt.py target/release/examples/bare_files --json target/bench/adapt.json

# Needs valgrind. COUNTS=--record after a change of compiler, or one that is meant to change a count.
bench-counts: $(DEPENDENCIES)
	cargo build --release --locked --quiet --package groundkit-core --examples
	$(VENV_PYTHON) benchmarks/counts.py target/release/examples/kernels $(COUNTS)

# evaluatio asks for an older numpy than the rest but runs with this one.
$(BENCH_PEERS): $(DEPENDENCIES)
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group benchmarks
	-$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps evaluatio
	touch $@

# FUZZ_SECONDS a target; needs a nightly toolchain and `cargo install cargo-fuzz`. New inputs stay in target/.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS := record qrels lines archive
fuzz:
	for target in $(FUZZ_TARGETS); do \
		mkdir -p target/fuzz-inputs/$$target; \
		cargo +nightly fuzz run --fuzz-dir rust/fuzz $$target target/fuzz-inputs/$$target rust/fuzz/corpus/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=3000 -timeout=20 || exit 1; \
	done

format: $(DEPENDENCIES)
	cargo fmt
	cargo fmt --manifest-path rust/fuzz/Cargo.toml
	$(VENV_PYTHON) -m ruff format
	$(VENV_PYTHON) -m ruff check --fix

lint: $(DEPENDENCIES)
	cargo fmt --check
	cargo fmt --manifest-path rust/fuzz/Cargo.toml --check
	cargo clippy --locked --all-targets --quiet
	$(VENV_PYTHON) -m ruff format --check
	$(VENV_PYTHON) -m ruff check

clean:
	rm -rf target $(VENV)
