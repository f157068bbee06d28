"""Agents away from where they were trained: other base policies, traces, clusters and run-time estimates.

Features are shares, ranks or logarithms (rltune.environment.features), so an agent runs on any cluster; what it learned
about their usual values stays that of where it learned. Every function returns a row per scheduler × test window with its
mean wait. ``cells``: the agents to evaluate; none is trained.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pandas as pd

from rltune.cluster.workload import Workload, add_calibrated
from rltune.config import Cell, RunConfig, parse_estimate
from rltune.config.comparisons import HOME, RULES, grouped
from rltune.evaluation.contenders import (
    Contender,
    Policies,
    Workloads,
    contender_of,
    rule_of,
    simulate_windows,
    workload_of,
)
from rltune.traces.estimates import estimate_jobs
from rltune.traces.split import Split, disjoint_windows, spread

MOST_WINDOWS = 24
"""Test windows of a workload, evenly spread: as many as useful intervals need, as few as keep the chapter within a minute
or two. Our choice."""
SIGMAS = (0.0, 0.5, 1.0, 2.0)
"""Spreads of the logarithm of lognormal estimates; 0 is the true run time."""
HEURISTICS = (("fifo", "none"), ("sjf", "none"), ("saf", "none"), ("fifo", "easy"), ("saf", "easy"))
"""(Policy, backfill) that are drawn next to the agents; the first uses no estimate at all."""
KEPT = ["sequence_jobs", "window", "first_job", "wait_s"]


def across_bases(
    config: RunConfig,
    cells: Sequence[Cell],
    windows: pd.DataFrame,
    workloads: Workloads,
    agents: Policies,
    policies: Sequence[str],
    progress: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """Base policies, and every agent with each of them in place of its own, on the cells' test windows of the shortest
    length. An agent that chose a policy in training keeps it.

    Base policies: those of the cells with the same rules, and ``policies``. Roles: ``base``; ``rltune`` (``cell``: the
    agent). What ``windows`` (the run's test results, with ``cell``) has is taken from there, the rest is simulated now.
    Columns: HOME, RULES, role, policy (in the test), cell, and KEPT.
    """
    length = int(windows["sequence_jobs"].min())
    known = windows[windows["sequence_jobs"] == length].groupby(["role", "cell"])
    frames = []
    for where, group in _grouped(cells, (*HOME, *RULES)):
        workload = workload_of(group[0], workloads)
        first = known.get_group(("base", group[0].name))["first_job"].to_numpy(np.int64)
        for policy in dict.fromkeys([*(c.policy for c in group), *policies]):
            own = [c for c in group if c.policy == policy]
            base = known.get_group(("base", own[0].name)) if own else contender_of(config, group[0], policy=policy)
            runs = {"": base}
            for c in group:
                if c in own or config.preset(c.preset).tunes != "nothing":
                    runs[c.name] = known.get_group(("rltune", c.name))
                else:
                    runs[c.name] = contender_of(config, c, agents[c].under(policy=policy), policy=policy)
            for cell, run in runs.items():
                rows = simulate_windows(workload, run, first, length)[0] if isinstance(run, Contender) else run
                role = "rltune" if cell else "base"
                frames.append(rows[KEPT].assign(**where, role=role, policy=policy, cell=cell))
            progress(f"{where['trace']} on {where['cluster']}: agents {len(group)}, base policy {policy}")
    return pd.concat(frames, ignore_index=True)


def across_traces(
    config: RunConfig,
    cells: Sequence[Cell],
    workloads: Workloads,
    policies: Policies,
    progress: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """Every agent on the test windows of every workload that has agents of the same rules, its own among them.

    Roles: ``rltune`` (``cell``: the agent); ``base``, each of their base policies; ``random``, an order drawn at random
    at every decision. All of a workload see the same windows, at most MOST_WINDOWS of the shortest length. Columns:
    HOME (where they are evaluated), RULES, role, policy, cell ("" but for agents), and KEPT.
    """
    frames = []
    for rules, group in _grouped(cells, RULES):
        for home in dict.fromkeys((c.trace, c.cluster) for c in group):
            workload = workloads[*home, rules["estimate"]]
            length, first = shortest_windows(workload.split, config.evaluation.sequence_jobs)
            random = replace(contender_of(config, group[0], placement="best_fit"), random=config.evaluation.seed)
            bases = dict.fromkeys(c.policy for c in group)
            runs = [("base", base, "", contender_of(config, group[0], policy=base)) for base in bases]
            runs.append(("random", "", "", random))
            runs += [("rltune", c.policy, c.name, contender_of(config, c, policies[c])) for c in group]
            for role, policy, cell, contender in runs:
                rows, _ = simulate_windows(workload, contender, first, length)
                where = {**dict(zip(HOME, home, strict=True)), **rules}
                frames.append(rows[KEPT].assign(**where, role=role, policy=policy, cell=cell))
            progress(f"{home[0]} on {home[1]}: agents {len(group)}, windows {len(first)} of {length} jobs")
    return pd.concat(frames, ignore_index=True)


def under_noise(
    config: RunConfig,
    cells: Sequence[Cell],
    workloads: Workloads,
    policies: Policies,
    progress: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """Agents and heuristics on the same test windows, with estimates of every spread of SIGMAS.

    The estimates of a job err in the same direction at every spread, only further (rltune.traces.estimates). Heuristics
    have best_fit and their own backfill rule. Agents trained on estimates of another kind than exact or lognormal are
    left out. Columns: HOME, locality, sigma, cell ("" for a heuristic), policy, backfill, and KEPT.
    """
    frames = []
    have_spread = [c for c in cells if parse_estimate(c.estimate)[0] in ("lognormal", "exact")]
    for where, group in _grouped(have_spread, (*HOME, "locality")):
        workload = workload_of(group[0], workloads)
        length, first = shortest_windows(workload.split, config.evaluation.sequence_jobs)
        calibrate = any(policies[c].facts.get("scheduler", {}).get("uses_calibrated") for c in group)
        runs = [
            (policy, backfill, "", rule_of(config, policy, backfill, where["locality"]))
            for policy, backfill in HEURISTICS
        ]
        runs += [(c.policy, c.backfill, c.name, contender_of(config, c, policies[c])) for c in group]
        for sigma in SIGMAS:
            given = parse_estimate(group[0].estimate) == ("lognormal", sigma)
            blurred = workload if given else with_spread(workload, sigma, config.evaluation.seed, calibrate)
            for policy, backfill, cell, contender in runs:
                rows, _ = simulate_windows(blurred, contender, first, length)
                frames.append(rows[KEPT].assign(**where, sigma=sigma, cell=cell, policy=policy, backfill=backfill))
        home = where["trace"]
        progress(f"{home}: agents {len(group)}, windows {len(first)} of {length} jobs, estimates {len(SIGMAS)}")
    return pd.concat(frames, ignore_index=True)


def shortest_windows(split: Split, lengths: Sequence[int]) -> tuple[int, np.ndarray]:
    """(Length, first jobs) of the test windows of the shortest of ``lengths``, at most MOST_WINDOWS, evenly spread.

    Raises ConfigError where not one fits.
    """
    length = min(lengths)
    return length, spread(disjoint_windows(*split.test, length), MOST_WINDOWS)


def with_spread(workload: Workload, sigma: float, seed: int, calibrate: bool) -> Workload:
    """The workload with lognormal estimates of this spread, and calibrated ones if asked."""
    table = workload.table.drop(columns=["estimate_s", "calibrated_s"], errors="ignore")
    made = estimate_jobs(table, workload.meta, f"lognormal-{sigma:g}", seed)
    if calibrate:
        made = add_calibrated(table, workload.meta, made).drop(columns="job_id")
    table = pd.concat([table, made.drop(columns="source")], axis=1)
    return replace(workload, table=table, jobs=workload.with_estimates(table["estimate_s"]))


def _grouped(cells: Iterable[Cell], axes: Sequence[str]) -> list[tuple[dict[str, str], list[Cell]]]:
    """Cells that agree in these axes, with the values of those, in the order of the cells."""
    groups = grouped(cells, attrgetter(*axes))
    return [(dict(zip(axes, values, strict=True)), group) for values, group in groups.items()]
