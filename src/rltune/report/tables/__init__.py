"""Tables: each function takes frames and returns (artefact, frame), reads nothing and writes nothing."""

from rltune.report.tables.ablation import ablation
from rltune.report.tables.audits import audits
from rltune.report.tables.comparison import comparison
from rltune.report.tables.costs import costs
from rltune.report.tables.estimates import estimates
from rltune.report.tables.heuristics import heuristics
from rltune.report.tables.placements import placements
from rltune.report.tables.table7 import table7
from rltune.report.tables.transfer import transfer
from rltune.report.tables.workloads import loads, table2, table4

__all__ = [
    "ablation", "audits", "comparison", "costs", "estimates", "heuristics", "loads", "placements", "table2", "table4",
    "table7", "transfer",
]
