PYTHON ?= python3
VENV ?= .venv
# The compiler for TPUs has an environment of its own: 1.4 GB, and an exact release of JAX.
TPU_VENV ?= .venv-tpu
# Apache Beam needs older releases of protobuf and others than the newest that TensorFlow takes.
BEAM_VENV ?= .venv-beam
# More flags for what `make spam`, `make results` and `make pretrain` run:
# make spam ARGS="--output_dir runs/mine"
ARGS ?=
# More flags for pytest: make test PYTEST_ARGS="-k memory -x"
PYTEST_ARGS ?=
# Extras that `make test` installs. JAX is small; torch can bring several GB (see `backends` in
# pyproject.toml), so it comes with `make test-all`, and its tests are skipped without it.
TEST_EXTRAS ?= test,jax
# Every worker holds a TensorFlow of its own, 1 to 3 GB. One more than the cores of a small machine:
# some tests wait for processes.
WORKERS ?= 3

BIN := $(VENV)/bin
COMMA := ,
# A file a set of extras says that it is installed; editing pyproject.toml makes it stale.
TEST_STAMP := $(VENV)/.installed-$(subst $(COMMA),-,$(TEST_EXTRAS))
ALL_STAMP := $(VENV)/.installed-test-backends-transformers-onnx
EXAMPLES_STAMP := $(VENV)/.installed-examples
# The examples, and BM25 for `make tasks`.
RANKING_STAMP := $(VENV)/.installed-ranking
DOCS_STAMP := $(VENV)/.installed-docs
# What `make bench` compares on all three Keras backends; its peers have environments of their own.
BENCH_STAMP := $(VENV)/.installed-examples-backends
PEERS := $(basename $(notdir $(wildcard benchmarks/requirements/*.txt)))
PEER_STAMPS := $(PEERS:%=.bench/%/.installed)
CONFORMANCE_PEERS := huggingface keras_hub tf_models
TPU_STAMP := $(TPU_VENV)/.installed

# A user's ~/.keras/keras.json may name another backend; text and tf.data need this one.
export KERAS_BACKEND := tensorflow

# One file a worker at a time, so that a module's expensive fixtures are built once. In the order of
# their names: the long ones of few tests would come last if they were ordered by number.
PYTEST := $(BIN)/python -m pytest --doctest-modules -n $(WORKERS) --dist loadfile \
	--no-loadscope-reorder --durations=20
TESTED := tests keras_xlnet
BEAM_TESTED := $(addprefix tests/pretraining/test_, beam_record_writer.py document_fields.py) \
	keras_xlnet/pretraining/beam_record_writer.py

.DEFAULT_GOAL := help
.PHONY: help quickstart spam results tasks pretrain bench conformance tpu-compile test test-all test-beam lint format coverage docs docs-links bazel-test clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quickstart: $(EXAMPLES_STAMP) ## run the shortest example: strings in, SavedModel out
	$(BIN)/python examples/quickstart.py

spam: $(EXAMPLES_STAMP) ## fine-tune an English preset on spam; ARGS="..." passes flags on
	$(BIN)/python examples/spam_classifier.py $(ARGS)

results: $(EXAMPLES_STAMP) ## fine-tune the preset on seven tasks (hours); ARGS="--data ..." passes flags on
	$(BIN)/python research/tasks/results.py $(ARGS)

tasks: $(RANKING_STAMP) ## train on the real files of four tasks, for a table (hours); ARGS="--data ..."
	$(BIN)/python research/tasks/task_table.py $(ARGS)

pretrain: $(EXAMPLES_STAMP) ## pretrain a small model on tiny Shakespeare; ARGS="..." passes flags on
	$(BIN)/python examples/pretrain.py $(ARGS)

# Most of the time is compiling, of programs that run for milliseconds. `make test-all` compiles as
# users do.
test: export XLA_FLAGS ?= --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
# oneDNN looks at each operation of each function, for kernels that take other layouts.
test: export TF_ENABLE_ONEDNN_OPTS ?= 0
# Processes that share each operation among all cores wait for each other.
test: export TF_NUM_INTRAOP_THREADS ?= 1
test: $(TEST_STAMP) ## run the fast tests and the doctests; PYTEST_ARGS="..." passes flags on
	$(PYTEST) -m "not slow" $(PYTEST_ARGS) $(TESTED)

test-all: $(ALL_STAMP) ## run every test, the slow ones and the PyTorch backend too
	$(PYTEST) $(PYTEST_ARGS) $(TESTED)

test-beam: ## run the tests of records by Apache Beam, in an environment of their own
	$(MAKE) test VENV=$(BEAM_VENV) TEST_EXTRAS=test,beam TESTED="$(BEAM_TESTED)" \
		PYTEST_ARGS="-m 'slow or not slow' $(PYTEST_ARGS)"

bench: $(BENCH_STAMP) $(PEER_STAMPS) ## compare speed with other implementations; ARGS="..." passes flags on
	$(BIN)/python -m benchmarks.compare $(ARGS)

conformance: $(TEST_STAMP) $(CONFORMANCE_PEERS:%=.bench/%/.installed) ## run the conformance cases on this library and on others
	$(BIN)/python conformance/run.py conformance/adapters/keras_xlnet.py --json .bench/keras_xlnet.json
	@# A peer that fails cases, or could not be installed, does not stop the others.
	-for peer in $(CONFORMANCE_PEERS); do .bench/$$peer/bin/python conformance/run.py \
		conformance/adapters/$$peer.py --json .bench/$$peer.json; done
	$(BIN)/python conformance/table.py .bench/keras_xlnet.json \
		$$(ls $(CONFORMANCE_PEERS:%=.bench/%.json) 2>/dev/null) --page docs/conformance.md

tpu-compile: $(EXAMPLES_STAMP) $(TPU_STAMP) ## compile train steps for TPUs, without one (hours); ARGS="..." passes flags on
	$(BIN)/python benchmarks/tpu_compile/table.py --compiler_python=$(TPU_VENV)/bin/python $(ARGS)

lint: $(TEST_STAMP) ## check format, lint rules and types, change nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(TEST_STAMP) ## format, and fix what ruff can fix safely
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

coverage: $(TEST_STAMP) ## run the fast tests with coverage; pages in build/coverage/
	$(PYTEST) -m "not slow" --cov=keras_xlnet --cov-report=term --cov-report=html \
		$(PYTEST_ARGS) $(TESTED)

docs: $(DOCS_STAMP) ## build the documentation site and check it; build/docs/index.html
	$(BIN)/python docs/site/build.py

docs-links: $(DOCS_STAMP) ## check the links of the documentation to other sites (needs a network)
	$(BIN)/python docs/site/build.py --builder linkcheck

bazel-test: $(TEST_STAMP) ## run the fast tests under Bazel (CONTRIBUTING.md says what it needs)
	bazel test --python_path=$(abspath $(BIN))/python $(BAZEL_ARGS) //...

clean: ## remove .venv, .venv-beam, .venv-tpu, .bench, caches and build outputs; keeps runs/
	rm -rf .venv .venv-beam .venv-tpu .bench build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp comes last, so an interrupted run is repaired by the next one. No --clear: VENV may name
# an environment that is somebody's already.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(None if sys.version_info >= (3, 10) else "Python 3.10 or newer is needed, $(PYTHON) is " + v + "; name another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed-%: pyproject.toml setup.py $(VENV)/.created
	$(BIN)/python -m pip install --quiet --editable '.[$(subst -,$(COMMA),$*)]'
	@touch $@

# A peer that cannot be installed has a row that says so; the next `make bench` tries again.
.bench/%/.installed: benchmarks/requirements/%.txt
	$(PYTHON) -m venv .bench/$*
	.bench/$*/bin/python -m pip install --quiet -r $< && touch $@ \
		|| { rm -rf .bench/$*; echo "$* could not be installed: it is left out"; }

$(TPU_STAMP): benchmarks/tpu_compile/requirements.txt
	$(PYTHON) -m venv $(TPU_VENV)
	$(TPU_VENV)/bin/python -m pip install --quiet --requirement $<
	@touch $@
