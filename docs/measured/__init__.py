"""Tables of the pages in docs/ that are made of measurements."""

from __future__ import annotations

from collections.abc import Callable

from measured.claims import claims, verdicts, waits_of_csv
from measured.costs import controller_cycles, question_costs, training_speed
from measured.deployment import deployed, deployed_against, deployed_and_simulated, deployed_classes
from measured.gpu_types import type_agents, type_agents_otherwise, type_parts, type_rules, type_search, type_settings
from measured.placement import model_sizes, placement_gains, placement_means
from measured.quality import constants, other_learners, quality

MEASURED: dict[str, Callable[[], str]] = {
    "waits in long windows": lambda: quality("quality", 1024, also="jct"),
    "waits in short windows": lambda: quality("quality", 256, also="jct"),
    "long waits by origin": lambda: quality("origins", 1024, also="jct"),
    "short waits by origin": lambda: quality("origins", 256),
    "slowdowns in long windows": lambda: quality("slowdown", 1024, "bsld"),
    "slowdowns in short windows": lambda: quality("slowdown", 256, "bsld"),
    "waits with contention": lambda: quality("contention", 256, also="jct"),
    "other learners": other_learners,
    "constants": constants,
    "verdicts": verdicts,
    "claims": claims,
    "waits of CSV files": waits_of_csv,
    "placements": placement_means,
    "placements compared": lambda: placement_gains(
        "middle",
        "best_fit worth_it / best_fit strict",
        "best_fit soonest_end / best_fit worth_it",
        "isolating_best_fit soonest_end / best_fit soonest_end",
        "lookahead soonest_end / best_fit strict",
        "lookahead soonest_end / isolating_best_fit soonest_end",
    ),
    "placements under weak interference": lambda: placement_gains(
        "low", "lookahead worth_it / best_fit worth_it", "lookahead worth_it / isolating_best_fit worth_it"
    ),
    "sizes of the placement model": model_sizes,
    "controller cycles": controller_cycles,
    "question costs": question_costs,
    "training speed": training_speed,
    "deployment": deployed,
    "deployment compared": deployed_against,
    "deployment classes": deployed_classes,
    "deployment simulated": deployed_and_simulated,
    "GPU types": type_rules,
    "GPU types in other settings": type_settings,
    "GPU types without a part": type_parts,
    "GPU types, agents": type_agents,
    "GPU types, other agents": type_agents_otherwise,
    "search of a plan": type_search,
}
"""Name of a table → what makes it."""
