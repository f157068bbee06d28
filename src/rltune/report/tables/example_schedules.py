"""Figures 1 to 4 in numbers: what another order of the same jobs is worth, on Slurm and in the simulator."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.paper import PaperResults

PLACEMENT_TITLE = {"exclusive": "a node a job", "best_fit": "packed"}
MADE_BY = {"slurm": "real daemons", "simulator": "simulated"}
MINUTE_S = 60.0


def order_title(raised: object, above: str) -> str:
    """`job 3 raised above 6 and 2`, or Slurm's own order."""
    return "Slurm’s priorities" if pd.isna(raised) else f"job {raised} raised above {above.replace(', ', ' and ')}"


def how_made(how: Mapping[str, object]) -> str:
    """In a sentence: real daemons, or the simulator and why. ``how``: by, asked, lacks; of Slurm: slurm, speed."""
    if how["by"] == "slurm":
        return (
            f"Real daemons of Slurm {how['slurm']} on two nodes with made-up GPUs, on a clock {how['speed']:g} times as "
            "fast; times are those of Slurm’s accounting."
        )
    if how["asked"]:
        return (
            f"Simulated: the run asks for Slurm, whose packages are not installed here ({', '.join(how['lacks'])}); "
            "make slurm-deps installs them."
        )
    return "Simulated: the run does not ask for Slurm’s daemons (`example_schedules: slurm` in its configuration)."


def example_schedules(
    facts: pd.DataFrame, how: Mapping[str, object], paper: PaperResults, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """One row a schedule, with what raising a job changed against the schedule of the same placement without, and, of
    schedules by Slurm, what the simulator says of the same.

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
    for column in (
        "makespan",
        "wait",
        "total_wait",
        "simulated_makespan",
        "simulated_total_wait",
        "easy_total_wait",
        "start_off",
    ):
        frame[f"{column}_min"] = frame[f"{column}_s"] / MINUTE_S
    frame["paper_says"] = [paper.without_figures[figure].says for figure in frame["figure"]]
    return _artefact(frame, how, real, source), frame


def _artefact(frame: pd.DataFrame, how: Mapping[str, object], real: bool, source: str) -> Artefact:
    ours, change, twin, off = "Slurm" if real else "Simulator", "Changed by the order", "Simulator", "Slurm took more"
    wait, makespan = "Total wait", "Makespan"
    easy = {
        "easy_total_wait_min": Column(
            "Wait, EASY",
            "min",
            "number",
            twin,
            help=("In the simulator with nodes kept for the first of the queue alone."),
        )
    }
    columns = {
        "in_the_paper": Column("Like"),
        "nodes": Column("Nodes"),
        "queue": Column("Queue"),
        "makespan_min": Column(makespan, "min", "number", ours),
        "total_wait_min": Column(wait, "min", "number", ours),
        **({} if real else easy),
        "utilisation": Column("Utilisation", "", "percent", ours),
        "makespan_s_change": Column(makespan, "", "percent", change),
        "total_wait_s_change": Column("Wait", "", "percent", change),
    }
    if real:
        columns |= {
            "simulated_makespan_min": Column(makespan, "min", "number", twin),
            "simulated_total_wait_min": Column(wait, "min", "number", twin),
            **easy,
            "makespan_off": Column(makespan, "", "percent", off),
            "total_wait_off": Column("Wait", "", "percent", off),
            "start_off_min": Column(
                "To a start", "min", "number", off, help="The largest difference of any job’s start."
            ),
        }
    columns["paper_says"] = Column("The paper says of its own")
    return Artefact(
        "example-schedules",
        "table",
        "What the order of seven jobs is worth",
        caption="The same jobs on the same two nodes: a node for each job or packed, in the order of Slurm’s "
        "multifactor priority with backfilling and with one job raised above others. Utilisation is of the GPUs asked "
        f"for, over the makespan. {how_made(how)}",
        source=source,
        columns=columns,
        notes=(
            "The paper prints no number for its four figures, nor its jobs’ sizes and run times; the jobs here are of "
            "our own making, chosen among many in the simulator so that another order helps with either placement: they "
            f"show that it can, not how often.{' Each schedule is a single run.' if real else ''} Only the direction of "
            "the effects can be compared. Packed jobs run as fast as alone.",
            "Backfilling does not find these orders by itself: a job that is raised would have delayed the reservation "
            "of the one in front.",
            *((_between(frame, how),) if real else ()),
        ),
    )


def _between(frame: pd.DataFrame, how: Mapping[str, object]) -> str:
    """What lies between Slurm and the simulator."""
    over_s = float(frame["over_s"].mean())
    over, true_ms = show(over_s, "number"), show(1000 * over_s / how["speed"], "number")
    return (
        f"A job lasts {over} s longer on Slurm than it runs, {true_ms} ms of this machine on a clock {how['speed']:g} times "
        "as fast: starting and ending it, and seeing that it ended. The simulator needs no time for that. It reserves nodes "
        "for every job of the queue, as Slurm’s backfilling does; EASY keeps them for the first alone."
    )
