"""One sequence at a time as a Gymnasium environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.environment.example import example_workload
from rltune.environment.features import bounds_of, width_of
from rltune.environment.observation import Observation
from rltune.environment.reward import reward, trained_for
from rltune.environment.vector import VectorEnvironment
from rltune.metrics import METRICS
from rltune.simulator.batch import Placer, simulate
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import sequence_table
from rltune.simulator.state import MAX_VISIBLE

TRIES = 1000
"""Windows drawn at most until one has something to decide."""


class RankSpace(spaces.Discrete):
    """Ranks in a queue from 0 on: ``Discrete(n)`` that by default samples from the ranks that hold a job now.

    Without a ``mask``, :meth:`sample` uses that of the last observation, which the environment keeps up to date. Before the
    first observation all ranks are legal.
    """

    def __init__(self, n: int) -> None:
        self.mask = np.ones(n, np.int8)
        super().__init__(n)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """A rank at random: of those in the mask, or by these probabilities."""
        if mask is None and probability is None:
            mask = self.mask
        return super().sample(mask, probability)


class SchedulingEnv(gymnasium.Env):
    r"""
    ## Description

    Jobs of a trace arrive at a GPU cluster that is idle at first and wait in queues, one a virtual cluster. Whenever
    a queue holds two jobs or more, the agent says which of them goes first (RLTune, §3.2). If that job fits it starts,
    and the next decision follows at once; if not, the backfill rule says what else may start until the
    next arrival or end, in the order of the base policy. Time passes between decisions, in seconds of the trace.

    ## Action space

    ``Discrete(visible)``: the rank in the visible queue, from 0, of the job that goes first. The queue is in the order
    of the base policy, so action 0 is what that policy does. Only ranks that hold a job are legal: those are 1 in the
    action mask, always the first ones; any other action raises ValueError. Sampling from ``action_space`` draws legal
    ranks only; spaces batched by vector environments do not know of the mask.

    ## Observation space

    ``Dict``: ``queue``, Box [visible, columns] float32, a row a queued job and zeros behind the last; ``action_mask``,
    MultiBinary [visible] int8, 1 where the row holds a job. The mask is part of the observation because no policy can
    act without it, and rows of zeros alone do not tell: a padded row is a possible job in feature set ``raw``. It is
    in ``info["action_mask"]`` and ``action_masks()`` too, where other libraries look for it. The columns of ``queue``
    with features ``engineered``, of which two show one thing or another:

    | Index | Observation                                              | Unit               | Min | Max |
    |-------|----------------------------------------------------------|--------------------|-----|-----|
    | 0     | GPUs asked for                                           | log2(1 + GPUs) / 7 | 0   | 2   |
    | 1     | estimated run time                                       | log10(1 + s) / 6   | 0   | 4   |
    |       | \| 2 × job size, by the estimated run time               | log10(1 + GPU·s)/8 |     |     |
    | 2     | 2 × urgency: wait / (wait + estimate)                    | share              | 0   | 2   |
    |       | \| wait so far                                           | log10(1 + s) / 6   |     |     |
    | 3     | demand against supply: x / (1 + x), x = GPUs / free GPUs | share              | 0   | 1   |
    | 4     | free GPUs within an hour, without this job               | share of the pool  | −1  | 1   |
    | 5     | can start now                                            | 0 or 1             | 0   | 1   |
    | 6     | candidate placements, counted to 8; × 2 from 2 on        | eighths            | 0   | 2   |
    | 7     | fragmentation of the free GPUs is above 0.5              | 0 or 1             | 0   | 1   |

    with features ``raw``, each cut at the maximum:

    | Index | Observation                               | Unit   | Min | Max |
    |-------|-------------------------------------------|--------|-----|-----|
    | 0     | GPUs asked for                            | 64     | 0   | 1   |
    | 1     | estimated run time                        | 12 h   | 0   | 1   |
    | 2     | submission, since the first job's         | 12 h   | 0   | 1   |
    | 3     | CPUs                                      | 512    | 0   | 1   |
    | 4     | memory                                    | 4 TB   | 0   | 1   |
    | 5     | virtual cluster                           | number | 0   | 1   |
    | 6     | first GPU type it may use                 | number | 0   | 1   |
    | 7     | wait so far                               | 12 h   | 0   | 1   |

    docs/reference/features.md has the columns of the other sets.

    ## Rewards

    0, and at the end (base − agent) / max(|base|, |agent|, ε), where both are the mean of the metric over the sequence's
    jobs, the base policy's on the same jobs under the same scheduler. It lies in [−1, 1] and is 0 for an agent that does
    what the base policy does.

    ## Starting state

    The cluster is idle and the clock stands at the first decision of the sequence: ``sequence_jobs`` consecutive jobs,
    the first drawn evenly from ``rows`` by the environment's own generator (``np_random``), again where a sequence
    has nothing to decide. One seed gives one series of sequences.

    ## Episode end

    - Terminated: the last job of the sequence has started; its metrics are then final. The observation is all zeros.
    - Truncated: never. The jobs of a sequence are given, so it ends by itself, and cutting it short would leave jobs
      without a wait; wrap it in ``TimeLimit`` to bound the steps all the same.

    ``info`` has the action mask, ``now_s`` (s since the trace's t0), ``first`` and ``n`` of the sequence, and at the
    end ``agent`` and ``base``, the two means of the metric.

    ## Arguments

    ``jobs`` and ``layout``: the workload and its cluster, both or neither (a small made-up workload). ``scheduler``:
    base policy, backfill, placement and the other rules, the cluster's slowdowns among them, default FIFO without backfill
    or slowdowns; with placement ``lookahead`` it takes a ``placer``. ``features``: a feature set (rltune.environment.features). ``visible``: jobs seen of a queue.
    ``sequence_jobs``: jobs a sequence. ``rows``: rows of the workload that sequences are drawn from (start, stop),
    default all. ``metric`` of the reward, with ε: ``wait`` or ``jct``, 1 s; ``bsld``, 1; ``utilisation``, over
    the submission span, of which more is better, 0.001. ``check``: assert the simulator's invariants at every event time.

    ``reset`` takes the options ``first`` (row of the first job) and ``n`` (jobs), one or both, which need not lie in
    ``rows``.

    Raises ValueError for an argument or a call that is not as described.

    ## Version history

    - v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        jobs: Jobs | None = None,
        layout: Layout | None = None,
        scheduler: SchedulerConfig | None = None,
        features: str = "engineered",
        visible: int = MAX_VISIBLE,
        sequence_jobs: int = 256,
        rows: tuple[int, int] | None = None,
        metric: str = "wait",
        placer: Placer | None = None,
        check: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if (jobs is None) != (layout is None):
            raise ValueError(f"found {'layout' if jobs is None else 'jobs'} alone, expected both or neither")
        if jobs is None or layout is None:
            jobs, layout = example_workload()
        if not isinstance(scheduler, SchedulerConfig | None):
            raise ValueError(f"scheduler: found {scheduler!r}, expected a SchedulerConfig or None")
        if metric not in METRICS:
            raise ValueError(f"metric: found {metric!r}, expected one of {', '.join(METRICS)}")
        if render_mode is not None:
            raise ValueError(f"render_mode: found {render_mode!r}, expected None: there is nothing to render")
        start, stop = (0, len(jobs.row)) if rows is None else rows
        if not 0 <= start < stop <= len(jobs.row):
            raise ValueError(f"rows: found {start} … {stop}, expected a part of 0 … {len(jobs.row)}")
        if not 2 <= sequence_jobs <= stop - start:
            raise ValueError(f"sequence_jobs: found {sequence_jobs}, expected 2 … {stop - start}, the jobs there are")
        self.render_mode = None
        self._many = VectorEnvironment(
            jobs, layout, scheduler or SchedulerConfig("fifo"), features, visible, placer, check
        )
        self._rows, self._length, self._metric = (start, stop), sequence_jobs, metric
        self._features = features
        self._seen: Observation | None = None
        low, high = (np.tile(bound, (visible, 1)) for bound in bounds_of(features))
        self.observation_space = spaces.Dict(
            {"queue": spaces.Box(low, high, dtype=np.float32), "action_mask": spaces.MultiBinary(visible)}
        )
        self.action_space = RankSpace(visible)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin the next sequence, or the one that ``options`` names by ``first`` and ``n``."""
        super().reset(seed=seed)
        options = options or {}
        unknown = set(options) - {"first", "n"}
        if unknown:
            raise ValueError(f"options: found {', '.join(sorted(map(str, unknown)))}, expected first, n or none")
        n = options.get("n", self._length)
        start, stop = self._rows
        if "first" not in options and not (isinstance(n, int | np.integer) and 2 <= n <= stop - start):
            raise ValueError(f"options: found n {n!r}, expected 2 … {stop - start}, the jobs there are")
        for _ in range(TRIES):
            first = options["first"] if "first" in options else self.np_random.integers(start, stop - n, endpoint=True)
            self._seen = self._many.reset([first], [n])
            if not self._many.done:
                break
            if "first" in options:
                raise ValueError(f"sequence of {n} jobs from job {first}: never two jobs in a queue, nothing to decide")
        else:
            raise ValueError(f"none of {TRIES} sequences of {n} jobs has two jobs in a queue; give a higher load")
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Let the job of rank ``action`` in the queue go first."""
        if np.ndim(action) or np.asarray(action).dtype.kind not in "iu":
            raise ValueError(f"action: found {action!r}, expected one whole number")
        self._seen = self._many.pick([int(action)])
        done, value = self._many.done, 0.0
        observation, info = self._observation(), self._info()
        if done:
            agent, base = info["agent"], info["base"] = self._means()
            metric = METRICS[self._metric]
            value = metric.sign * float(reward(np.float64(base), np.float64(agent), metric.floor))
        return observation, value, done, False, info

    def action_masks(self) -> np.ndarray:
        """Which ranks hold a job [visible] bool; the name that sb3-contrib's MaskablePPO looks for."""
        return self.action_space.mask.astype(bool)

    def _observation(self) -> dict[str, np.ndarray]:
        """The last observation, padded; sets the mask."""
        seen = self._seen
        assert seen is not None
        queue = np.zeros((self._many.visible, width_of(self._features)), np.float32)
        queue[: len(seen.rows)] = seen.rows
        self.action_space.mask = (np.arange(self._many.visible) < len(seen.rows)).astype(np.int8)
        return {"queue": queue, "action_mask": self.action_space.mask.copy()}

    def _info(self) -> dict[str, Any]:
        """About the last observation, which :meth:`_observation` has made."""
        mask, state = self.action_space.mask.copy(), self._many.state
        return {"action_mask": mask, "now_s": float(state.now[0]), "first": int(state.first[0]), "n": int(state.n[0])}

    def _means(self) -> tuple[float, float]:
        """The metric of the sequence that has ended: the agent's mean, the base policy's."""
        many = self._many
        state = many.state
        base = simulate(many.jobs, many.layout, state.first, state.n, many.scheduler, placer=many.placer)
        tables = (many.results(), sequence_table(many.jobs, base, many.layout.gpus))
        agent, base_mean = (float(trained_for(self._metric, table)[0]) for table in tables)
        return agent, base_mean
