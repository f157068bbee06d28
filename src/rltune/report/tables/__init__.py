"""Tables: each function takes frames and returns (artefact, frame), reads nothing and writes nothing."""

from rltune.report.tables.ablation import ablation
from rltune.report.tables.audits import audits
from rltune.report.tables.comparison import comparison
from rltune.report.tables.costs import costs
from rltune.report.tables.estimates import estimates
from rltune.report.tables.heuristics import heuristics
from rltune.report.tables.latency import latency
from rltune.report.tables.learners import table9, table9_numbers
from rltune.report.tables.payback import payback
from rltune.report.tables.placements import placements
from rltune.report.tables.qssf import fig17_numbers, table8
from rltune.report.tables.workloads import loads, table2, table4

__all__ = [
    "ablation", "audits", "comparison", "costs", "estimates", "fig17_numbers", "heuristics", "latency", "loads",
    "payback", "placements", "table2", "table4", "table8", "table9", "table9_numbers",
]
