# RLTune's commands. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CONFIG ?= config/default.yaml
CORES ?= all
PYTHON ?= $(shell command -v python3)
PROFILE ?=
ARGS ?=

VENV := .venv
READY := $(VENV)/.ready
# moved or copied with its folder, it would run the code of the old place: it is made again
ifeq ($(shell grep -F " $(realpath $(VENV))" $(VENV)/pyvenv.cfg 2>&1),)
  $(shell rm -f $(READY))
endif
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export XDG_CACHE_HOME := $(CURDIR)/.cache/xdg
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export IPYTHONDIR := $(CURDIR)/.cache/ipython
export JUPYTER_CONFIG_DIR := $(CURDIR)/.cache/jupyter/config
export JUPYTER_DATA_DIR := $(CURDIR)/.cache/jupyter/data
export KERAS_HOME := $(CURDIR)/.cache/keras
# of a command outside the project; make works on its own folder
unexport RLTUNE_ROOT
export TF_CPP_MIN_LOG_LEVEL ?= 2
# where it is set, as in many containers, each of a run's processes would compile all that it imports
unexport PYTHONDONTWRITEBYTECODE

# one run a folder: the lock ends with the last process that holds it
LOCKED = mkdir -p .cache && flock --no-fork --nonblock --conflict-exit-code 75 .cache/run.lock
ELSE = || { status=$$?; [ $$status -ne 75 ] || echo "another run is at work in $(CURDIR): wait for it" >&2; exit $$status; }
SNAKEMAKE = snakemake --nolock --configfile "$(CONFIG)" --workflow-profile workflow/profiles/default \
  $(if $(PROFILE),--profile workflow/profiles/$(PROFILE),--cores $(CORES))

.PHONY: help report smoke notebook lab check test test-all bench clean

help:  ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

$(READY): requirements.lock pyproject.toml
	@mkdir -p .cache && flock .cache/setup.lock sh -c '[ $@ -nt requirements.lock ] && [ $@ -nt pyproject.toml ] || \
	  { $(PYTHON) workflow/setup.py --venv $(VENV) --lock requirements.lock && touch $@; }'

report: $(READY)  ## the whole run, to results/report/index.html (CONFIG=…, CORES=n, PROFILE=slurm, ARGS="options of snakemake")
	@rltune config check "$(CONFIG)" >/dev/null  # Snakemake would read it first, and name neither file nor line
	@$(LOCKED) $(SNAKEMAKE) $(ARGS) $(ELSE)

smoke: CONFIG := config/smoke.yaml
smoke: report  ## every stage at its smallest, five minutes; the notebooks open on its files

notebook: $(READY)  ## one stage again and what depends on it: STAGE=train CELL=… (or TRACE=…; ONLY=1: the stage alone)
	@target=$$(python workflow/scripts/stage.py "$(CONFIG)" "$(STAGE)" "$(CELL)$(TRACE)") && \
	  $(LOCKED) $(SNAKEMAKE) $(if $(filter 1,$(ONLY)),--force $$target,--forcerun $$target) $(ARGS) $(ELSE)

lab: $(READY)  ## JupyterLab on the notebooks, notebooks/index.ipynb first
	@jupyter lab --notebook-dir=. notebooks/index.ipynb $(ARGS)

PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m pytest --numprocesses auto

check: $(READY)  ## while you write: lint, types, layers, tests of simulator and policies
	@ruff check . && ruff format --check . && mypy && lint-imports
	@$(PYTEST) -q tests/simulator tests/policies tests/cluster

test: $(READY)  ## the tests, a small run of the whole workflow among them (ARGS="options of pytest")
	@$(PYTEST) -m "not daemons and not packaging" $(ARGS)
	@echo "not run: tests on real Slurm daemons, each extra installed by itself, ten times the random cases: make test-all"

test-all: $(READY)  ## all tests: on real Slurm daemons, in a browser (root: installs them), of each extra, ten times the random cases
	@python tests/install_packages.py
	@$(PYTEST) -m "not daemons and not packaging" $(ARGS)
	@python -m pytest -m daemons
	@$(PYTEST) --hypothesis-profile=thorough tests/packaging tests/simulator

bench: $(READY)  ## one benchmark: BENCH=simulator, training, milp, quality, … (benchmarks/)
	@test -f "benchmarks/$(BENCH).py" || { echo "make bench BENCH=name, one of:" $$(cd benchmarks && ls *.py | sed 's/\.py$$//') >&2; exit 2; }
	@python benchmarks/$(BENCH).py $(ARGS)

clean:  ## remove results and caches; keeps .venv, downloads and a live controller's results/slurm
	@$(LOCKED) find -H results -mindepth 1 ! -name README.md ! -path results/slurm ! -path 'results/slurm/*' -delete $(ELSE)
	@rm -rf .snakemake .cache/numba .cache/rltune .pytest_cache .hypothesis
