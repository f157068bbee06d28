"""What Figures 1–4 are made of: the schedules of real Slurm daemons where a run asks for them, with the simulator's
beside them, or the simulator's alone."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from rltune.cluster.layout import build_layout
from rltune.config import Workspace
from rltune.pipeline.motivation.jobs import CLUSTER, JOBS, MINUTE_S, PANELS, Panel, simulated
from rltune.pipeline.motivation.on_slurm import read_runs
from rltune.simulator.gantt import bars

RUN_S = tuple(run * MINUTE_S for _, run, _ in JOBS)
FIRST_ONLY = "easy"
"""Backfilling that keeps nodes for the first of the queue alone."""


@dataclass(frozen=True)
class Schedules:
    """What comes out."""

    bars: dict[str, pd.DataFrame]
    """Panel's figure → rltune.simulator.gantt.bars of its schedule."""
    facts: pd.DataFrame
    """A row a panel: figure, placement, raised (job, missing where none), above (jobs, as text), order (of the jobs that
    have not started before the last is submitted, first to last, as text), makespan_s, wait_s (mean), total_wait_s,
    utilisation (of the makespan); of the simulator: simulated_makespan_s, simulated_total_wait_s, the same with nodes kept
    for the first job alone as easy_…; start_off_s, the largest difference of any job's start; over_s, by how much jobs
    last longer than they run (mean)."""
    node_gpus: tuple[int, ...]
    """GPUs of each node."""
    source: dict[str, object]
    """How it came about: ``by`` (slurm | simulator), ``asked`` (whether the run asks for Slurm), and of Slurm what
    rltune.pipeline.motivation.on_slurm.write_runs says."""


def schedules(workspace: Workspace | None = None) -> Schedules:
    """The four schedules and what each is worth: on Slurm where the run asks for it and its packages are there."""
    twin, first_only = simulated(), simulated(FIRST_ONLY)
    runs, source = twin, {"by": "simulator", "asked": False, "lacks": []}
    if workspace is not None and workspace.config.motivation is not None:
        told, how = read_runs(workspace)
        source |= {"asked": True, **how}
        if not how["lacks"]:
            runs, source["by"] = told, "slurm"
    return put_together(runs, twin, first_only, source)


def put_together(
    runs: pd.DataFrame, twin: pd.DataFrame, first_only: pd.DataFrame, source: dict[str, object]
) -> Schedules:
    """Bars and facts of schedules, beside the simulator's under BACKFILL and with nodes kept for the first job alone."""
    layout = build_layout(CLUSTER)
    drawn, rows = {}, []
    for panel in PANELS:
        mine, ours, easy = (frame[frame["figure"] == panel.figure] for frame in (runs, twin, first_only))
        alone = mine.drop_duplicates("job").drop(columns=["node", "gpus"]).assign(sequence=0)
        alone["gpus"] = alone["job"].map(mine.groupby("job")["gpus"].sum())
        drawn[panel.figure] = bars(alone, mine.assign(sequence=0), layout.nodes)
        over_s = alone["end_s"] - alone["start_s"] - alone["job"].map(dict(enumerate(RUN_S)))
        off_s = (_starts(mine) - _starts(ours)).abs().max()
        beside = {
            f"{who}_{name}": value
            for who, frame in (("simulated", ours), ("easy", easy))
            for name, value in _worth(frame).items()
            if name in ("makespan_s", "total_wait_s")
        }
        rows.append(
            {
                **_names(panel),
                "order": _order(mine),
                **_worth(mine),
                **beside,
                "start_off_s": float(off_s),
                "over_s": float(over_s.mean()),
            }
        )
    facts = pd.DataFrame(rows).astype({"raised": "Int64"})
    return Schedules(drawn, facts, tuple(int(g) for g in layout.nodes.gpus), source)


def _names(panel: Panel) -> dict[str, object]:
    return {"figure": panel.figure, "placement": panel.placement, "raised": panel.raised, "above": _told(panel.above)}


def _starts(runs: pd.DataFrame) -> pd.Series:
    """Job → its start, s."""
    return runs.drop_duplicates("job").set_index("job")["start_s"]


def _worth(runs: pd.DataFrame) -> dict[str, float]:
    """Numbers of one schedule."""
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


def _order(runs: pd.DataFrame) -> str:
    """Jobs that have not started before the last is submitted, by their priorities, equal ones by number as Slurm does."""
    jobs = runs.drop_duplicates("job")
    waiting = jobs[jobs["start_s"] >= jobs["submit_s"].max()]
    return _told(waiting.sort_values(["priority", "job"], ascending=[False, True])["job"])


def _told(jobs: object) -> str:
    return ", ".join(str(int(job)) for job in jobs)
