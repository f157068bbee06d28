# RLTune's commands. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CONFIG ?= config/default.yaml
CORES ?= $(shell getconf _NPROCESSORS_ONLN)
PYTHON ?= $(shell command -v python3)
BENCH ?=
ARGS ?=

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

.PHONY: help setup report test bench lab lock clean distclean

help:  ## list these commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY)  ## the virtual environment, the project in it, its Jupyter kernel

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) workflow/setup.py --venv $(VENV) --lock requirements.lock
	@touch $@

report: $(READY)  ## the whole run: traces to results/report/index.html (CONFIG=config/….yaml, CORES=n, ARGS=…)
	@rltune run --config "$(CONFIG)" --cores $(CORES) -- $(ARGS)

test: $(READY)  ## all tests, a whole smoke run of the workflow among them (ARGS=… for pytest)
	@python -m pytest $(ARGS)

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
