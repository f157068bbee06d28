"""Tables of the pages in docs/ that are made of measurements."""

from collections.abc import Callable

from measured import claims, costs, deployment, gpu_types, placement, quality

MEASURED: dict[str, Callable[[], str]] = {
    "waits in long windows": lambda: quality.quality("quality", 1024, also="jct"),
    "waits in short windows": lambda: quality.quality("quality", 256, also="jct"),
    "long waits by origin": lambda: quality.quality("origins", 1024, also="jct"),
    "short waits by origin": lambda: quality.quality("origins", 256),
    "slowdowns in long windows": lambda: quality.quality("slowdown", 1024, "bsld"),
    "slowdowns in short windows": lambda: quality.quality("slowdown", 256, "bsld"),
    "waits with contention": lambda: quality.quality("contention", 256, also="jct"),
    "other learners": quality.other_learners,
    "constants": quality.constants,
    "verdicts": claims.verdicts,
    "claims": claims.claims,
    "waits of CSV files": claims.waits_of_csv,
    "placements": placement.placement_means,
    "placements compared": lambda: placement.placement_gains(
        "middle",
        "best_fit worth_it / best_fit strict",
        "best_fit soonest_end / best_fit worth_it",
        "isolating_best_fit soonest_end / best_fit soonest_end",
        "lookahead soonest_end / best_fit strict",
        "lookahead soonest_end / isolating_best_fit soonest_end",
    ),
    "placements under weak interference": lambda: placement.placement_gains(
        "low", "lookahead worth_it / best_fit worth_it", "lookahead worth_it / isolating_best_fit worth_it"
    ),
    "sizes of the placement model": placement.model_sizes,
    "controller cycles": costs.controller_cycles,
    "question costs": costs.question_costs,
    "training speed": costs.training_speed,
    "deployment": deployment.deployed,
    "deployment compared": deployment.deployed_against,
    "deployment classes": deployment.deployed_classes,
    "deployment simulated": deployment.deployed_and_simulated,
    "GPU types": gpu_types.type_rules,
    "GPU types in other settings": gpu_types.type_settings,
    "GPU types without a part": gpu_types.type_parts,
    "GPU types, agents": gpu_types.type_agents,
    "GPU types, other agents": gpu_types.type_agents_otherwise,
    "GPU types under uncertainty": gpu_types.type_uncertainty,
    "GPU types, prices of agents": gpu_types.type_prices,
    "search of a plan": gpu_types.type_search,
}
"""Name of a table → what makes it."""
