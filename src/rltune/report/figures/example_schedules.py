"""Figures 1 to 4: the same jobs on two nodes, a node a job or packed, before and after one is raised in the queue;
on Slurm or simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.figures.gantt import gantt
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.tables.example_schedules import MADE_BY, MINUTE_S, PLACEMENT_TITLE, how_made, order_title

QUICK = "A wait of less than a minute is the time Slurm takes to start a job: it is counted, not drawn."


def schedule(
    bars: pd.DataFrame, facts: pd.Series, node_gpus: Sequence[int], how: Mapping[str, object], paper: PaperResults
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """One of the four. ``bars`` as rltune.report.figures.gantt draws them; ``facts``: a row of
    rltune.report.tables.example_schedules's, whose ``figure`` is the id; ``how``: as its how_made."""
    name, nodes = facts["figure"], PLACEMENT_TITLE[facts["placement"]]
    queue = order_title(facts["raised"], facts["above"])
    title = f"{queue[0].upper()}{queue[1:]}, {nodes} ({MADE_BY[how['by']]})"
    makespan, total = (show(facts[c] / MINUTE_S, "number") for c in ("makespan_s", "total_wait_s"))
    moved = (
        ""
        if pd.isna(facts["raised"])
        else (f" Only job {facts['raised']}’s place differs, of jobs searched for in the simulator so that it helps.")
    )
    single = " A single run." if how["by"] == "slurm" else ""
    artefact = describe(
        name,
        frame,
        paper,
        title=title,
        makespan=makespan,
        total=total,
        facts=facts,
        moved=moved,
        single=single,
        how_made=how_made(how),
        lines=(QUICK,) if how["by"] == "slurm" else (),
        nunique=bars["job"].nunique(),
        len=len(node_gpus),
        nodes=nodes,
        queue=queue,
        told=_told(bars),
    )
    return artefact, bars, gantt(bars, node_gpus, title, least_wait_s=MINUTE_S)


def _told(bars: pd.DataFrame) -> str:
    jobs = bars.drop_duplicates("job").sort_values(["start_s", "job"])
    starts = [f"{j} at {show(s / MINUTE_S, 'number')}" for j, s in zip(jobs["job"], jobs["start_s"])]
    return f"Jobs start, in minutes: {', '.join(starts)}."
