"""Configurations of the generated runs that the report is tested with, the paper's numbers, and how runs are evaluated."""

from __future__ import annotations

from pathlib import Path

from rltune.evaluation.intervals import Intervals
from rltune.report.paper import load_paper

SOURCE = Path(__file__).resolve().parents[2]
PAPER, INTERVALS = load_paper(SOURCE), Intervals(200)
CLUSTER = """title: Cluster {name}
pools: [{{name: all, groups: [{{gpu_type: P100, nodes: 4, gpus: 8, cpus: 64, mem_gb: 512}}]}}]
"""
TRACE = """title: {title}
data: synthetic
format: {format}
synthetic: {{seed: 7, jobs: 100}}
"""
RUN = """title: RLTune, a test run
description: Generated numbers, to look at the page with.
workloads: [{trace: philly, cluster: philly-192-balanced}]
experiments:
  - workloads:
      - {trace: philly, cluster: philly-192}
      - {trace: venus, cluster: venus-160}
      - {trace: pai, cluster: pai-140}
    policy: [fifo, sjf, f1, wfp3]
  - workloads: [{trace: philly, cluster: philly-192}]
    policy: [fifo, sjf]
    features: [raw]
    placement: [best_fit]
simulation: {multi_node_slowdown: 1.2}
evaluation: {bootstrap: 200, also: [{placement: best_fit}, {placement: lookahead, locality: soonest_end}]}
"""
METRICS = """title: RLTune, a test run of every metric
description: Generated numbers, to look at the page with.
experiments:
  - workloads: &all
      - {trace: philly, cluster: philly-192}
      - {trace: venus, cluster: venus-160}
      - {trace: pai, cluster: pai-140}
    policy: [fifo, f1]
    metric: [bsld, jct, utilisation]
  - workloads:
      - {trace: philly, cluster: philly-192}
      - {trace: venus, cluster: venus-160}
    policy: [multifactor]
    metric: [bsld]
    seed: [1, 2, 3]
  - workloads: [{trace: philly, cluster: philly-192}]
    policy: [multifactor]
    metric: [bsld]
    features: [raw]
    placement: [exclusive]
  - workloads: [{trace: philly, cluster: philly-192}]
    policy: [fifo]
    metric: [0.7*wait+0.3*utilisation]
evaluation: {bootstrap: 200}
"""
