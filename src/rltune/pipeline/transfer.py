"""Which agents of a run are judged where else: against other base policies, on other traces, under other estimates.

Every function returns a row a scheduler × test window with its mean wait. ``cells``: the agents to carry; their
policies and workloads are read, none is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import cache

import numpy as np
import pandas as pd

from rltune.agent.policy_file import load_policy
from rltune.cluster.fit import Jobs
from rltune.config import Cell, Workspace, parse_estimate
from rltune.evaluation.transfer import MOST_WINDOWS, judged, random_order, shortest_windows
from rltune.pipeline.prepare import Workload, ensure_fitted, ensure_workload, estimate_jobs
from rltune.simulator.batch import SchedulerConfig
from rltune.traces.calibrated import calibrated

HOME = ("trace", "cluster")
RULES = ("backfill", "placement", "locality", "estimate")
"""What both sides of a comparison share."""
SIGMAS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""Spreads of the logarithm of lognormal estimates; 0 is the true run time."""
HEURISTICS = (("fifo", "none"), ("sjf", "none"), ("saf", "none"), ("fifo", "easy"), ("saf", "easy"))
"""(Policy, backfill) that the agents are drawn beside; the first goes by no estimate at all."""
KEPT = ["sequence_jobs", "window", "first_job", "wait_s"]

Say = Callable[[str], None]


def across_bases(
    workspace: Workspace, cells: Sequence[Cell], windows: pd.DataFrame, policies: Sequence[str]
) -> pd.DataFrame:
    """Base policies under the rules of the cells, on the cells' test windows of the shortest length.

    Those of ``windows`` (the run's test results, with ``cell``) are taken from there, ``policies`` besides simulated
    now. Columns: HOME, RULES, policy, simulated, and KEPT.
    """
    shortest = windows[windows["sequence_jobs"] == windows["sequence_jobs"].min()]
    base = shortest[shortest["role"] == "base"]
    frames = []
    for where, group in _grouped(cells, (*HOME, *RULES)):
        there = {c.policy: base.loc[base["cell"] == c.name, KEPT] for c in group}
        first = next(iter(there.values()))["first_job"].to_numpy(np.int64)
        frames += [rows.assign(**where, policy=policy, simulated=False) for policy, rows in there.items()]
        missing = [policy for policy in policies if policy not in there]
        workload = ensure_workload(workspace, where["trace"], where["cluster"], where["estimate"]) if missing else None
        for policy in missing:
            scheduler = _scheduler(workspace, policy, **where)
            rows = judged(
                workload.jobs,
                workload.layout,
                first,
                int(shortest["sequence_jobs"].iloc[0]),
                scheduler,
                workspace.config.lookahead,
            )
            rows = rows.assign(sequence_jobs=shortest["sequence_jobs"].iloc[0])
            frames.append(rows[KEPT].assign(**where, policy=policy, simulated=True))
    return pd.concat(frames, ignore_index=True)


def across_traces(workspace: Workspace, cells: Sequence[Cell], say: Say = lambda text: None) -> pd.DataFrame:
    """Every agent on the test windows of every workload that has agents of the same rules, its own among them.

    Roles: ``rltune`` (``cell``: the agent); ``base``, each of their base policies; ``random``, an order drawn anew at
    every decision. All of a workload see the same windows, at most MOST_WINDOWS of the shortest length. Columns: HOME
    (where they are judged), RULES, role, policy, cell ("" but for agents), and KEPT.
    """
    config, frames = workspace.config, []
    policy_of = cache(lambda cell: load_policy(workspace.policy(cell)))
    for rules, group in _grouped(cells, RULES):
        for home in dict.fromkeys((c.trace, c.cluster) for c in group):
            workload = ensure_workload(workspace, *home, rules["estimate"])
            length, first = shortest_windows(workload.split, config.evaluation.sequence_jobs, MOST_WINDOWS)
            here = workload.jobs, workload.layout, first, length
            who = {**dict(zip(HOME, home, strict=True)), **rules}

            def add(rows: pd.DataFrame, role: str, policy: str, cell: str = "") -> None:
                rows = rows.assign(sequence_jobs=length)[KEPT]
                frames.append(rows.assign(**who, role=role, policy=policy, cell=cell))

            bases = list(dict.fromkeys(c.policy for c in group))
            for base in bases:
                add(judged(*here, _scheduler(workspace, base, **rules), config.lookahead), "base", base)
            scheduler = _scheduler(workspace, bases[0], **{**rules, "placement": "best_fit"})
            add(random_order(*here, scheduler, config.lookahead, config.evaluation.seed), "random", "")
            for cell in group:
                scheduler = _scheduler(workspace, cell.policy, **rules)
                rows = judged(*here, scheduler, config.lookahead, policy_of(cell), workload.calibrated)
                add(rows, "rltune", cell.policy, cell.name)
            say(f"{len(group)} agents on {len(first)} windows of {length} jobs of {home[0]} on {home[1]}")
    return pd.concat(frames, ignore_index=True)


def under_noise(workspace: Workspace, cells: Sequence[Cell], say: Say = lambda text: None) -> pd.DataFrame:
    """Agents and heuristics on the same test windows, with estimates of every spread of SIGMAS.

    The estimates of a job err the same way at every spread, only further (rltune.traces.estimates). Heuristics have
    best_fit and their own backfill rule. Agents trained on estimates of another kind than exact or lognormal are left
    out.
    Columns: HOME, locality, sigma, cell ("" for a heuristic), policy, backfill, and KEPT.
    """
    config, frames = workspace.config, []
    for where, group in _grouped([c for c in cells if noisy(c.estimate)], (*HOME, "locality")):
        home = where["trace"], where["cluster"]
        workload = ensure_workload(workspace, *home, group[0].estimate)
        length, first = shortest_windows(workload.split, config.evaluation.sequence_jobs, MOST_WINDOWS)
        agents = [(c, load_policy(workspace.policy(c))) for c in group]
        beliefs = any(policy.facts.get("way", {}).get("uses_calibrated") for _, policy in agents)
        for sigma in SIGMAS:
            jobs, belief = _estimated(workspace, workload, *home, sigma, beliefs)

            def add(rows: pd.DataFrame, policy: str, backfill: str, cell: str = "") -> None:
                rows = rows.assign(sequence_jobs=length)[KEPT]
                frames.append(rows.assign(**where, sigma=sigma, cell=cell, policy=policy, backfill=backfill))

            for policy, backfill in HEURISTICS:
                scheduler = _scheduler(workspace, policy, backfill, "best_fit", where["locality"])
                add(judged(jobs, workload.layout, first, length, scheduler, config.lookahead), policy, backfill)
            for cell, policy in agents:
                scheduler = _scheduler(workspace, cell.policy, cell.backfill, cell.placement, cell.locality)
                rows = judged(jobs, workload.layout, first, length, scheduler, config.lookahead, policy, belief)
                add(rows, cell.policy, cell.backfill, cell.name)
        say(f"{len(group)} agents on {len(first)} windows of {length} jobs of {home[0]}, {len(SIGMAS)} estimates")
    return pd.concat(frames, ignore_index=True)


def noisy(estimate: str) -> bool:
    """Whether an estimate is the true run time, blurred or not: whether it has a spread."""
    return parse_estimate(estimate)[0] in ("lognormal", "exact")


def _estimated(
    workspace: Workspace, workload: Workload, trace: str, cluster: str, sigma: float, beliefs: bool
) -> tuple[Jobs, Jobs | None]:
    """The workload's jobs with estimates of this spread, and with what is calibrated of them, if that is asked for."""
    frame, meta = ensure_fitted(workspace, trace, cluster)
    told_s = estimate_jobs(workspace, frame, meta, f"lognormal-{sigma:g}")["estimate_s"].to_numpy()
    calibrated_s = calibrated(frame, meta, told_s)["calibrated_s"].to_numpy() if beliefs else None
    return _with(workload.jobs, told_s), None if calibrated_s is None else _with(workload.jobs, calibrated_s)


def _with(jobs: Jobs, estimate_s: np.ndarray) -> Jobs:
    row = jobs.row.copy()
    row["estimate_s"] = estimate_s
    return jobs._replace(row=row)


def _scheduler(
    workspace: Workspace, policy: str, backfill: str, placement: str, locality: str, **_: str
) -> SchedulerConfig:
    return SchedulerConfig(policy, backfill, placement, locality, **workspace.config.simulation.model_dump())


def _grouped(cells: Iterable[Cell], axes: Sequence[str]) -> list[tuple[dict[str, str], list[Cell]]]:
    """Cells that agree in these axes, with the values of those, in the order of the cells."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        values = asdict(cell)
        groups.setdefault(tuple(values[a] for a in axes), []).append(cell)
    return [(dict(zip(axes, key, strict=True)), group) for key, group in groups.items()]
