"""Rank the observed jobs, place those that could start now, and turn the ranking into priorities.

It runs the code of training and evaluation: the engine requests the ranking and the placements of one event time.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import ranker_of
from rltune.agent.scheduler_choice import type_plan
from rltune.cluster.fit import Jobs
from rltune.config.max_wait import bound_of
from rltune.config.run import LookaheadConfig
from rltune.config.slurm import Band, SlurmConfig
from rltune.placement.placers import placer_of
from rltune.simulator.batch import Simulation
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.snapshot import resume
from rltune.slurm.observe import View


@dataclass(frozen=True)
class Decision:
    """What to do about the jobs of a view."""

    orders: dict[str, list[int]]
    """Pool → job ids, in the order of their start."""
    scores: dict[int, float]
    """Logit of each job that the actor saw, higher first; others follow in the order of the base policy."""
    starts: dict[int, dict[str, int]]
    """Jobs that could start now, in this order → GPUs on each node."""
    exclusive: frozenset[int]
    """Those of them that the placement model isolates."""
    types: dict[int, str] = field(default_factory=dict)
    """Jobs whose GPU type is to be decided → the type that is planned for them, also where it is not free yet."""


def scheduler_of(policy: TrainedPolicy, config: SlurmConfig) -> SchedulerConfig:
    """The scheduler of the decision: the order that the policy starts from, which is also that of the jobs that it does not
    see, and a reservation for the first job; the placement model only where jobs may get whole nodes. Where GPU types are decided,
    a plan for all jobs, with the rule and the price of GPU time that the policy was trained with, if any; jobs past their
    maximum wait are planned first."""
    trained = policy.facts.get("scheduler", {})
    base = trained.get("policy") or policy.facts.get("policy", "fifo")
    if config.speeds is not None:
        return SchedulerConfig(base, "conservative", max_wait_h=config.max_wait_h, **type_plan(policy.facts))
    isolates = config.exclusive == "model" and config.interference_slowdown > 1
    placement = "lookahead" if isolates else "best_fit"
    more = {"interference_slowdown": config.interference_slowdown, "max_wait_h": config.max_wait_h}
    return SchedulerConfig(base, "easy", placement, **more)


def overdue(view: View, config: SlurmConfig) -> list[int]:
    """The ranked jobs that have waited longer than their size may, since Slurm could start them; the longest wait first."""
    since = {job.id: max(job.submit_s, job.eligible_s or 0.0) for job in view.ranked}
    limits_s = {job.id: 3600 * bound_of(config.max_wait_h, job.gpus) for job in view.ranked}
    return sorted((n for n in since if view.now_s - since[n] > limits_s[n]), key=since.__getitem__)


def decide(view: View, policy: TrainedPolicy, config: SlurmConfig) -> Decision:
    """Rank the jobs of a view, and place those that could start now."""
    jobs = _with_later_job(view.jobs, view.snapshot.now_s)
    scheduler = scheduler_of(policy, config)
    run = resume(
        jobs, view.layout, view.snapshot, scheduler, placer_of(scheduler.placement, LookaheadConfig()), asks=True
    )
    ranker, state = ranker_of(policy, jobs, view.layout), run.state
    first, late = len(view.running), {*overdue(view, config)}
    ids = {first + k: job.id for k, job in enumerate(view.ranked)}
    for row, job in ids.items():
        state.run["latest"][0, row] = -np.inf if job in late else np.inf
    orders: dict[str, list[int]] = {pool: [] for pool in view.layout.pools}
    for row, job in ids.items():  # by submission, for pools with one job, which are not ranked
        orders[view.layout.pools[int(view.jobs.pool[row])]].append(job)
    scores: dict[int, float] = {}
    seen: set[int] = set()
    # each pool is ranked once; the rest is where jobs start, one by one
    while len(asking := run.advance()) and state.now[0] == view.snapshot.now_s:
        ranker(state, asking)
        pool = int(state.status["queue"][0])
        if pool not in seen:
            seen.add(pool)
            ranked = state.queued_jobs(0)
            score = state.score[0, : len(ranked)]
            scores |= {ids[int(job)]: -float(value) for job, value in zip(ranked, score, strict=True)}
            orders[view.layout.pools[pool]] = _order(run, ids, ranked, score)
    planned = state.run["planned"][0]
    types = {k: view.layout.types[planned[job]] for job, k in ids.items() if k in view.flexible and planned[job] >= 0}
    starts = {ids[job]: _places(run, view, job) for job in ids if state.start[0, job] == view.snapshot.now_s}
    exclusive = _exclusive(view, starts) if scheduler.placement == "lookahead" else frozenset()
    return Decision({pool: order for pool, order in orders.items() if order}, scores, starts, exclusive, types)


def _with_later_job(jobs: Jobs, now_s: float) -> Jobs:
    """The same jobs and a later one, so that the run always has an event after now."""
    last = jobs.take(np.array([len(jobs.row) - 1]))
    last.row["submit_s"] = now_s + 86400.0
    return Jobs(np.concatenate([jobs.row, last.row]), np.concatenate([jobs.cut, last.cut]))


def _order(run: Simulation, ids: dict[int, int], ranked: np.ndarray, score: np.ndarray) -> list[int]:
    """A queue in the order of the scores, followed by the jobs that the ranking did not see."""
    state = run.state
    q = state.status["queue"][0]
    at, n = int(state.queue["at"][0, q]), int(state.status["queued"][0])
    behind = state.waiting[0, at + len(ranked) : at + n]
    first = ranked[np.lexsort((ranked, score))]
    return [ids[int(job)] for job in (*first, *behind)]


def _places(run: Simulation, view: View, job: int) -> dict[str, int]:
    at, n = (int(run.state.run[name][0, job]) for name in ("at", "len"))
    chunk = run.state.chunk[0, at : at + n]
    return {view.cluster.nodes[int(c["node"])].name: int(c["gpus"]) for c in chunk}


def _exclusive(view: View, starts: dict[int, dict[str, int]]) -> frozenset[int]:
    """Jobs of several GPUs placed on idle nodes although a node in use has as many GPUs free as one of their parts; without
    jobs that may not use every node of their pool."""
    free, total = view.snapshot.free["gpus"].astype(int).copy(), view.layout.nodes.gpus
    at, exclusive = view.cluster.index, set()
    for job, places in starts.items():
        nodes = [at[name] for name in places]
        used = (free < total) & (free >= max(places.values()))
        if sum(places.values()) > 1 and all(free[m] == total[m] for m in nodes) and used.any():
            exclusive.add(job)
        for name, gpus in places.items():
            free[at[name]] -= gpus
    return frozenset(exclusive - view.confined)


def assign(order: Sequence[int], current: Mapping[int, int], band: Band) -> dict[int, int]:
    """Job → new priority, for the fewest jobs that have to change so that ``order`` (first goes first) holds.

    The most jobs that are already in order, with priorities in the band, keep theirs (a longest decreasing subsequence);
    the others are spread over the gaps. Where a gap is too narrow, all are spread again.
    Raises ValueError for a queue longer than the band.
    """
    if len(order) > band.high - band.low + 1:
        raise ValueError(
            f"{len(order):,} jobs to rank, and {band.high - band.low + 1:,} priorities in the band: widen it"
        )
    stay = _longest_decreasing([current.get(job, 0) for job in order], band)
    new = _fill(len(order), {i: current[order[i]] for i in stay}, band) or _fill(len(order), {}, band)
    return {job: value for job, value in zip(order, new, strict=True) if current.get(job) != value}


def _longest_decreasing(values: Sequence[int], band: Band) -> list[int]:
    """Positions of a longest strictly decreasing subsequence of the values inside the band."""
    tails: list[int] = []  # negative values that end the best subsequence of each length
    ends: list[int] = []
    before: dict[int, int] = {}
    for i, value in enumerate(values):
        if value in band:
            at = bisect_left(tails, -value)
            before[i] = ends[at - 1] if at else -1
            tails[at : at + 1], ends[at : at + 1] = [-value], [i]
    chosen, i = [], ends[-1] if ends else -1
    while i >= 0:
        chosen.append(i)
        i = before[i]
    return chosen[::-1]


def _fill(n: int, kept: Mapping[int, int], band: Band) -> list[int] | None:
    """Strictly decreasing priorities with the kept ones in their positions; None where some gap is too narrow."""
    values = [0] * n
    marks = [(-1, band.high + 1), *sorted(kept.items()), (n, band.low - 1)]
    for (left, above), (right, below) in zip(marks, marks[1:]):
        missing = right - left - 1
        if above - below - 1 < missing:
            return None
        for k in range(missing):
            values[left + 1 + k] = above - (above - below) * (k + 1) // (missing + 1)
        if right < n:
            values[right] = below
    return values
