# RLTune's commands. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CONFIG ?= config/default.yaml
CORES ?= $(shell getconf _NPROCESSORS_ONLN)
PYTHON ?= $(shell command -v python3)
BENCH ?=
STAGE ?=
ARGS ?=

RUN = --config "$(CONFIG)" --cores $(CORES)
# what is on make's command line, not what the environment happens to have
switch = $(if $(filter command,$(origin $(1))),$(if $(filter-out 0,$($(1))),--$(2)))
OPTIONS = $(call switch,YES,yes) $(call switch,VERBOSE,verbose)
given = $(if $(filter command,$(origin $(1))),--$(2) "$($(1))")
AXES = $(call given,TRACE,trace) $(call given,CLUSTER,cluster) $(call given,POLICY,policy) \
  $(call given,METRIC,metric) $(call given,BLOCKING,blocking) $(call given,PLACEMENT,placement) \
  $(call given,LOCALITY,locality) $(call given,FEATURES,features) $(call given,ESTIMATE,estimate) \
  $(call given,PRESET,preset) $(call given,SEED,seed) $(call given,CELL,cell)

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PATH := $(CURDIR)/$(BIN):$(PATH)
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export XDG_CACHE_HOME := $(CURDIR)/.cache/xdg
export JUPYTER_CONFIG_DIR := $(CURDIR)/.cache/jupyter/config
export JUPYTER_DATA_DIR := $(CURDIR)/.cache/jupyter/data
export KERAS_HOME := $(CURDIR)/.cache/keras
export IPYTHONDIR := $(CURDIR)/.cache/ipython
export TF_CPP_MIN_LOG_LEVEL ?= 2
export PYTHONUNBUFFERED := 1

.PHONY: help setup report paper estimate status notebook test slurm-deps bench lab lock clean distclean

help:  ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY)  ## the virtual environment, the project in it, its Jupyter kernel

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) workflow/setup.py --venv $(VENV) --lock requirements.lock
	@touch $@

report: $(READY)  ## the whole run: traces to results/report/index.html (CONFIG=config/….yaml, CORES=n, ARGS=…)
	@rltune run $(RUN) $(OPTIONS) -- $(ARGS)

paper: CONFIG := config/paper.yaml
paper: report  ## the paper's whole matrix: says what it costs and asks (YES=1: does not ask)

estimate: $(READY)  ## what a run would still cost: time, downloads, disk (CONFIG=…, CORES=n)
	@rltune estimate $(RUN)

status:  ## how far a run is, also while it is at work (CONFIG=…)
	@test -f $(READY) || { echo "not set up yet: make setup, or any other command, does that"; exit 2; }
	@rltune status $(RUN)

notebook: $(READY)  ## one stage again and what depends on it: STAGE=train TRACE=… POLICY=… (ONLY=1: it alone)
	@test -n "$(STAGE)" || { echo "make notebook STAGE=train TRACE=… POLICY=…; see README.md, One stage alone"; exit 2; }
	@rltune notebook "$(STAGE)" $(AXES) $(call switch,ONLY,only) $(RUN) $(OPTIONS) $(ARGS)

test: $(READY)  ## all tests, a whole smoke run of the workflow among them (ARGS=… for pytest)
	@python workflow/deps.py --quiet
	@python -m pytest $(ARGS)

slurm-deps: $(READY)  ## install the packages of the emulated Slurm cluster (apt, as root or with sudo), or say which
	@python workflow/deps.py

bench: $(READY)  ## one benchmark: make bench BENCH=name
	@test -n "$(BENCH)" || { echo "make bench BENCH=name, where name is one of:" $$(cd benchmarks && ls *.py 2>/dev/null | sed 's/\.py$$//'); exit 2; }
	@test -f "benchmarks/$(BENCH).py" || { echo "no benchmark '$(BENCH)'; there are:" $$(cd benchmarks && ls *.py | sed 's/\.py$$//'); exit 2; }
	@python benchmarks/$(BENCH).py $(ARGS)

lab: $(READY)  ## JupyterLab on the notebooks
	@jupyter lab --notebook-dir=. $(ARGS)

lock: $(READY)  ## compile requirements.lock anew from pyproject.toml (needs uv)
	@uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --extra dev --python-version 3.11 pyproject.toml -o requirements.lock $(ARGS)

clean:  ## remove results, caches of code and the workflow's state (keeps .venv and downloads)
	@find results -mindepth 1 ! -name README.md -delete
	@rm -rf .snakemake .cache/numba .cache/matplotlib .pytest_cache .hypothesis
	@find src tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean  ## clean, and the virtual environment and downloads too
	@rm -rf $(VENV) .cache src/*.egg-info
