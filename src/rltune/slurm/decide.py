"""The ranking of what was observed, and where the first jobs of it could go now: features, actor, placement model.

The very code of training and judging: the engine asks for the ranking and the placements of one instant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rltune.agent.learners import ranker_of
from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.fit import Jobs
from rltune.config.slurm import SlurmConfig
from rltune.placement.placers import placer_of
from rltune.simulator.batch import Run
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.found import resume
from rltune.slurm.observe import View


@dataclass(frozen=True)
class Decision:
    """What is to be done about the jobs of a view."""

    orders: dict[str, list[int]]
    """Pool → job ids, the first to start first."""
    scores: dict[int, float]
    """Logit of each job that the actor saw, higher first; others stand behind by the base policy."""
    starts: dict[int, dict[str, int]]
    """Jobs that could start now if they are taken in this order → GPUs on each node."""
    alone: frozenset[int]
    """Of those, the ones the placement model keeps company away from."""


def scheduler_of(policy: TrainedPolicy, config: SlurmConfig) -> SchedulerConfig:
    """How decisions are thought out: whose order stands behind, what may start behind a job that does not fit, where."""
    chosen = policy.facts.get("scheduler", {})
    base = config.base_policy or chosen.get("policy") or policy.facts.get("policy", "fifo")
    return SchedulerConfig(base, config.backfill, config.placement, interference_slowdown=config.interference_slowdown)


def decide(view: View, policy: TrainedPolicy, config: SlurmConfig) -> Decision:
    """Rank the jobs of a view, and place those that could start now."""
    jobs = _with_one_to_come(view.jobs, view.found.now_s)
    scheduler = scheduler_of(policy, config)
    run = resume(jobs, view.layout, view.found, scheduler, placer_of(scheduler.placement, config.lookahead), asks=True)
    ranker, state = ranker_of(policy, jobs, view.layout), run.state
    first = len(view.running)
    ids = {first + k: job.id for k, job in enumerate(view.ranked)}
    orders = _orders(view, ids)
    scores: dict[int, float] = {}
    seen: set[int] = set()
    # each pool is ranked once: what comes after, as jobs start one by one, is the placement model's business
    while len(asking := run.advance()) and state.now[0] == view.found.now_s:
        ranker(state, asking)
        pool = int(state.status["queue"][0])
        if pool not in seen:
            seen.add(pool)
            mine = state.queued_jobs(0)
            score = state.score[0, : len(mine)]
            scores |= {ids[int(job)]: -float(value) for job, value in zip(mine, score, strict=True)}
            orders[view.layout.pools[pool]] = _order(run, ids, mine, score)
    starts = {ids[job]: _places(run, view, job) for job in ids if state.start[0, job] == view.found.now_s}
    alone = _alone(view, starts) if config.exclusive == "model" and config.interference_slowdown > 1 else frozenset()
    return Decision({pool: order for pool, order in orders.items() if order}, scores, starts, alone)


def _with_one_to_come(jobs: Jobs, now_s: float) -> Jobs:
    """The same jobs and one that is submitted later, so that the run has an instant after now whatever happens."""
    last = jobs.take(np.array([len(jobs.row) - 1]))
    last.row["submit_s"] = now_s + 86400.0
    return Jobs(np.concatenate([jobs.row, last.row]), np.concatenate([jobs.cut, last.cut]))


def _orders(view: View, ids: dict[int, int]) -> dict[str, list[int]]:
    """Job ids of each pool by submission: of pools with one job, about which nothing is asked."""
    orders: dict[str, list[int]] = {pool: [] for pool in view.layout.pools}
    for row, job in ids.items():
        orders[view.layout.pools[int(view.jobs.pool[row])]].append(job)
    return orders


def _order(run: Run, ids: dict[int, int], mine: np.ndarray, score: np.ndarray) -> list[int]:
    """A queue in the order of the scores; behind it, as they stand, the jobs that the ranking did not see."""
    state = run.state
    q = state.status["queue"][0]
    at, n = int(state.queue["at"][0, q]), int(state.status["queued"][0])
    behind = state.waiting[0, at + len(mine) : at + n]
    first = mine[np.lexsort((mine, score))]
    return [ids[int(job)] for job in (*first, *behind)]


def _places(run: Run, view: View, job: int) -> dict[str, int]:
    at, n = (int(run.state.run[name][0, job]) for name in ("at", "len"))
    chunk = run.state.chunk[0, at : at + n]
    return {view.nodes[int(c["node"])]: int(c["gpus"]) for c in chunk}


def _alone(view: View, starts: dict[int, dict[str, int]]) -> frozenset[int]:
    """Jobs of several GPUs placed on idle nodes although a node in use has as many GPUs free as one of their parts."""
    free, total = view.found.free["gpus"].astype(int).copy(), view.layout.nodes.gpus
    at, alone = {name: m for m, name in enumerate(view.nodes)}, set()
    for job, places in starts.items():
        nodes = [at[name] for name in places]
        used = (free < total) & (free >= max(places.values()))
        if sum(places.values()) > 1 and all(free[m] == total[m] for m in nodes) and used.any():
            alone.add(job)
        for name, gpus in places.items():
            free[at[name]] -= gpus
    return frozenset(alone)
