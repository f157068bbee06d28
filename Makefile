# RLTune's commands. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CONFIG ?= config/default.yaml
CORES ?=
PYTHON ?= $(shell command -v python3)
BENCH ?=
STAGE ?=
ARGS ?=

RUN = --config "$(CONFIG)" $(if $(CORES),--cores $(CORES))
# what is on make's command line, not what the environment happens to have
switch = $(if $(filter command,$(origin $(1))),$(if $(filter-out 0,$($(1))),--$(2)))
SHARED = $(call given,SHARE,share)
OPTIONS = $(call switch,YES,yes) $(call switch,VERBOSE,verbose)
given = $(if $(filter command,$(origin $(1))),--$(2) "$($(1))")
WHERE = $(call given,PROFILE,profile)
AXES = $(call given,TRACE,trace) $(call given,CLUSTER,cluster) $(call given,POLICY,policy) \
  $(call given,METRIC,metric) $(call given,BACKFILL,backfill) $(call given,PLACEMENT,placement) \
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

.PHONY: help setup report pdf snakemake paper estimate status notebook test slurm-deps bench docs lab lock clean distclean

help:  ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY)  ## the virtual environment, the project in it, its Jupyter kernel

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) workflow/setup.py --venv $(VENV) --lock requirements.lock
	@touch $@

report: $(READY)  ## the whole run: traces to results/report/index.html (CONFIG=config/….yaml, CORES=n, ARGS=…)
	@rltune run $(RUN) $(WHERE) $(SHARED) $(OPTIONS) -- $(ARGS)

pdf: $(READY)  ## the report as a PDF, results/report/report.pdf; needs a Chromium (CONFIG=…)
	@rltune pdf --config "$(CONFIG)"

snakemake: $(READY)  ## Snakemake's own report of a finished run, results/report/snakemake.html (CONFIG=…)
	@rltune workflow-report --config "$(CONFIG)"

paper: CONFIG := config/paper.yaml
paper: report  ## the paper's whole matrix: says what it costs and asks (YES=1: does not ask)

estimate: $(READY)  ## what a run would still cost: time, downloads, disk (CONFIG=…, CORES=n)
	@rltune estimate $(RUN) $(WHERE)

status:  ## how far a run is, also while it is at work (CONFIG=…)
	@test -f $(READY) || { echo "not set up yet: make setup, or any other command, does that" >&2; exit 2; }
	@rltune status $(RUN)

notebook: $(READY)  ## one stage again and what depends on it: STAGE=train TRACE=… POLICY=… (ONLY=1: it alone)
	@test -n "$(STAGE)" || { echo "make notebook needs STAGE, one of: $$(sed -n 's/^rule \(.*\):$$/\1/p' workflow/rules/*.smk | xargs). For example: make notebook STAGE=figures, make notebook STAGE=train TRACE=philly-synthetic POLICY=sjf (README.md, One stage alone)" >&2; exit 2; }
	@rltune notebook "$(STAGE)" $(AXES) $(call switch,ONLY,only) $(RUN) $(WHERE) $(OPTIONS) $(ARGS)

test: $(READY)  ## all tests, a whole smoke run of the workflow among them (ARGS=… for pytest)
	@python workflow/deps.py --quiet slurm chromium
	@python -m pytest $(ARGS)

slurm-deps: $(READY)  ## install the packages of the emulated Slurm cluster (apt, as root or with sudo), or say which
	@python workflow/deps.py slurm

bench: $(READY)  ## one benchmark: make bench BENCH=name
	@test -n "$(BENCH)" || { echo "make bench BENCH=name, where name is one of:" $$(cd benchmarks && ls *.py 2>/dev/null | sed 's/\.py$$//') >&2; exit 2; }
	@test -f "benchmarks/$(BENCH).py" || { echo "no benchmark '$(BENCH)'; there are:" $$(cd benchmarks && ls *.py | sed 's/\.py$$//') >&2; exit 2; }
	@python benchmarks/$(BENCH).py $(ARGS)

docs: $(READY)  ## the documents as a site: results/docs/index.html
	@python docs/site/generate.py
	@NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet $(ARGS)
	@echo "documents: $(CURDIR)/results/docs/index.html"

lab: $(READY)  ## JupyterLab on the notebooks
	@jupyter lab --notebook-dir=. $(ARGS)

lock: $(READY)  ## compile requirements.lock anew from pyproject.toml (needs uv)
	@uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --extra all --python-version 3.11 pyproject.toml -o requirements.lock $(ARGS)

# a live controller, or one that was killed, needs results/slurm to give jobs back; the run's own files there go
clean:  ## remove results, caches of code and the workflow's state (keeps .venv, downloads, the live controller's results/slurm)
	@find results -mindepth 1 ! -name README.md ! -path results/slurm ! -path 'results/slurm/*' -delete
	@rm -f results/slurm/motivation.*
	@rm -rf .snakemake .cache/numba .cache/matplotlib .pytest_cache .hypothesis
	@find src tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean  ## clean, and the virtual environment and downloads too
	@rm -rf $(VENV) .cache src/*.egg-info
