"""Tables: each function takes frames and returns (artefact, frame), reads nothing and writes nothing."""

from rltune.report.tables.ablation import ablation as ablation
from rltune.report.tables.break_even import break_even as break_even
from rltune.report.tables.claims import claims as claims
from rltune.report.tables.comparison import comparison as comparison
from rltune.report.tables.costs import costs as costs
from rltune.report.tables.deployment import (
    deployment_fidelity as deployment_fidelity,
    deployment_machinery as deployment_machinery,
    deployment_numbers as deployment_numbers,
    deployment_predicted as deployment_predicted,
    deployment_runs as deployment_runs,
)
from rltune.report.tables.design import table1 as table1, table3 as table3, table5 as table5
from rltune.report.tables.example_schedules import example_schedules as example_schedules
from rltune.report.tables.fairness import fairness as fairness, losers as losers
from rltune.report.tables.gpu_types import gpu_types as gpu_types
from rltune.report.tables.heuristics import heuristics as heuristics
from rltune.report.tables.latency import latency as latency
from rltune.report.tables.loads_compared import loads_compared as loads_compared
from rltune.report.tables.peers import (
    fig17_numbers as fig17_numbers,
    table8 as table8,
    table9 as table9,
    table9_numbers as table9_numbers,
)
from rltune.report.tables.placements import placements as placements, solvers as solvers
from rltune.report.tables.scheduling_rules import scheduling_rules as scheduling_rules
from rltune.report.tables.transfer import policies_of as policies_of, table7 as table7, transfer as transfer
from rltune.report.tables.whatif import (
    whatif_groups as whatif_groups,
    whatif_numbers as whatif_numbers,
    whatif_recommendation as whatif_recommendation,
    whatif_steps as whatif_steps,
)
from rltune.report.tables.workloads import (
    audits as audits,
    estimates as estimates,
    loads as loads,
    table2 as table2,
    table4 as table4,
)
