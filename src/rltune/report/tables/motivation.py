"""Figures 1 to 4 in numbers: what another order of the same jobs is worth."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.paper import PaperResults

PLACEMENT_TITLE = {"exclusive": "a node a job", "best_fit": "packed"}
MINUTE_S = 60.0


def order_title(raised: object, above: str) -> str:
    """`job 3 raised above 6 and 2`, or Slurm's own order."""
    return "Slurm’s priorities" if pd.isna(raised) else f"job {raised} raised above {above.replace(', ', ' and ')}"


def motivation(facts: pd.DataFrame, paper: PaperResults, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """One row a schedule, with what raising a job changed against the schedule of the same placement without.

    ``facts``: figure, placement, raised (missing: none), above, order, makespan_s, wait_s (mean), total_wait_s,
    utilisation. Changes are relative to the schedule without, negative: less; NaN for that itself.
    """
    frame = facts.copy()
    frame["in_the_paper"] = [paper.ref(figure) for figure in frame["figure"]]
    frame["nodes"] = frame["placement"].map(PLACEMENT_TITLE)
    frame["queue"] = [order_title(raised, above) for raised, above in zip(frame["raised"], frame["above"])]
    plain = frame[frame["raised"].isna()].set_index("placement")
    for column in ("makespan_s", "total_wait_s", "utilisation"):
        change = frame[column] / frame["placement"].map(plain[column]) - 1
        frame[f"{column}_change"] = change.where(frame["raised"].notna())
    for column in ("makespan", "wait", "total_wait"):
        frame[f"{column}_min"] = frame[f"{column}_s"] / MINUTE_S
    frame["paper_says"] = [paper.without_figures[figure].says for figure in frame["figure"]]
    ours, change = "Here", "Changed by the other order"
    artefact = Artefact(
        "motivation", "table", "What the order of seven jobs is worth",
        caption="The same jobs on the same two nodes: a node for each job or packed, in the order of Slurm’s "
        "multifactor priority with backfilling and with one job raised above others. Utilisation is of the GPUs asked "
        "for, over the makespan.",
        source=source,
        columns={
            "in_the_paper": Column("Like"), "nodes": Column("Nodes"), "queue": Column("Queue"),
            "makespan_min": Column("Makespan", "min", "number", ours),
            "wait_min": Column("Mean wait", "min", "number", ours),
            "utilisation": Column("Utilisation", "", "percent", ours),
            "makespan_s_change": Column("Makespan", "", "percent", change),
            "total_wait_s_change": Column("Wait", "", "percent", change),
            "utilisation_change": Column("Utilisation", "", "percent", change),
            "paper_says": Column("The paper says of its own"),
        },
        notes=(
            "The paper prints no number for its four figures, nor its jobs’ sizes and run times; the jobs here are of "
            "our "
            "own making, and only the direction of the effects can be compared. Its nodes were real; these are "
            "simulated, "
            "and packed jobs run as fast as alone.",
            "Backfilling does not find these orders by itself: a job that is raised would have delayed the reservation "
            "of the one in front.",
        ),
    )
    return artefact, frame
