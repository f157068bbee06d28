"""Drive many sequences through the engine, answering its questions in batches."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.search import EXCLUSIVE
from rltune.cluster.types import with_type_rule
from rltune.errors import AnswerError
from rltune.policies import CUSTOM, Queue
from rltune.simulator.check import check_all
from rltune.simulator.config import ASKED, CONSERVATIVE, SchedulerConfig
from rltune.simulator.conservative import reserve_all
from rltune.simulator.engine import advance_all
from rltune.simulator.state import MAX_VISIBLE, PICK, PLACE, PLACED, RANK, State, new_state

__all__ = ["Placer", "Ranker", "SchedulerConfig", "Simulation", "simulate"]


class Placer(Protocol):
    """Answers PLACE: the nodes of the chosen job."""

    top: int
    """How many jobs of the ranking it wants to see."""

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Write ``place`` and ``status["place_len"]`` of each sequence in ``asking`` [k] int64."""


Ranker = Callable[[State, np.ndarray], None]
"""Answers RANK: writes ``score[s, :visible[s]]``, lower first, of each sequence in its second argument; the jobs are
``state.queued_jobs(s)``. It may set ``state.status["hold"][s]``: nothing of that queue starts now
(rltune.simulator.engine). One with a true attribute ``alone`` is asked where a single job is queued, too."""


def rank_by_custom_policy(name: str, jobs: Jobs, state: State, asking: np.ndarray) -> None:
    """Answer the engine's RANK questions. Raises AnswerError for a policy that does not return a score a job."""
    for s in asking:
        now, rows = float(state.now[s]), state.first[s] + state.queued_jobs(s)
        by_submission = np.argsort(rows)
        rows = rows[by_submission]
        submit_s = jobs.submit_s[rows]
        queue = Queue(submit_s, jobs.estimate_s[rows], jobs.gpus[rows], now - submit_s, jobs.account[rows], rows)
        answer = CUSTOM[name](queue, now)
        expected = f"policy {name!r}: expected {len(rows)} numbers, one a queued job"
        try:
            scores = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise AnswerError(f"{expected}; found {answer!r:.80}") from None
        if scores.shape != rows.shape:
            raise AnswerError(f"{expected}; found {f'shape {scores.shape}' if scores.ndim else repr(answer)}")
        if np.isnan(scores).any():
            raise AnswerError(f"{expected}; {int(np.isnan(scores).sum())} of them are not a number (NaN)")
        state.score[s, by_submission] = scores


class Simulation:
    """Sequences under way: :meth:`advance` until some ask for a ranking, answer, and again.

    ``visible``: how many jobs of a queue a ranking from outside covers (0: all); None: the order is the
    scheduler's own. ``check``, ``alone`` and ``silent`` as in rltune.simulator.config. Raises ValueError when the scheduler's placement
    is asked of a placer and none is given, or the other way round.
    """

    def __init__(
        self,
        jobs: Jobs,
        layout: Layout,
        first: np.ndarray,
        n: np.ndarray,
        scheduler: SchedulerConfig,
        placer: Placer | None = None,
        visible: int | None = None,
        check: bool = False,
        alone: bool = False,
        silent: bool = False,
    ) -> None:
        if (scheduler.placement in ASKED) != (placer is not None):
            raise ValueError(f"placement {scheduler.placement!r} {'needs' if placer is None else 'takes no'} placer")
        scheduler = scheduler.on(jobs)
        jobs = with_type_rule(jobs, scheduler.types, scheduler.gpu_price)
        self.jobs, self.layout, self.placer = jobs, layout, placer
        options = scheduler.options(visible is not None, visible or 0, check, alone, silent)
        if options.backfill == CONSERVATIVE and options.rule != EXCLUSIVE and only_gpus_count(jobs, layout):
            options = options._replace(resources=1)
        self.state = new_state(jobs, layout.nodes, first, n, options, placer.top if placer else 1, scheduler.max_wait_h)

    def advance(self) -> np.ndarray:
        """Go on until a sequence asks for a ranking or all are done; those that ask [k] int64, none at the end.

        What they asked for last time has to be in ``state.score`` by now.
        """
        state = self.state
        state.phase[state.phase == RANK] = PICK
        while True:
            ranks, places, reserves, checks = advance_all(self.layout.nodes, self.jobs, state)
            if checks:
                check_all(self.layout.nodes, self.jobs, state)
            if reserves:
                self.reserve()
            if checks or reserves:
                continue
            if places and self.placer:
                asking = np.flatnonzero(state.phase == PLACE)
                self.placer.place(self.jobs, self.layout, state, asking)
                state.phase[asking] = PLACED
            if ranks or not places:
                return np.flatnonzero(state.phase == RANK)

    def reserve(self) -> None:
        """Do what sequences with RESERVE are to do."""
        reserve_all(self.layout.nodes, self.jobs, self.state)


def only_gpus_count(jobs: Jobs, layout: Layout) -> bool:
    """Whether no job asks for more CPUs or memory a GPU than any node has a GPU, so that a node with free GPUs has the rest."""
    node = layout.nodes.row
    return bool(
        (jobs.row["cpu_milli"] <= node["share_cpu"].min()).all()
        and (jobs.row["mem_mb"] <= node["share_mem"].min()).all()
    )


def simulate(
    jobs: Jobs,
    layout: Layout,
    first: np.ndarray,
    n: np.ndarray,
    scheduler: SchedulerConfig,
    ranker: Ranker | None = None,
    placer: Placer | None = None,
    check: bool = False,
) -> State:
    """Run sequences of ``n[s]`` jobs from job ``first[s]``, each from an idle cluster, to their last start.

    Without ``ranker`` the base policy orders the queue; with it, it only orders what the ranker cannot see, and
    jobs under a service-level agreement. ``check`` asserts the invariants at every event time (RuntimeError). Raises
    ValueError as :class:`Simulation` does.
    """
    visible = MAX_VISIBLE if ranker else None
    if scheduler.policy in CUSTOM:
        if ranker:
            raise ValueError(f"policy {scheduler.policy!r}: a custom policy cannot be the base of a ranker")
        ranker, visible = partial(rank_by_custom_policy, scheduler.policy, jobs), 0
    alone, silent = (getattr(ranker, name, False) for name in ("alone", "learns"))
    run = Simulation(jobs, layout, first, n, scheduler, placer, visible, check, alone, silent)
    while len(asking := run.advance()):
        assert ranker is not None
        ranker(run.state, asking)
    return run.state
