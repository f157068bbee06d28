"""Figures: each function takes frames and returns (artefact, frame, figure), reads nothing and writes nothing.

The frame is what is drawn, to the last point: a figure can be made again from its CSV.
"""

from rltune.report.figures.ablation import ablation as ablation, ablation_training as ablation_training
from rltune.report.figures.arrivals import arrivals as arrivals
from rltune.report.figures.boxes import boxes as boxes
from rltune.report.figures.deployment import fig18 as fig18, fig19 as fig19
from rltune.report.figures.diagrams import fig7 as fig7, fig8 as fig8, fig9 as fig9
from rltune.report.figures.distributions import distributions as distributions
from rltune.report.figures.example_schedules import schedule as schedule
from rltune.report.figures.fairness import fairness as fairness
from rltune.report.figures.fig5 import fig5 as fig5
from rltune.report.figures.fig6 import fig6 as fig6
from rltune.report.figures.fig17 import fig17 as fig17
from rltune.report.figures.gpu_types import gpu_types as gpu_types
from rltune.report.figures.headroom import headroom as headroom
from rltune.report.figures.improvements import improvements as improvements
from rltune.report.figures.loads_compared import loads_compared as loads_compared
from rltune.report.figures.robustness import robustness as robustness
from rltune.report.figures.scheduling_rules import scheduling_rules as scheduling_rules
from rltune.report.figures.sensitivity import sensitivity as sensitivity
from rltune.report.figures.training import training as training
from rltune.report.figures.whatif import whatif as whatif, whatif_days as whatif_days, whatif_groups as whatif_groups
