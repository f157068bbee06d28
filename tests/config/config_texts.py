"""Valid texts of a run, a cluster and a trace, for tests that break them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rltune.config import ClusterConfig, RunConfig, TraceConfig

ROOT = Path(__file__).resolve().parents[2]
RUN = """\
title: T
experiments:
  # the only one
  - workloads: [{trace: philly-smoke, cluster: philly-192}]
    policy: [fifo]
"""
CLUSTER = """\
title: C
pools:
  - name: all
    groups:
      - {gpu_type: P100, nodes: 2, gpus: 8, cpus: 64, mem_gb: 512}
"""
MAP = "columns: {submit_s: a, gpus: b, run_s: {column: c, unit: s}}\n"
TRACE = "title: T\ndata: own\nformat: csv\npath: jobs.csv\n" + MAP
MODELS = {"run": (RunConfig, RUN), "cluster": (ClusterConfig, CLUSTER), "trace": (TraceConfig, TRACE)}

Mistake = Callable[..., str]
"""(text, model) → the message that a file of this text gets."""
