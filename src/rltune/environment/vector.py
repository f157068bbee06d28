"""Many sequences that advance together: one flat buffer of observations, one call of a network for all of them.

env = VectorEnvironment(jobs, layout, SchedulerConfig("fifo"))
seen = env.reset(first, n)
while not env.done:
    seen = env.step(-network(seen.rows))
table = env.results()
"""

from typing import Any

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.types import with_type_rule
from rltune.environment.observation import Observation, Observer
from rltune.kernels import kernel
from rltune.policies import CUSTOM
from rltune.simulator.batch import Placer, Simulation
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import sequence_table
from rltune.simulator.queue import rank
from rltune.simulator.state import MAX_VISIBLE, State, sequence_of


class VectorEnvironment:
    """Sequences of consecutive jobs, each scheduled on its own cluster, idle at first.

    A sequence asks whenever a queue holds two jobs or more and one of them is to go first: after the arrivals and
    ends of an event time, and again after each start. It does not ask where there is nothing to choose, nor while a job
    under a service-level agreement or past its maximum wait is queued: these go before all others. It is over when its
    last job has started; its metrics are then final.

    An observation (:class:`~rltune.environment.observation.Observation`) has the visible queues of all sequences that
    ask now, R rows in all: k sequences, fewer with time, none at the end. Rows of a queue are in the order of the base
    policy, so the first is what that policy would choose; of queues longer than ``visible``, the first by it are
    seen and the others follow behind them.

    There are two kinds of answers, which may be mixed from step to step. :meth:`step` gives a score to every row: the
    best goes first, and where it does not fit the backfill rule tries the others in the order of the scores. :meth:`pick` names
    one row of each queue: it goes first, and the others follow in the order of the base policy. Without backfill the
    two are the same for the same choices, for only the first job matters.

    Args:
        jobs: the workload, S sequences are windows of it.
        layout: the cluster.
        scheduler: base policy, backfill, placement, locality and the other rules (rltune.simulator.config).
        features: a feature set (rltune.environment.features).
        visible: jobs of a queue that are seen, at most; 1 or more.
        placer: answers placement questions; with placement ``lookahead`` only.
        check: assert the simulator's invariants at every event time (RuntimeError); slow.

    Raises:
        ValueError: an argument of these or of a method that is not as described, with what was found and expected.
    """

    def __init__(
        self,
        jobs: Jobs,
        layout: Layout,
        scheduler: SchedulerConfig,
        features: str = "engineered",
        visible: int = MAX_VISIBLE,
        placer: Placer | None = None,
        check: bool = False,
    ) -> None:
        if visible < 1:
            raise ValueError(f"visible: found {visible}, expected 1 job or more")
        if scheduler.policy in CUSTOM:
            raise ValueError(f"policy {scheduler.policy!r}: a custom policy cannot be the base of an environment")
        self.jobs, self.layout, self.scheduler = jobs, layout, scheduler
        self.visible, self.placer, self.check = visible, placer, check
        self._observer = Observer(with_type_rule(jobs, scheduler.types, scheduler.gpu_price), layout, features)
        self._run: Simulation | None = None
        self._seen: Observation | None = None

    @property
    def done(self) -> bool:
        """Whether every sequence is over. Raises ValueError before the first reset."""
        return not len(self._last().asking)

    @property
    def state(self) -> State:
        """The simulator's state, to be read. Raises ValueError before the first reset."""
        self._last()
        assert self._run is not None
        return self._run.state

    def reset(self, first: Any, n: Any) -> Observation:
        """Begin S sequences: of ``n[s]`` jobs from job ``first[s]``, both [S] int."""
        first, n = _whole("first", first), _whole("n", n)
        if len(first) != len(n) or not len(n):
            raise ValueError(f"sequences: found {len(first)} first jobs and {len(n)} lengths, expected as many, not 0")
        last = len(self.jobs.row) - 1
        wrong = np.flatnonzero((n < 1) | (first < 0) | (first + n > last + 1))
        if len(wrong):
            s = wrong[0]
            raise ValueError(f"sequence {s}: found {n[s]} jobs from job {first[s]}, expected 1 or more of 0 … {last}")
        self._run = Simulation(
            self.jobs, self.layout, first, n, self.scheduler, self.placer, self.visible, check=self.check, silent=True
        )
        return self._advance()

    def step(self, scores: Any) -> Observation:
        """Answer with ``scores`` [R] float, one a row of the last observation, lower first, infinite ones allowed.

        Of equal scores the earlier submission goes first.
        """
        seen, state = self._open(), self.state
        scores = np.asarray(scores)
        if scores.shape != seen.jobs.shape or scores.dtype.kind not in "fiu":
            raise ValueError(
                f"scores: found {scores.dtype} {list(scores.shape)}, expected {len(seen.jobs)} numbers, one a row"
            )
        if np.isnan(scores).any():
            raise ValueError(f"scores: found NaN in row {np.isnan(scores).argmax()}, expected a number")
        state.score[seen.score_index] = scores
        return self._advance()

    def pick(self, actions: Any) -> Observation:
        """Answer with ``actions`` [k] int, for each asking sequence the rank in its queue, from 0, of the job that goes first."""
        seen, state = self._open(), self.state
        actions = _whole("actions", actions)
        if len(actions) != len(seen.asking):
            raise ValueError(f"actions: found {len(actions)}, expected {len(seen.asking)}, one a sequence that asks")
        if (outside := (actions < 0) | (actions >= seen.length)).any():
            wrong = outside.argmax()
            raise ValueError(
                f"action of sequence {seen.asking[wrong]}: found {actions[wrong]}, "
                f"expected 0 … {seen.length[wrong] - 1}, a rank in its visible queue"
            )
        state.score[seen.score_index] = seen.score_index[1]
        state.score[seen.asking, actions] = -1.0
        return self._advance()

    def results(self) -> pd.DataFrame:
        """A row a sequence (rltune.simulator.metrics.sequence_table). Raises ValueError before the end."""
        if not self.done:
            raise ValueError(f"results: found {len(self._last().asking)} sequences under way, expected all to be over")
        return sequence_table(self.jobs, self.state, self.layout.gpus)

    def _advance(self) -> Observation:
        run = self._run
        assert run is not None
        asking = run.advance()
        if run.state.options.reranks:
            in_order(self.layout.nodes, self.jobs, run.state, asking)
        self._seen = self._observer(run.state, asking)
        return self._seen

    def _last(self) -> Observation:
        if self._seen is None:
            raise ValueError("the environment has not begun: call reset first")
        return self._seen

    def _open(self) -> Observation:
        """The last observation, to be answered now."""
        seen = self._last()
        if not len(seen.asking):
            raise ValueError("every sequence is over: found an answer, expected a call of reset")
        return seen


def _whole(name: str, values: Any) -> np.ndarray:
    """Whole numbers as an array [k] int64. Raises ValueError for others."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise ValueError(f"{name}: found {array.dtype} {list(array.shape)}, expected whole numbers in one row")
    return array.astype(np.int64)


@kernel
def in_order(nodes, jobs, st, asking):
    """Bring the queues that ask into the order of the base policy, where that changes with time."""
    for a in range(asking.shape[0]):
        seq = sequence_of(st, asking[a])
        if not seq.queue[seq.status.queue].ranked:
            rank(nodes, jobs, seq, seq.status.queue, st.options.base)
