"""Figures 1 to 4: the same jobs on two nodes, a node a job or packed, before and after one is raised in the queue."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.figures.gantt import gantt
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.tables.motivation import MINUTE_S, PLACEMENT_TITLE, order_title


def schedule(
    bars: pd.DataFrame, facts: pd.Series, node_gpus: Sequence[int], paper: PaperResults, source: str = ""
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """One of the four. ``bars`` as rltune.report.figures.gantt draws them; ``facts``: a row of
    rltune.report.tables.motivation's, whose ``figure`` is the id."""
    name, nodes = facts["figure"], PLACEMENT_TITLE[facts["placement"]]
    queue = order_title(facts["raised"], facts["above"])
    title = f"{queue[0].upper()}{queue[1:]}, {nodes}"
    makespan, total = (show(facts[c] / MINUTE_S, "number") for c in ("makespan_s", "total_wait_s"))
    moved = "" if pd.isna(facts["raised"]) else f" Only job {facts['raised']}’s place differs."
    artefact = Artefact(
        name, "figure", title, paper_ref=paper.ref(name),
        caption=f"Makespan {makespan} min, total wait {total} min. Above: the GPUs of two nodes and the jobs on them; "
        f"below: each job’s wait, from submission to start. Order of the queue: {facts['order']}.{moved}",
        source=source,
        notes=("Jobs of our own making, simulated with backfilling and true run times.",),
        alt=f"Gantt chart of {bars['job'].nunique()} jobs on {len(node_gpus)} nodes, {nodes}, {queue}: all is done "
            f"after "
        f"{makespan} minutes, and the jobs wait {total} minutes together. {_told(bars)}",
    )
    return artefact, bars, gantt(bars, node_gpus, title)


def _told(bars: pd.DataFrame) -> str:
    jobs = bars.drop_duplicates("job").sort_values(["start_s", "job"])
    starts = [f"{j} at {show(s / MINUTE_S, 'number')}" for j, s in zip(jobs["job"], jobs["start_s"])]
    return f"Jobs start, in minutes: {', '.join(starts)}."
