"""Figures: each function takes frames and returns (artefact, frame, figure), reads nothing and writes nothing.

The frame is what is drawn, to the last point: a figure can be made again from its CSV.
"""
# ruff: noqa: F401

from rltune.report.figures.ablation import ablation, ablation_training
from rltune.report.figures.boxes import boxes
from rltune.report.figures.deployment import deployment_types, fig18, fig19
from rltune.report.figures.diagrams import diagram, fig9
from rltune.report.figures.example_schedules import schedule
from rltune.report.figures.gpu_types import gpu_types
from rltune.report.figures.improvements import improvements
from rltune.report.figures.peers import fig17, sensitivity
from rltune.report.figures.robustness import robustness
from rltune.report.figures.scheduling_rules import fairness, headroom, loads_compared, scheduling_rules
from rltune.report.figures.training import training
from rltune.report.figures.whatif import whatif, whatif_days, whatif_groups
from rltune.report.figures.workloads import arrivals, distributions, fig5, fig6
