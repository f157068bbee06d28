"""Figures 1 to 4: the same jobs on two nodes, one job per node or packed, before and after one is raised in the queue;
on Slurm or simulated."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.figures.gantt import gantt
from rltune.report.paper import PaperResults
from rltune.report.tables.example_schedules import MADE_BY, MINUTE_S, PLACEMENT_TITLE, how_made, order_title


def schedule(
    bars: pd.DataFrame, facts: pd.Series, node_gpus: Sequence[int], how: Mapping[str, Any], paper: PaperResults
) -> Drawing:
    """One of the four. ``bars`` as rltune.report.figures.gantt draws them; ``facts``: a row of
    rltune.report.tables.example_schedules's, whose ``figure`` is the id; ``how``: as its how_made."""
    name, nodes = facts["figure"], PLACEMENT_TITLE[facts["placement"]]
    queue = order_title(facts["raised"], facts["above"])
    title = f"{queue[0].upper()}{queue[1:]}, {nodes} ({MADE_BY[how['by']]})"
    artefact = describe(
        name,
        bars,
        paper,
        title=title,
        facts=facts,
        slurm=how["by"] == "slurm",
        made_by=how_made(how),
        jobs=bars.drop_duplicates("job").sort_values(["start_s", "job"]),
        node_count=len(node_gpus),
        nodes=nodes,
        queue=queue,
    )
    return artefact, bars, gantt(bars, node_gpus, title, least_wait_s=MINUTE_S)
