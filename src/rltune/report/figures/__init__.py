"""Figures: each function takes frames and returns (artefact, frame, figure), reads nothing and writes nothing.

The frame is what is drawn, to the last point: a figure can be made again from its CSV.
"""

from rltune.report.figures.ablation import ablation, ablation_training
from rltune.report.figures.arrivals import arrivals
from rltune.report.figures.boxes import boxes
from rltune.report.figures.deployment import fig18, fig19
from rltune.report.figures.diagrams import fig7, fig8
from rltune.report.figures.distributions import distributions
from rltune.report.figures.fairness import fairness
from rltune.report.figures.fig5 import fig5
from rltune.report.figures.fig6 import fig6
from rltune.report.figures.fig17 import fig17
from rltune.report.figures.headroom import headroom
from rltune.report.figures.improvements import improvements
from rltune.report.figures.loads_compared import loads_compared
from rltune.report.figures.example_schedules import schedule
from rltune.report.figures.networks import fig9
from rltune.report.figures.robustness import robustness
from rltune.report.figures.headroom import room
from rltune.report.figures.semantics import semantics
from rltune.report.figures.sensitivity import sensitivity
from rltune.report.figures.training import training
from rltune.report.figures.whatif import whatif, whatif_days, whatif_groups

__all__ = [
    "ablation",
    "ablation_training",
    "arrivals",
    "boxes",
    "distributions",
    "fairness",
    "fig17",
    "fig18",
    "fig19",
    "fig5",
    "fig6",
    "fig7",
    "fig8",
    "fig9",
    "improvements",
    "loads_compared",
    "robustness",
    "headroom",
    "schedule",
    "scheduling_rules",
    "sensitivity",
    "training",
    "whatif",
    "whatif_days",
    "whatif_groups",
]
