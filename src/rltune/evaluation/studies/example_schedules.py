"""Example schedules that show why the order of a queue matters (paper §2, Figures 1–4): seven jobs, four schedules.

Two nodes of four P100s under Slurm's multifactor priority with backfilling. Either a node runs one job at a time, or jobs
are packed; and with each, one job is raised above others in the queue and nothing else changes. The paper names neither
the sizes nor the run times of its jobs, so these are ours. They were found by a random search over run times in the
simulator, such that raising one job shortens the total wait and the makespan with either placement. No job fits a gap to
the minute: a simulator would fill such a gap, a scheduler with delays would not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config import ClusterConfig
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.gantt import bars
from rltune.simulator.metrics import chunk_table, job_table
from rltune.simulator.state import State
from rltune.traces.columns import empty_columns

POLICY, BACKFILL = "multifactor_size", "conservative"
"""`PriorityType=priority/multifactor` with Slurm's own job size (larger first), and `SchedulerType=sched/backfill`, which
starts a job if it delays none before it (paper §2)."""
FIRST_ONLY = "easy"
"""Backfilling that reserves nodes for the first job of the queue only."""
MINUTE_S = 60.0
CLUSTER = ClusterConfig.model_validate(
    {
        "title": "Two nodes of four P100s",
        "pools": [{"name": "all", "groups": [{"gpu_type": "P100", "nodes": 2, "gpus": 4, "cpus": 32, "mem_gb": 256}]}],
    }
)
JOBS = ((0, 25, 2), (0, 15, 4), (1, 50, 8), (1, 25, 3), (2, 45, 4), (2, 25, 1), (3, 50, 1))
"""(Submission in minutes, run time in minutes, GPUs) of each job in order of submission; all belong to one user."""
RUN_S = tuple(run * MINUTE_S for _, run, _ in JOBS)
COLUMNS = ("figure", "job", "submit_s", "start_s", "end_s", "node", "gpus", "priority")
"""Columns of a table of schedules, one row per figure × job × node: times in s since the first submission, the node's number
from 0, the job's GPUs on it, and the job's priority once all are submitted (larger first)."""


@dataclass(frozen=True)
class Panel:
    """One of the four schedules."""

    figure: str
    """Id of the paper's figure."""
    placement: str
    """exclusive: a node runs one job at a time (`OverSubscribe=NO`); best_fit: jobs are packed."""
    raised: int | None = None
    """Job that is raised once all are submitted …"""
    above: tuple[int, ...] = ()
    """… above these, which otherwise go first; empty: Slurm's own order."""


PANELS = (
    Panel("fig1", "exclusive"),
    Panel("fig2", "exclusive", 4, (2,)),
    Panel("fig3", "best_fit"),
    Panel("fig4", "best_fit", 3, (2, 4)),
)
"""In the order of the paper; each panel with a raised job follows the one without."""


def workload(rows: tuple[tuple[float, float, int], ...] = JOBS) -> tuple[Jobs, Layout]:
    """The jobs and the two nodes; estimates are the true run times."""
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

    All jobs belong to one user, so they share one fair-share factor, and differences in age do not change: the order
    stays the same from the last submission on, and among the queued jobs before it.
    """
    # larger first, then older: ages differ by minutes, sizes by an eighth of the cluster or more
    return np.lexsort((jobs.submit_s, -jobs.gpus))


def order_of(panel: Panel, jobs: Jobs) -> np.ndarray:
    """A panel's order of all jobs once they are submitted, first to last, [jobs]: a raised job goes directly before the first
    of those it is raised above."""
    order = priorities(jobs)
    if panel.raised is None:
        return order
    rest = order[order != panel.raised]
    return np.insert(rest, np.flatnonzero(np.isin(rest, panel.above))[0], panel.raised)


def simulate_panel(panel: Panel, jobs: Jobs, layout: Layout, backfill: str = BACKFILL) -> State:
    """Simulate the jobs under a panel's placement and order."""
    scheduler = SchedulerConfig(POLICY, backfill, panel.placement)
    first, n = np.array([0]), np.array([len(jobs.gpus)])
    if panel.raised is None:
        return simulate(jobs, layout, first, n, scheduler)
    before, after = (np.argsort(order).astype(float) for order in (priorities(jobs), order_of(panel, jobs)))
    last_s = float(jobs.submit_s.max())

    def by_rank(state: State, asking: np.ndarray) -> None:
        for s in asking:
            queued = state.queued_jobs(s)
            state.score[s, : len(queued)] = (after if state.now[s] >= last_s else before)[queued]

    return simulate(jobs, layout, first, n, scheduler, by_rank)


def simulated(backfill: str = BACKFILL) -> pd.DataFrame:
    """The four schedules in the simulator, one row per figure × job × node, with COLUMNS."""
    jobs, layout = workload()
    frames = []
    for panel in PANELS:
        state = simulate_panel(panel, jobs, layout, backfill)
        priority = pd.Series(np.arange(len(jobs.gpus), 0, -1), order_of(panel, jobs))
        table = job_table(jobs, state)[["job", "submit_s", "start_s", "end_s"]]
        both = chunk_table(state)[["job", "node", "gpus"]].merge(table, on="job")
        frames.append(both.assign(figure=panel.figure, priority=both["job"].map(priority)))
    return pd.concat(frames, ignore_index=True)[list(COLUMNS)]


@dataclass(frozen=True)
class Schedules:
    """The four schedules and what each costs."""

    bars: dict[str, pd.DataFrame]
    """Figure → rltune.simulator.gantt.bars of its schedule."""
    facts: pd.DataFrame
    """One row per panel: figure, placement, raised (missing: none), above (as text), order (of the jobs still waiting at the
    last submission, as text), makespan_s, wait_s (mean), total_wait_s, utilisation; the simulator's simulated_makespan_s and
    simulated_total_wait_s, and easy_… with nodes reserved for the first job only; start_off_s, the largest difference of a
    job's start; over_s, how much longer jobs last than they run (mean)."""
    node_gpus: tuple[int, ...]
    source: dict[str, object]
    """Origin: ``by`` (slurm | simulator), ``asked`` (whether the run asks for Slurm), and what Slurm's own run recorded."""


def schedules(measured: pd.DataFrame | None = None, how: Mapping[str, object] | None = None) -> Schedules:
    """The four schedules, as Slurm ``measured`` them or else simulated, next to the simulator's.

    ``how``: what rltune.slurm.experiment.example_schedules recorded (``lacks``: missing packages; then nothing was
    measured); None: the run does not ask for Slurm.
    """
    in_simulator, first_only, layout = simulated(), simulated(FIRST_ONLY), build_layout(CLUSTER)
    by_slurm = how is not None and not how["lacks"]
    runs = measured if by_slurm and measured is not None else in_simulator
    drawn, rows = {}, []
    for panel in PANELS:
        run, ours, easy = (frame[frame["figure"] == panel.figure] for frame in (runs, in_simulator, first_only))
        jobs = run.drop_duplicates("job").drop(columns=["node", "gpus"])
        jobs["gpus"] = jobs["job"].map(run.groupby("job")["gpus"].sum())
        drawn[panel.figure] = bars(jobs, run, layout.nodes)
        waiting = jobs[jobs["start_s"] >= jobs["submit_s"].max()]
        order = waiting.sort_values(["priority", "job"], ascending=[False, True])["job"]
        row = {**asdict(panel), "above": _text(panel.above), "order": _text(order), **_measures(run)}
        for who, frame in (("simulated", ours), ("easy", easy)):
            row |= {f"{who}_{name}": _measures(frame)[name] for name in ("makespan_s", "total_wait_s")}
        row["start_off_s"] = float((_starts(run) - _starts(ours)).abs().max())
        row["over_s"] = float((jobs["end_s"] - jobs["start_s"] - jobs["job"].map(dict(enumerate(RUN_S)))).mean())
        rows.append(row)
    facts = pd.DataFrame(rows).astype({"raised": "Int64"})
    source = {"lacks": [], **(how or {}), "by": "slurm" if by_slurm else "simulator", "asked": how is not None}
    return Schedules(drawn, facts, tuple(int(g) for g in layout.nodes.gpus), source)


def _starts(runs: pd.DataFrame) -> pd.Series:
    """Job → its start, s."""
    return runs.drop_duplicates("job").set_index("job")["start_s"]


def _measures(runs: pd.DataFrame) -> dict[str, float]:
    """Makespan, waits and utilisation of one schedule."""
    jobs = runs.drop_duplicates("job")
    wait_s = jobs["start_s"] - jobs["submit_s"]
    makespan_s = float(jobs["end_s"].max() - jobs["submit_s"].min())
    used = float(((runs["end_s"] - runs["start_s"]) * runs["gpus"]).sum())
    return {
        "makespan_s": makespan_s,
        "wait_s": float(wait_s.mean()),
        "total_wait_s": float(wait_s.sum()),
        "utilisation": used / (CLUSTER.gpus * makespan_s),
    }


def _text(jobs: Iterable[int]) -> str:
    return ", ".join(str(int(job)) for job in jobs)
