"""One scheduler on sequences of one's choice: a heuristic, or a trained agent in the way it chose."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.agent.learners import ranker_of
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ways import taken
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.placement.placers import placer_of
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.simulator.state import State

RAN = ("policy", "backfill", "placement", "locality")
"""Fields of a setting that say what a contender ran with."""


@dataclass(frozen=True)
class Course:
    """What schedulers run on: jobs, what is known of their run times, and the cluster."""

    jobs: Jobs
    layout: Layout
    lookahead: LookaheadConfig
    calibrated: Jobs | None = None
    """The same jobs with beliefs in the place of their estimates, for agents that go by them."""


@dataclass(frozen=True)
class Contender:
    """A scheduler; without ``policy`` the setting's own order."""

    scheduler: SchedulerConfig
    policy: TrainedPolicy | None = None


def way_taken(course: Course, contender: Contender) -> tuple[SchedulerConfig, Jobs]:
    """(The setting, the jobs with the estimates) that a contender goes by: of an agent that chose its way, that one.

    Raises DataError when it goes by beliefs and the course has none.
    """
    facts = contender.policy.facts if contender.policy is not None else {}
    return taken(facts, contender.scheduler, course.jobs, course.calibrated)


def run(course: Course, contender: Contender, first: np.ndarray, n: np.ndarray) -> tuple[State, float]:
    """(Sequences of ``n[s]`` jobs from job ``first[s]``, each from an idle cluster; seconds on the clock).

    An agent is greedy, and blocks, places and uses_calibrated as it chose to in training (rltune.agent.ways). Raises as
    :func:`way_taken`.
    """
    policy = contender.policy
    scheduler, told = way_taken(course, contender)
    ranker = ranker_of(policy, told, course.layout) if policy is not None else None
    placer = placer_of(scheduler.placement, course.lookahead)
    began = time.perf_counter()
    state = simulate(told, course.layout, first, n, scheduler, ranker, placer)
    return state, time.perf_counter() - began


def judge(course: Course, contenders: dict[str, Contender], first: np.ndarray, length: int) -> pd.DataFrame:
    """A row a contender × window: ``who`` (its name), ``policy`` (its order, of an agent the one it started from),
    ``backfill``, ``placement`` and ``locality`` it ran with, window, sequence_jobs, ``seconds`` (of one window, on the
    clock, the engine compiled beforehand) and the columns of rltune.simulator.metrics.sequence_table.

    All windows of ``length`` jobs that begin at ``first`` run side by side on one core.
    """
    frames, n = [], np.full(len(first), length)
    for name, contender in contenders.items():
        run(course, contender, first[:1], n[:1])  # compiles what has not been
        state, seconds = run(course, contender, first, n)
        table = sequence_table(course.jobs, state, course.layout.gpus).rename(columns={"sequence": "window"})
        scheduler, _ = way_taken(course, contender)
        ran = {axis: getattr(scheduler, axis) for axis in RAN}
        frames.append(table.assign(who=name, **ran, sequence_jobs=length, seconds=seconds / len(first)))
    return pd.concat(frames, ignore_index=True)
