"""Tables: each function takes frames and returns (artefact, frame), reads nothing and writes nothing."""

from rltune.report.tables.ablation import ablation
from rltune.report.tables.audits import audits
from rltune.report.tables.break_even import break_even
from rltune.report.tables.comparison import comparison
from rltune.report.tables.costs import costs
from rltune.report.tables.deployment import deployment_numbers, deployment_runs
from rltune.report.tables.deployment_fidelity import deployment_fidelity, deployment_predicted
from rltune.report.tables.deployment_machinery import deployment_machinery
from rltune.report.tables.estimates import estimates
from rltune.report.tables.fairness import fairness, losers
from rltune.report.tables.heuristics import heuristics
from rltune.report.tables.latency import latency
from rltune.report.tables.learners import table9, table9_numbers
from rltune.report.tables.loads_compared import loads_compared
from rltune.report.tables.example_schedules import motivation
from rltune.report.tables.break_even import payback
from rltune.report.tables.placements import placements
from rltune.report.tables.qssf import fig17_numbers, table8
from rltune.report.tables.scheduling_rules import scheduling_rules
from rltune.report.tables.table7 import table7
from rltune.report.tables.transfer import transfer
from rltune.report.tables.claims import verdicts
from rltune.report.tables.whatif import whatif_groups, whatif_numbers, whatif_recommendation, whatif_steps
from rltune.report.tables.design import table1, table3, table5
from rltune.report.tables.workloads import loads, table2, table4

__all__ = [
    "ablation",
    "audits",
    "comparison",
    "costs",
    "deployment_fidelity",
    "deployment_machinery",
    "deployment_numbers",
    "deployment_predicted",
    "deployment_runs",
    "estimates",
    "fairness",
    "fig17_numbers",
    "heuristics",
    "latency",
    "loads",
    "loads_compared",
    "losers",
    "example_schedules",
    "break_even",
    "placements",
    "scheduling_rules",
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "table7",
    "table8",
    "table9",
    "table9_numbers",
    "transfer",
    "verdicts",
    "whatif_groups",
    "whatif_numbers",
    "whatif_recommendation",
    "whatif_steps",
]
