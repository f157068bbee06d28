"""Figures: each function takes frames and returns (artefact, frame, figure), reads nothing and writes nothing.

The frame is what is drawn, to the last point: a figure can be made again from its CSV.
"""

from rltune.report.figures.ablation import ablation
from rltune.report.figures.arrivals import arrivals
from rltune.report.figures.distributions import distributions
from rltune.report.figures.fig17 import fig17
from rltune.report.figures.fig5 import fig5
from rltune.report.figures.fig6 import fig6
from rltune.report.figures.improvements import improvements
from rltune.report.figures.sensitivity import sensitivity
from rltune.report.figures.training import training
from rltune.report.figures.waits import waits

__all__ = [
    "ablation", "arrivals", "distributions", "fig17", "fig5", "fig6", "improvements", "sensitivity", "training",
    "waits",
]
