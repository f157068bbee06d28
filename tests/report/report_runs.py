"""The generated runs that the report is tested with (run.yaml, run_of_metrics.yaml): their traces and clusters, the paper's
numbers, and how runs are evaluated."""

from pathlib import Path

from rltune.evaluation.intervals import Intervals
from rltune.report.paper import load_deviations, load_paper

SOURCE = Path(__file__).resolve().parents[2]
PAPER, INTERVALS = load_paper(SOURCE / "config/paper_results.yaml"), Intervals(200)
DEVIATIONS = load_deviations(SOURCE / "config/deviations.yaml")
CLUSTER = """title: Cluster {name}
pools: [{{name: all, groups: [{{gpu_type: P100, nodes: 4, gpus: 8, cpus: 64, mem_gb: 512}}]}}]
"""
TRACE = """title: {title}
data: synthetic
format: {format}
synthetic: {{seed: 7, jobs: 100}}
"""
