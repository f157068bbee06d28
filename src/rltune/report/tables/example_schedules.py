"""Figures 1 to 4 in numbers: how much another order of the same jobs matters, on Slurm and in the simulator."""

from collections.abc import Mapping

import pandas as pd

from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.templates import fill

PLACEMENT_TITLE = {"exclusive": "one job per node", "best_fit": "packed"}
MADE_BY = {"slurm": "Slurm daemons", "simulator": "simulated"}
MINUTE_S = 60.0
SIMULATED = ("simulated_makespan", "simulated_total_wait", "easy_total_wait")


def order_title(raised: object, above: str) -> str:
    """`job 3 raised above 6 and 2`, or Slurm's own order."""
    return "Slurm’s priorities" if pd.isna(raised) else f"job {raised} raised above {above.replace(', ', ' and ')}"


def how_made(how: Mapping[str, object]) -> str:
    """In a sentence: Slurm daemons, or the simulator and why. ``how``: by, asked, lacks; of Slurm: slurm, speed."""
    return fill("how_made.j2", how=how)


def example_schedules(facts: pd.DataFrame, how: Mapping[str, object], paper: PaperResults) -> Table:
    """One row per schedule, with the change from raising a job against the schedule of the same placement without, and,
    for schedules by Slurm, the simulator's result for the same.

    ``facts``: figure, placement, raised (missing: none), above, order, makespan_s, wait_s (mean), total_wait_s,
    utilisation, simulated_makespan_s, simulated_total_wait_s, easy_total_wait_s, start_off_s, over_s; ``how``: as
    :func:`how_made`. Changes are relative to the schedule without, negative: less; NaN for that itself. Differences
    (…_off) are relative to the simulator, positive: Slurm took longer.
    """
    frame, real = facts.copy(), how["by"] == "slurm"
    frame["in_the_paper"] = [paper.ref(figure) for figure in frame["figure"]]
    frame["nodes"] = frame["placement"].map(PLACEMENT_TITLE)
    frame["queue"] = [order_title(raised, above) for raised, above in zip(frame["raised"], frame["above"])]
    frame["by"] = how["by"]
    plain = frame[frame["raised"].isna()].set_index("placement")
    for column in ("makespan_s", "total_wait_s", "utilisation"):
        change = frame[column] / frame["placement"].map(plain[column]) - 1
        frame[f"{column}_change"] = change.where(frame["raised"].notna())
    for column in ("makespan", "total_wait"):
        frame[f"{column}_off"] = frame[f"{column}_s"] / frame[f"simulated_{column}_s"] - 1
    for column in ("makespan", "wait", "total_wait", *SIMULATED, "start_off"):
        frame[f"{column}_min"] = frame[f"{column}_s"] / MINUTE_S
    frame["paper_says"] = [paper.without_figures[figure].says for figure in frame["figure"]]
    over_s = float(frame["over_s"].mean()) if real else 0.0
    return describe(
        "example-schedules",
        frame,
        made_by=how_made(how),
        real=real,
        ours="Slurm" if real else "Simulator",
        over=show(over_s, "number"),
        over_ms=show(1000 * over_s / how["speed"], "number") if real else "",
        speed=how.get("speed", 1),
    ), frame
