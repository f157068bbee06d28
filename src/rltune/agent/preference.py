"""What an agent has learned, seen in real queues: where it ranks a job as one thing about that job changes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import ranker_of
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.environment.vector import in_order
from rltune.policies import POLICIES
from rltune.simulator.batch import Simulation
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.state import MAX_VISIBLE, State

VALUES = 6
"""Estimates and waits that a job is given: evenly spread quantiles of those in the queues."""
PROBES = (0.3, 0.7)
"""Which jobs of a queue are changed, one at a time: their positions in the order of submission, as shares of its length."""


def longest_queues(
    jobs: Jobs, layout: Layout, first: np.ndarray, length: int, scheduler: SchedulerConfig
) -> Iterator[tuple[State, np.ndarray]]:
    """(State, the sequence [1]) at the longest queue of each sequence of ``length`` jobs from ``first`` [S], under the
    base policy with best_fit; the queue is in its order. Sequences in which no two jobs wait have none.
    """
    longest = np.zeros(len(first), np.int64)
    for state, asking in _decisions(jobs, layout, first, length, scheduler):
        longest[asking] = np.maximum(longest[asking], state.visible[asking])
    for state, asking in _decisions(jobs, layout, first, length, scheduler):
        for s in asking[state.visible[asking] == longest[asking]]:
            longest[s] = 0
            yield state, np.array([s])


def preference(
    policy: TrainedPolicy, jobs: Jobs, layout: Layout, first: np.ndarray, length: int, scheduler: SchedulerConfig
) -> pd.DataFrame:
    """Where agent, base policy and SAF rank a job as its estimate, its GPUs or its wait changes and all else stays.

    Partial dependence (Friedman 2001) over some jobs of the longest queue of each sequence. A row per queue × job ×
    feature × value: ``feature`` (estimate_s, gpus, wait_s), ``value``, and ``agent``, ``base``, ``saf``, the share of
    the other jobs in the queue that go before it: 0 first, 1 last. A job that is given other GPUs gets the CPUs and
    memory of a real job with as many. Arguments as :func:`longest_queues`; empty where no two jobs ever wait at once.
    """
    jobs = jobs.take((first[:, None] + np.arange(length)).ravel())
    windows = jobs, layout, np.arange(len(first)) * length, length, scheduler
    given = _values(windows)
    rows = []
    for state, asking in longest_queues(*windows):
        at, now_s, before = int(state.first[asking[0]]), float(state.now[asking[0]]), state.status[asking].copy()
        waiting = at + np.sort(state.queued_jobs(asking[0]))
        for job in dict.fromkeys(waiting[int(share * len(waiting))] for share in PROBES):
            for feature, values in given.items():
                for value in values:
                    other = _changed(jobs, job, feature, value, now_s)
                    if other is not None:
                        rows.append((feature, value, *_ranks(policy, other, layout, state, asking, job)))
        state.status[asking] = before
        _order(jobs, layout, state, asking)
    return pd.DataFrame(rows, columns=["feature", "value", "agent", "base", "saf"])


def _decisions(jobs, layout, first, length, scheduler):
    """(State, sequences that ask) at every decision under the base policy."""
    if not len(first):
        return
    simple = replace(scheduler, placement="best_fit")
    run = Simulation(jobs, layout, first, np.full(len(first), length), simple, visible=MAX_VISIBLE)
    while len(asking := run.advance()):
        in_order(layout.nodes, jobs, run.state, asking)
        yield run.state, asking
        run.state.score[asking] = np.arange(run.state.score.shape[1], dtype=float)


def _values(windows) -> dict[str, np.ndarray]:
    """The values that each feature is given."""
    jobs, queued = windows[0], []
    for state, asking in longest_queues(*windows):
        rows = state.first[asking[0]] + state.queued_jobs(asking[0])
        queued.append(np.stack([jobs.estimate_s[rows], state.now[asking[0]] - jobs.submit_s[rows]]))
    if not queued:
        return {}
    shares = np.linspace(0.05, 0.95, VALUES)
    estimate_s, wait_s = (np.unique(np.quantile(values, shares)) for values in np.concatenate(queued, axis=1))
    gpus, counts = np.unique(jobs.gpus, return_counts=True)
    often = np.sort(gpus[np.argsort(-counts, kind="stable")[:VALUES]])
    return {"estimate_s": estimate_s, "gpus": often, "wait_s": wait_s}


def _changed(jobs: Jobs, job: int, feature: str, value: float, now_s: float) -> Jobs | None:
    """The jobs with this value of one of them; None where no job of its pool has as many GPUs."""
    row, cut = jobs.row.copy(), jobs.cut
    if feature == "estimate_s":
        row["estimate_s"][job] = value
    elif feature == "wait_s":
        row["submit_s"][job] = now_s - value
    else:
        like = np.flatnonzero((row["gpus"] == value) & (row["pool"] == row["pool"][job]))
        if not len(like):
            return None
        cut = cut.copy()
        cut[job] = cut[like[0]]
        for name in ("gpus", "cpu_milli", "mem_mb", "shape"):
            row[name][job] = row[name][like[0]]
    return Jobs(row, cut)


def _order(jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
    """Bring a queue into the base policy's order of these jobs, whatever it was scored by."""
    state.queue["ranked"][asking, state.status["queue"][asking]] = False
    in_order(layout.nodes, jobs, state, asking)


def _ranks(policy, jobs, layout, state, asking, job) -> tuple[float, float, float]:
    """The job's rank under the agent, the base policy and SAF, each as a share of the others."""
    _order(jobs, layout, state, asking)
    s = asking[0]
    queue = state.first[s] + state.queued_jobs(s)
    here, others = int(np.flatnonzero(queue == job)[0]), len(queue) - 1
    ranker_of(policy, jobs, layout)(state, asking)
    score, area = state.score[s, : len(queue)], POLICIES["saf"].score(jobs)[queue]
    below = [((v < v[here]).sum() + ((v == v[here]).sum() - 1) / 2) / others for v in (score, area)]
    return float(below[0]), here / others, float(below[1])
