"""Why the order of a queue matters (paper §2, Figures 1–4): one small workload, four schedules, in the simulator.

Two nodes of four P100s under Slurm's multifactor priority with backfilling. A node belongs to one job at a time, or
jobs are packed; and under either, one job is raised above others in the queue, nothing else changed. The jobs are of
our own making: the paper names neither the sizes nor the run times of its own. They were chosen, by trying run times at
random in the simulator, so that one job raised means less waiting and an earlier end with either placement. None of them
would fit a gap to the minute, which a simulator would fill and a scheduler with its own delays would not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config import ClusterConfig
from rltune.policies import IDS, Facts, compiled_score
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.metrics import chunk_table, job_table
from rltune.simulator.state import State
from rltune.traces.columns import empty_columns

POLICY, BACKFILL = "multifactor_size", "conservative"
"""`PriorityType=priority/multifactor` with Slurm's own job size (larger first), and `SchedulerType=sched/backfill`, which
starts a job that delays none before it (paper §2)."""
MINUTE_S = 60.0
CLUSTER = ClusterConfig.model_validate(
    {
        "title": "Two nodes of four P100s",
        "pools": [{"name": "all", "groups": [{"gpu_type": "P100", "nodes": 2, "gpus": 4, "cpus": 32, "mem_gb": 256}]}],
    }
)
JOBS = ((0, 25, 2), (0, 15, 4), (1, 50, 8), (1, 25, 3), (2, 45, 4), (2, 25, 1), (3, 50, 1))
"""(Submission in minutes, run time in minutes, GPUs) of each job, in the order of submission; all of one user."""
COLUMNS = ("figure", "job", "submit_s", "start_s", "end_s", "node", "gpus", "priority")
"""Of a table of schedules, a row a figure × job × node: times in s since the first submission; node, from 0; GPUs on it;
the job's priority when all had been submitted, larger first."""


@dataclass(frozen=True)
class Panel:
    """One of the four schedules."""

    figure: str
    """Id of the paper's figure it is like."""
    placement: str
    """exclusive: a node belongs to one job (`OverSubscribe=NO`); best_fit: jobs are packed."""
    raised: int | None = None
    """Job that is raised, as soon as all have been submitted …"""
    above: tuple[int, ...] = ()
    """… above these, which else go before it; none: Slurm's own order."""


PANELS = (
    Panel("fig1", "exclusive"),
    Panel("fig2", "exclusive", 4, (2,)),
    Panel("fig3", "best_fit"),
    Panel("fig4", "best_fit", 3, (2, 4)),
)
"""In the order of the paper; each raised one follows the same without."""


def workload(rows: tuple[tuple[float, float, int], ...] = JOBS) -> tuple[Jobs, Layout]:
    """The jobs on the two nodes; estimates are the true run times."""
    submit, run, gpus = (np.array(column) for column in zip(*rows, strict=True))
    frame = empty_columns(len(rows)).assign(
        job_id=pd.Series([f"{i:02d}" for i in range(len(rows))], dtype="str"),
        gpus=gpus.astype(np.int64),
        run_s=run * MINUTE_S,
        submit_s=submit * MINUTE_S,
    )
    fitted, _ = fit(frame, CLUSTER)
    return compile_jobs(fitted, fitted["run_s"].to_numpy(np.float64), CLUSTER), build_layout(CLUSTER)


def priorities(jobs: Jobs) -> np.ndarray:
    """Slurm's order of all jobs, first to last, [jobs].

    With one user all have one fair share, and ages differ by as much at any time, so that the order is the same from
    the last submission on, and among those that are queued before it.
    """
    now, count = float(jobs.submit_s.max()), len(jobs.gpus)
    score = [
        compiled_score(
            IDS[POLICY],
            Facts(
                float(jobs.submit_s[j]),
                float(jobs.estimate_s[j]),
                int(jobs.gpus[j]),
                now - float(jobs.submit_s[j]),
                1.0,
                int(jobs.gpus[j]) / CLUSTER.gpus,
                1.0,
                0.0,
            ),
        )
        for j in range(count)
    ]
    return np.lexsort((np.arange(count), score))


def raise_above(order: np.ndarray, raised: int, above: tuple[int, ...]) -> np.ndarray:
    """The order with one job moved right before the first of some that go before it.

    Raises ValueError where one of them does not go before it.
    """
    place = {int(job): i for i, job in enumerate(order)}
    behind = [job for job in above if place[job] > place[raised]]
    if behind or not above:
        raise ValueError(f"job {raised}: expected above it jobs that go before it; found {list(above)} in {order}")
    rest = [int(job) for job in order if job != raised]
    at = min(rest.index(job) for job in above)
    return np.array([*rest[:at], raised, *rest[at:]])


def order_of(panel: Panel, jobs: Jobs) -> np.ndarray:
    """The order of all jobs in a panel once all have been submitted, first to last, [jobs]."""
    order = priorities(jobs)
    return order if panel.raised is None else raise_above(order, panel.raised, panel.above)


def play(panel: Panel, jobs: Jobs, layout: Layout, backfill: str = BACKFILL) -> State:
    """The jobs under a panel's placement and order."""
    setting = Setting(POLICY, backfill, panel.placement)
    first, n = np.array([0]), np.array([len(jobs.gpus)])
    if panel.raised is None:
        return simulate(jobs, layout, first, n, setting, check=True)
    before, after = (np.argsort(order).astype(float) for order in (priorities(jobs), order_of(panel, jobs)))
    last_s = float(jobs.submit_s.max())

    def by_rank(state: State, asking: np.ndarray) -> None:
        for s in asking:
            queued = state.queued_jobs(s)
            state.score[s, : len(queued)] = (after if state.now[s] >= last_s else before)[queued]

    return simulate(jobs, layout, first, n, setting, by_rank, check=True)


def simulated(backfill: str = BACKFILL) -> pd.DataFrame:
    """The four schedules in the simulator, a row a figure × job × node; columns: COLUMNS."""
    jobs, layout = workload()
    frames = []
    for panel in PANELS:
        state = play(panel, jobs, layout, backfill)
        priority = pd.Series(np.arange(len(jobs.gpus), 0, -1), order_of(panel, jobs))
        table = job_table(jobs, state)[["job", "submit_s", "start_s", "end_s"]]
        both = chunk_table(state)[["job", "node", "gpus"]].merge(table, on="job")
        frames.append(both.assign(figure=panel.figure, priority=both["job"].map(priority)))
    return pd.concat(frames, ignore_index=True)[list(COLUMNS)]
