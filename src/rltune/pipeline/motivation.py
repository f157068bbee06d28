"""Why the order of a queue matters (paper §2, Figures 1–4): one small workload, four schedules, all in the simulator.

Two nodes of four P100s under Slurm's multifactor priority with backfilling. A node belongs to one job at a time, or
jobs are packed; and under either, one job is raised above others in the queue, nothing else changed. The jobs are of
our own making: the paper names neither the sizes nor the run times of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config import ClusterConfig
from rltune.policies import IDS, Facts, compiled_score
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.gantt import bars
from rltune.simulator.metrics import chunk_table, job_table, sequence_table
from rltune.simulator.state import State
from rltune.traces.table import empty_columns

POLICY, BLOCKING = "multifactor", "easy"
"""`PriorityType=priority/multifactor` and `SchedulerType=sched/backfill` (paper §2)."""
MINUTE_S = 60.0
CLUSTER = ClusterConfig.model_validate({
    "title": "Two nodes of four P100s",
    "pools": [{"name": "all", "groups": [{"gpu_type": "P100", "nodes": 2, "gpus": 4, "cpus": 32, "mem_gb": 256}]}],
})  # fmt: skip
JOBS = ((0, 15, 2), (0, 15, 4), (1, 50, 8), (1, 60, 3), (2, 30, 4), (2, 30, 1), (3, 40, 1))
"""(Submission in minutes, run time in minutes, GPUs) of each job, in the order of submission; all of one user."""


@dataclass(frozen=True)
class Panel:
    """One of the four schedules."""

    figure: str
    """Id of the paper's figure it is like."""
    placement: str
    """exclusive: a node belongs to one job (`OverSubscribe=NO`); best_fit: jobs are packed."""
    raised: int | None = None
    """Job that is raised …"""
    above: tuple[int, ...] = ()
    """… above these, which else go before it; none: Slurm's own order."""


PANELS = (
    Panel("fig1", "exclusive"),
    Panel("fig2", "exclusive", 3, (2,)),
    Panel("fig3", "best_fit"),
    Panel("fig4", "best_fit", 3, (6, 2)),
)
"""In the order of the paper; each raised one follows the same without."""


def workload(rows: tuple[tuple[float, float, int], ...] = JOBS) -> tuple[Jobs, Layout]:
    """The jobs on the two nodes; estimates are the true run times."""
    submit, run, gpus = (np.array(column) for column in zip(*rows, strict=True))
    frame = empty_columns(len(rows)).assign(
        job_id=pd.Series([f"{i:02d}" for i in range(len(rows))], dtype="str"), gpus=gpus.astype(np.int64),
        run_s=run * MINUTE_S, submit_s=submit * MINUTE_S,
    )  # fmt: skip
    fitted, _ = fit(frame, CLUSTER)
    return compile_jobs(fitted, fitted["run_s"].to_numpy(np.float64), CLUSTER), build_layout(CLUSTER)


def priorities(jobs: Jobs) -> np.ndarray:
    """Slurm's order of all jobs, first to last, [jobs].

    With one user all have one fair share, and ages differ by as much at any time, so that the order is the same from
    the last submission on, and among those that are queued before it.
    """
    now, count = float(jobs.submit_s.max()), len(jobs.gpus)
    score = [
        compiled_score(IDS[POLICY], Facts(
            float(jobs.submit_s[j]), float(jobs.estimate_s[j]), int(jobs.gpus[j]), now - float(jobs.submit_s[j]),
            1.0, int(jobs.gpus[j]) / CLUSTER.gpus, 1.0, 0.0,
        ))
        for j in range(count)
    ]  # fmt: skip
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


def play(panel: Panel, jobs: Jobs, layout: Layout) -> State:
    """The jobs under a panel's placement and order."""
    setting = Setting(POLICY, BLOCKING, panel.placement)
    first, n = np.array([0]), np.array([len(jobs.gpus)])
    if panel.raised is None:
        return simulate(jobs, layout, first, n, setting, check=True)
    rank = np.argsort(raise_above(priorities(jobs), panel.raised, panel.above)).astype(float)

    def by_rank(state: State, asking: np.ndarray) -> None:
        for s in asking:
            queued = state.queued_jobs(s)
            state.score[s, : len(queued)] = rank[queued]

    return simulate(jobs, layout, first, n, setting, by_rank, check=True)


@dataclass(frozen=True)
class Motivation:
    """What comes out."""

    bars: dict[str, pd.DataFrame]
    """Panel's figure → rltune.simulator.gantt.bars of its schedule."""
    facts: pd.DataFrame
    """A row a panel: figure, placement, raised (job, missing where none), above (jobs, as text), order (of all jobs, as
    text), makespan_s, wait_s (mean), total_wait_s, utilisation (of the makespan)."""
    node_gpus: tuple[int, ...]
    """GPUs of each node."""


def motivation() -> Motivation:
    """The four schedules and what each is worth."""
    jobs, layout = workload()
    drawn, rows = {}, []
    for panel in PANELS:
        state = play(panel, jobs, layout)
        table, order = job_table(jobs, state), priorities(jobs)
        if panel.raised is not None:
            order = raise_above(order, panel.raised, panel.above)
        whole = sequence_table(jobs, state, layout.gpus).iloc[0]
        drawn[panel.figure] = bars(table, chunk_table(state), layout.nodes)
        rows.append({
            "figure": panel.figure, "placement": panel.placement, "raised": panel.raised,
            "above": _told(panel.above), "order": _told(order), "makespan_s": float(whole["makespan_s"]),
            "wait_s": float(whole["wait_s"]), "total_wait_s": float(table["wait_s"].sum()),
            "utilisation": float(whole["utilisation"]),
        })  # fmt: skip
    facts = pd.DataFrame(rows).astype({"raised": "Int64"})
    return Motivation(drawn, facts, tuple(int(g) for g in layout.nodes.gpus))


def _told(jobs: Iterable[int]) -> str:
    return ", ".join(str(int(job)) for job in jobs)
