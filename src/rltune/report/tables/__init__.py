"""Tables: each function takes frames and returns (artefact, frame), reads nothing and writes nothing."""
# ruff: noqa: F401

from rltune.report.tables.ablation import ablation
from rltune.report.tables.claims import claims
from rltune.report.tables.comparison import comparison, heuristics
from rltune.report.tables.costs import break_even, costs, latency
from rltune.report.tables.deployment import (
    deployment_classes,
    deployment_fidelity,
    deployment_machinery,
    deployment_numbers,
    deployment_predicted,
    deployment_runs,
)
from rltune.report.tables.design import table1, table3, table5
from rltune.report.tables.example_schedules import example_schedules
from rltune.report.tables.gpu_types import gpu_types
from rltune.report.tables.peers import fig17_numbers, table8, table9, table9_numbers
from rltune.report.tables.placements import placements, solvers
from rltune.report.tables.scheduling_rules import fairness, loads_compared, losers, scheduling_rules
from rltune.report.tables.transfer import policies_of, table7, transfer
from rltune.report.tables.whatif import whatif_groups, whatif_numbers, whatif_recommendation, whatif_steps
from rltune.report.tables.workloads import audits, estimates, loads, table2, table4
