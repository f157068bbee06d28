"""The program that types ``joint`` solve by search (rltune.simulator.joint), in CVXPY: to read, and to compare the search with.

Time is cut into slots. Every job has *options* o: one of its alternatives, a GPU type on as few nodes as possible or on more, and
the slot that it starts in.

==========  ========================================================================================
variable    meaning
==========  ========================================================================================
s[o]        the job starts in this option (0/1)
u[o, n]     one of its full chunks goes to node n of the type (0/1)
y[o, n]     its last chunk goes to node n of the type (0/1)
w[o, n]     GPUs of a chunk on node n, where chunks may have any size (whole)
==========  ========================================================================================

The objective is the search's: the sum over jobs of start, run time and price of GPU time.
"""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pandas as pd
from scipy import sparse

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.types import PLANNED
from rltune.placement.counts import timed
from rltune.simulator.batch import Simulation
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.conservative import question_of
from rltune.simulator.joint import GAIN, Question, search
from rltune.simulator.state import RESERVE

SLOTS = 8
"""Slots into which time is cut until the search's last start, where it is measured."""


@dataclass(frozen=True)
class Plan:
    """The start and alternative of each of a Question's K jobs."""

    start_s: np.ndarray
    """[K] float64, s from now."""
    alternative: np.ndarray
    """[K] int64."""
    cost_s: float
    """Sum over jobs of start, run time and price."""


def searched(q: Question) -> Plan:
    """The plan that the search finds."""
    return _plan(q, *search(q)[:2])


def is_proven(q: Question) -> bool:
    """Whether the search proves its plan optimal: no plan costs less, by more than GAIN of it."""
    start_s, alternative, bound_s = search(q)
    return _plan(q, start_s, alternative).cost_s <= bound_s * (1 + GAIN)


def solved(q: Question, slot_s: float, slots: int, solver: str = "HIGHS") -> Plan:
    """The best plan of all that start every job within ``slots``, of a Question whose times are whole slots (:func:`in_slots`).

    Raises ValueError where there is none.
    """
    k, a, slot = (x.reshape(-1) for x in np.meshgrid(*map(np.arange, (*q.lasts_s.shape, slots)), indexing="ij"))
    may = np.isfinite(q.lasts_s[k, a])
    k, a, slot = k[may], a[may], slot[may]
    size, full, rem = (q.cut[name][k, a] for name in ("size", "full", "rem"))
    length = np.rint(q.lasts_s[k, a] / slot_s)
    free = _free(q, slot_s, slots)  # [T, slots, M]
    nodes = free.shape[2]
    s = cp.Variable(len(k), boolean=True)
    u, y = (cp.Variable((len(k), nodes), boolean=True) for _ in range(2))
    gpus = (
        sparse.diags_array(size * 1.0) @ u + sparse.diags_array(rem * 1.0) @ y
    )  # GPUs of each node that an option has
    constraints = [
        (np.arange(len(q.gpus))[:, None] == k).astype(float) @ s == 1,  # (1) every job is in one option
        cp.sum(u, axis=1) <= cp.multiply(full, s),  # (2) with no more chunks than it may have
        cp.sum(y, axis=1) <= cp.multiply(rem > 0, s),
        u + y <= 1,  # (3) each on a separate node
    ]
    if len(some := np.flatnonzero(size == 0)):
        w = cp.Variable((len(some), nodes), integer=True)
        most = np.minimum(q.gpus[k, None], free.max(axis=1)[a % len(q.points)])[some]
        starts = cp.reshape(s[some], (len(some), 1), order="C") @ np.ones((1, nodes))
        constraints += [w >= 0, w <= cp.multiply(most, starts)]
        if (few := full[some] < np.minimum(q.gpus[k[some]], nodes)).any():
            constraints.append(w[few] <= cp.multiply(most[few], u[some[few]]))  # (4) only where it has a chunk
        gpus += sparse.eye_array(len(k)).tocsc()[:, some] @ w
    constraints.append(cp.sum(gpus, axis=1) == cp.multiply(q.gpus[k], s))  # (5) with all its GPUs
    for kind, now in np.ndindex(len(q.points), slots):
        runs = (a % len(q.points) == kind) & (slot <= now) & (now < slot + length)
        if runs.any():
            constraints.append(runs.astype(float) @ gpus <= free[kind, now])  # (6) what is free suffices, in every slot
    cost = slot * slot_s + q.lasts_s[k, a] + q.price_s[k, a]
    problem = cp.Problem(cp.Minimize(cost @ s), constraints)
    problem.solve(solver=solver, **({"mip_rel_gap": 0.0} if solver == "HIGHS" else {}))
    if problem.status != cp.OPTIMAL:
        raise ValueError(f"the program of {len(q.gpus)} jobs and {slots} slots: {problem.status}")
    chosen = np.flatnonzero(s.value > 0.5)
    return _plan(q, slot[chosen] * slot_s, a[chosen])


def in_slots(q: Question, slot_s: float) -> Question:
    """The Question with all times rounded up to whole slots; its last changes within a slot count as one."""
    at_s = np.ceil(q.at_s / slot_s - 1e-9) * slot_s
    lasts_s = np.maximum(np.ceil(q.lasts_s / slot_s - 1e-9), 1) * slot_s
    return q._replace(at_s=at_s, lasts_s=lasts_s)


def _free(q: Question, slot_s: float, slots: int) -> np.ndarray:
    """What is free on each node in each slot [T, slots, M]."""
    at = [
        np.searchsorted(q.at_s[kind, :n], np.arange(slots) * slot_s + 1e-9 * slot_s, side="right") - 1
        for kind, n in enumerate(q.points)
    ]
    return np.stack([q.free[kind, x, :-1] for kind, x in enumerate(at)])


def _plan(q: Question, start_s: np.ndarray, alternative: np.ndarray) -> Plan:
    at = np.arange(len(alternative)), alternative
    return Plan(start_s, alternative, float((start_s + q.lasts_s[at] + q.price_s[at]).sum()))


class QuestionRecorder(Simulation):
    """A run under ``joint`` that records its Questions of two jobs or more."""

    def __init__(
        self, jobs: Jobs, layout: Layout, first: np.ndarray, n: np.ndarray, scheduler: SchedulerConfig
    ) -> None:
        super().__init__(jobs, layout, first, n, scheduler)
        self.questions: list[Question] = []

    def reserve(self) -> None:
        """Record them, then reserve as usual."""
        for s in np.flatnonzero(self.state.phase == RESERVE):
            q = question_of(self.layout.nodes, self.jobs, self.state, s)
            if len(q.gpus) > 1:
                self.questions.append(q)
        super().reserve()


def questions(jobs: Jobs, layout: Layout, first: np.ndarray, length: int, scheduler: SchedulerConfig) -> list[Question]:
    """What sequences of ``length`` jobs ask of two jobs or more."""
    run = QuestionRecorder(jobs, layout, first, np.full(len(first), length), scheduler)
    run.advance()
    return run.questions


def measure(asked: list[Question], most: int) -> pd.DataFrame:
    """A row for each of up to ``most`` Questions of PLANNED jobs, evenly spread: ``gap``, ``search_ms``, ``program_ms``.

    ``gap``: how much more the search's plan costs than the program's, relative to that. Time is cut into SLOTS until the
    search's last start; the program may start jobs in as many slots again.
    """
    known = [q for q in asked if len(q.gpus) == PLANNED]
    chosen = [known[i] for i in np.unique(np.linspace(0, len(known) - 1, most).astype(int))] if known else []
    return pd.DataFrame([_measured(q) for q in chosen], columns=["gap", "search_ms", "program_ms"], dtype=float)


def _measured(q: Question) -> tuple[float, float, float]:
    plan, search_ms = timed(searched, q)
    slot_s = max(float(plan.start_s.max()), 1.0) / (SLOTS - 1)
    coarse = in_slots(q, slot_s)
    found = searched(coarse)
    best, program_ms = timed(solved, coarse, slot_s, round(float(found.start_s.max()) / slot_s) + 1 + SLOTS)
    return found.cost_s / best.cost_s - 1.0, search_ms, program_ms
