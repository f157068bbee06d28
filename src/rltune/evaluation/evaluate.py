"""Evaluate schedulers on held-out windows: a trained agent next to its base policy, and the heuristics that all share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.types import differ
from rltune.cluster.workload import Workload
from rltune.config import Cell, RunConfig
from rltune.config.run import EvaluationConfig
from rltune.errors import ConfigError, DataError
from rltune.evaluation.contenders import contender_of, heuristics, scheduler_used, simulate_windows
from rltune.placement.agreement import SOLVED_TWICE, resolve_sample
from rltune.placement.counts import Counts
from rltune.placement.lookahead import Lookahead
from rltune.placement.placers import placer_of
from rltune.simulator.bound import lower_bound
from rltune.simulator.config import ASKED
from rltune.simulator.metrics import job_table
from rltune.traces.split import Split, disjoint_windows, spread

LABELS = ["role", "policy", "backfill", "placement", "locality", "sequence_jobs", "window"]
JOBS = ["role", "sequence_jobs", "window", "job_id", "gpus", "run_s", "wait_s", "jct_s", "bsld"]
COUNTED = ("asked", "presolved", "cached", "calls", "infeasible", "limit", "failure")
"""How the placement model answered: columns milp_… of the windows."""
SAMPLE = 32
"""Placement questions of the agent, or else of its base policy, that are solved a second time."""
SHOWN = {"rltune": "RLTune", "rltune_also": "RLTune", "random": "random order"}


class Evaluation(NamedTuple):
    """Results of an evaluation."""

    windows: pd.DataFrame
    """A row per scheduler × test window."""
    jobs: pd.DataFrame
    """A row per job of the agent and of its base policy."""
    placements: pd.DataFrame
    """A row per placement question of the sample that is solved twice (rltune.placement.agreement)."""


def evaluate(
    cell: Cell,
    policy: TrainedPolicy,
    workload: Workload,
    config: RunConfig,
    progress: Callable[[str], None] = lambda text: None,
) -> Evaluation:
    """Run a cell's agent on the test windows, each from an idle cluster, next to what it is compared with.

    Roles: ``rltune`` the greedy agent, under the scheduler configuration it chose; ``base`` its base policy with the
    cell's backfill, placement and locality; ``base_best_fit`` the base with best_fit, where that differs; ``random`` an
    order drawn at random at every decision, with best_fit: what reordering gains without any learning; ``rltune_also``
    and ``base_also`` both under the other placements and localities of ``evaluation.also``, but not under placements
    that ignore speeds where GPU types differ in speed. All see the same windows, the same run-time estimates (the agent
    calibrated ones, if it chose to), and the rules of ``simulation``.
    """
    base = contender_of(config, cell)
    agent = replace(base, policy=policy)
    scheduler_used(workload, agent, f"policy of {cell.name}")  # raises now what would be raised later without the name
    simple = replace(base.scheduler, placement="best_fit")
    runs = [
        ("rltune", agent),
        ("base", base),
        ("random", replace(base, scheduler=simple, random=config.evaluation.seed)),
    ]
    if base.scheduler != simple:
        runs.append(("base_best_fit", replace(base, scheduler=simple)))
    for other in config.evaluation.also:
        names = {"placement": other.placement, "locality": other.locality}
        ignores_speeds = other.placement in ASKED and differ(workload.jobs)
        if replace(base.scheduler, **names) != base.scheduler and not ignores_speeds:
            other_base = replace(base, scheduler=replace(base.scheduler, **names))
            runs += [("rltune_also", replace(other_base, policy=policy.under(**names))), ("base_also", other_base)]
    windows, tables, twice = [], [], pd.DataFrame(columns=SOLVED_TWICE)
    tested = test_windows(workload.split, config.evaluation)
    simulate_windows(workload, agent, tested[min(tested)][:1], min(tested))  # compiles before ``seconds`` are measured
    for length, first in tested.items():
        for role, contender in runs:
            scheduler, _ = scheduler_used(workload, contender)
            sample = SAMPLE if role in ("rltune", "base") and twice.empty else 0
            placer = placer_of(scheduler.placement, config.lookahead, sample)
            table, state = simulate_windows(workload, contender, first, length, placer)
            windows.append(_labelled(table, role, placer.counts if placer else Counts()))
            if sample and isinstance(placer, Lookahead):
                twice = resolve_sample(placer, sample, config.evaluation.seed)
            if role in ("rltune", "base"):
                jobs = job_table(workload.jobs, state).rename(columns={"sequence": "window"})
                tables.append(jobs.assign(role=role, sequence_jobs=length, job_id=workload.job_ids[jobs["job"]]))
            name = SHOWN.get(role, scheduler.policy)
            rules = f"{scheduler.backfill}, {scheduler.placement}, {scheduler.locality}"
            wait_s = windows[-1]["wait_s"].mean()
            progress(f"{len(first)} windows of {length} jobs, {name}, {rules}: mean wait {wait_s:.0f} s")
    return Evaluation(_ordered(windows), pd.concat(tables, ignore_index=True)[JOBS], twice)


def evaluate_baselines(
    workload: Workload, config: RunConfig, localities: Sequence[str] = ("strict",), tuned: bool = False
) -> pd.DataFrame:
    """A row per heuristic (those of contenders.heuristics, in every locality) × window.

    Roles: ``baseline`` on the test windows of :func:`evaluate`; ``baseline_validation`` on windows of the validation
    part, which is what an operator could choose a heuristic by. Custom policies have to be loaded. ``bound_s`` of a
    test window is a mean wait that no schedule goes below (rltune.simulator.bound).
    """
    split, evaluation, frames = workload.split, config.evaluation, []
    for length, first in test_windows(split, evaluation).items():
        parts = {"baseline": first}
        if split.validation[1] - split.validation[0] >= length:
            parts["baseline_validation"] = spread(disjoint_windows(*split.validation, length), evaluation.max_windows)
        for role, starts in parts.items():
            bounds = bound_s(workload, starts, length) if role == "baseline" else np.nan
            for locality in localities:
                for contender in heuristics(config, workload, locality, tuned).values():
                    table, _ = simulate_windows(workload, contender, starts, length)
                    frames.append(_labelled(table, role).assign(bound_s=bounds))
    return _ordered(frames)


def with_baselines(windows: pd.DataFrame, baselines: pd.DataFrame, locality: str) -> pd.DataFrame:
    """An agent's windows and, below them, those of the heuristics in its locality.

    Raises DataError where the heuristics were run on other test windows.
    """
    baselines = baselines[baselines["locality"] == locality]
    tested = baselines[baselines["role"] == "baseline"]
    where = [{*zip(frame["sequence_jobs"], frame["first_job"], strict=True)} for frame in (tested, windows)]
    if where[0] != where[1]:
        raise DataError("the heuristics were run on other test windows or localities; run the stage baselines again")
    return pd.concat([windows, baselines], ignore_index=True)


def test_windows(split: Split, evaluation: EvaluationConfig) -> dict[int, np.ndarray]:
    """Length → first jobs of the disjoint test windows; lengths that do not fit the test part are left out.

    Raises ConfigError when none fits.
    """
    jobs = split.test[1] - split.test[0]
    fitting = [length for length in evaluation.sequence_jobs if length <= jobs]
    if not fitting:
        lengths = ", ".join(map(str, evaluation.sequence_jobs))
        raise ConfigError(
            f"evaluation.sequence_jobs: found {lengths}, but the test part has only {jobs} jobs, so no test window "
            "fits; give a shorter length or a longer trace"
        )
    return {n: spread(disjoint_windows(*split.test, n), evaluation.max_windows) for n in fitting}


def bound_s(workload: Workload, first: np.ndarray, length: int) -> list[float]:
    """The mean wait of each window that no schedule goes below, s."""
    return [lower_bound(workload.jobs, workload.layout, int(f), length).wait_s for f in first]


def _labelled(table: pd.DataFrame, role: str, counts: Counts = Counts()) -> pd.DataFrame:
    """The windows with a role and what the solver did: its counts belong to a whole batch of windows and stand in the
    first row, zeros in the others."""
    first, seconds = np.arange(len(table)) == 0, table.pop("seconds")
    solver = {f"milp_{name}": np.where(first, getattr(counts, name), 0) for name in COUNTED}
    return table.assign(role=role, **solver, seconds=seconds)


def _ordered(frames: list[pd.DataFrame]) -> pd.DataFrame:
    frame = pd.concat(frames, ignore_index=True)
    return frame[LABELS + [c for c in frame if c not in LABELS]]
