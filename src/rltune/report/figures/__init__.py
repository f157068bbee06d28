"""Figures: each function takes frames and returns (artefact, frame, figure), reads nothing and writes nothing.

The frame is what is drawn, to the last point: a figure can be made again from its CSV.
"""

from rltune.report.figures.ablation import ablation
from rltune.report.figures.improvements import improvements
from rltune.report.figures.training import training
from rltune.report.figures.waits import waits

__all__ = ["ablation", "improvements", "training", "waits"]
