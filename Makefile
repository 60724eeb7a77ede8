# Every target is a list of steps in scripts/tasks.py; all this file does is find a Python that is new enough.
# Written for GNU make with sh, or with cmd on Windows: no shell syntax but 2>&1, which both have.
#
#   make demo     fetch a small language model, ask it something, and talk with it
#   make test     everything CI runs: format, lint, types, tests  (make test ARGS="-k name")
#   make check    the same
#   make test-long   the same with the tests marked long: whole products of cases, every seed
#   make format   let ruff mend what it can
#   make test-browser   exported pages in Chromium and Firefox, Pyodide, Dawn in node; fetches 250 MB where they are missing
#   make test-torch   layers, functions, losses and optimisers against torch, in an environment of its own
#   make test-programs   public PyTorch programs, in torch and here from the same weights  (ARGS="gpt --mirrors <folder>")
#   make test-transformers   every family of models, and SmolLM2's answers, against transformers
#   make test-diffusers   parts, schedulers and pipelines of diffusion models, against diffusers
#   make conformance SUITE=<checkout>   the array API's own suite on cpu and GPU  (ARGS="--device cpu")
#   make conformance-onnx   the ONNX standard's backend tests on cpu and GPU  (ARGS="--opencv <folder>" for its models too)
#   make tint     check every shader with Tint too; needs npm
#   make bench    every workload, beside the peers that are installed  (make bench ARGS="--quick --only softmax")
#   make bench-peers  install the peers, each into an environment of its own
#   make bench-browser  matmul and a transformer block in Chromium, beside peers of npm  (ARGS="--install" first)
#   make promises what is counted or compared with a floor: host costs, memory, transfers
#   make fault    lost devices, no memory, misuse, forks, signals and damaged caches, thousands of times
#   make soak     a million dispatches, long training and decoding: memory and answers stay  (ARGS="--minutes 30")
#   make fuzz     100,000 small programs, 10,000 graphs, 10,000,000 damaged files, texts changed at random  (ARGS="--only files")
#   make mutants  a hundred faults planted in copies of the tree: which test finds which  (ARGS="--only lower")
#   make gpus     what AMD's compiler makes of every family of kernels, without a GPU  (ARGS="--gpu navi31")
#   make docs     the documentation as a site, in site/: open site/index.html
#   make clean    remove .venv, the other environments of tests and benchmarks, and every cache

TARGETS := demo test check test-long format test-browser test-torch test-programs test-transformers test-diffusers conformance conformance-onnx tint bench bench-peers bench-browser promises fault soak fuzz mutants gpus docs clean
MARK := webgrad-python-is-new-enough
ASK := -c "import sys; print('$(MARK)' if sys.version_info >= (3, 11) else '')" 2>&1
probe = $(if $(filter $(MARK),$(shell $(1) $(ASK))),$(1))
PYTHON ?= $(or $(call probe,python3),$(call probe,python),$(call probe,py),$(call probe,python3.14),\
  $(call probe,python3.13),$(call probe,python3.12),$(call probe,python3.11))
NONE = $(error Python 3.11 or newer was not found; install it, or name it: make PYTHON=/path/to/python)
RUN = @$(or $(strip $(PYTHON)),$(NONE)) -m scripts.tasks

.PHONY: help $(TARGETS)
help:
	$(RUN)

$(TARGETS):
	$(RUN) $@ $(ARGS)
