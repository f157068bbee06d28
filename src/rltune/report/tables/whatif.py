"""Your cluster, what if, in tables: the recommendation, every scheduler in numbers, the comparisons, groups of jobs."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.tables.holm import holm_note, with_holm
from rltune.report.tables.whatif_words import Facts, full_title, group_name, names

TESTED = {f"less_{m}_p": f"less_{m}_holm" for m in ("wait", "gpu", "bsld")}
GROUP_TITLE = {"user": "users", "size": "GPUs of a job"}


def whatif_recommendation(told: list[tuple[str, str]], facts: Facts, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-recommendation`: a row a sentence."""
    frame = pd.DataFrame(told, columns=["topic", "text"])
    return Artefact(
        "whatif-recommendation",
        "table",
        "The recommendation",
        caption=f"What the replay of {facts['from']} to {facts['until']} (the log’s time) on {facts['cluster']} "
        "says; the rule it goes by is in docs/how-to/own-cluster.md.",
        data=(str(facts["data"]),),
        source=source,
        columns={"topic": Column("About"), "text": Column("What came out")},
    ), frame


def whatif_numbers(
    totals: pd.DataFrame,
    ran: pd.DataFrame,
    recorded: pd.DataFrame,
    recorded_used: float,
    facts: Facts,
    confidence: float,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-numbers`: the log as recorded, then a row a scheduler.

    ``recorded``: the measured jobs as the log has them, ``wait_s`` missing where not recorded.
    """
    title = names(ran)
    means = ran.groupby("scheduler").agg(utilisation=("utilisation", "mean"), seconds=("seconds", "mean"))
    own = ran.drop_duplicates("scheduler").set_index("scheduler")
    frame = with_holm(totals, TESTED).assign(
        title=totals["scheduler"].map(title),
        utilisation=totals["scheduler"].map(means["utilisation"]),
        ran=totals["scheduler"].map(
            {s: f"{full_title(r['policy'], r['backfill'])}, {r['estimate']}" for s, r in own.iterrows()}
        ),
        hours_less=totals["less_wait"] * totals["wait_h"].iloc[0],
        hours_less_low=totals["less_wait_low"] * totals["wait_h"].iloc[0],
        hours_less_high=totals["less_wait_high"] * totals["wait_h"].iloc[0],
        data=facts["data"],
    )
    known = recorded[recorded["wait_s"].notna()]
    if len(known):
        wait = known["wait_s"]
        first = {
            "scheduler": "recorded",
            "kind": "recorded",
            "title": "As recorded in the log",
            "jobs": len(known),
            "seeds": 0,
            "ran": "",
            "windows": known["block"].nunique(),
            "wait_h": wait.sum() / 3600,
            "gpu_h": float((wait * known["gpus"]).sum()) / 3600,
            "wait_mean_s": wait.mean(),
            "wait_median_s": wait.median(),
            "wait_p95_s": wait.quantile(0.95),
            "bsld": known["bsld"].mean(),
            "utilisation": recorded_used,
            "data": facts["data"],
        }
        frame = pd.concat([pd.DataFrame([first]), frame], ignore_index=True)
    unit = f"{facts['machine']} h"
    less = "Less than today"
    notes = (
        f"Measured: {show(facts['jobs'], 'int')} jobs that arrived from {facts['from']} to {facts['until']}, never "
        f"trained on; {show(facts['warm_jobs'], 'int')} jobs before them are replayed first and not measured, under "
        "each scheduler itself. After the last arrival nobody comes any more, so that the last jobs wait less than "
        "they would have.",
        f"Blocks of arrivals are resampled, moving-block bootstrap; {100 * confidence:.0f} % intervals. Hours less: "
        "the share and its ends times today’s hours.",
        f"{show(facts['limits'], 'percent')} of these jobs have a time limit of their user’s. {_told(ran)} QSSF "
        "goes by run times predicted from earlier jobs, for its order and its reservations.",
        *filter(None, [holm_note(frame, TESTED, "over today", confidence)]),
    )
    return Artefact(
        "whatif-numbers",
        "table",
        "Every scheduler on the log’s last part",
        caption="Hours waited in all, what they held up in GPU-hours (GPUs × wait), waits, slowdown and use of the "
        f"cluster ({show(facts['gpus'], 'int')} {facts['machine']}s); the log as it is, then simulations.",
        data=(str(facts["data"]),),
        source=source,
        columns={
            "title": Column("Scheduler"),
            "ran": Column("Order and estimates"),
            "jobs": Column("Jobs", "", "int"),
            "wait_h": Column("Waited", "h", "int"),
            "gpu_h": Column("Waited for", unit, "int"),
            "wait_mean_s": Column("Mean", "s", "seconds", "Wait"),
            "wait_median_s": Column("Median", "s", "seconds", "Wait"),
            "wait_p95_s": Column("95 %", "s", "seconds", "Wait"),
            "bsld": Column("Slowdown", "", "number"),
            "utilisation": Column("In use", "", "percent", help="Of the cluster, while the measured jobs arrived."),
            "hours_less": Column("Waited", "h", "int", less, "hours_less_low", "hours_less_high"),
            "less_wait": Column("Waited", "", "percent", less, "less_wait_low", "less_wait_high"),
            "less_wait_holm": Column("Holm p", "", "p", less),
            "less_gpu": Column("Waited for", "", "percent", less, "less_gpu_low", "less_gpu_high"),
            "less_bsld": Column("Slowdown", "", "percent", less, "less_bsld_low", "less_bsld_high"),
        },
        notes=notes,
    ), frame


def _told(ran: pd.DataFrame) -> str:
    """Who is told which estimates, in a sentence."""
    if not ran["estimate"].astype(str).str.endswith("as calibrated").any():
        return "All but QSSF are told the same estimates."
    return (
        "All but QSSF are told the same estimates; RLTune chose to go by beliefs about them, made of earlier jobs "
        "(as calibrated), which the rules have not."
    )


def whatif_steps(
    steps: pd.DataFrame, ran: pd.DataFrame, facts: Facts, confidence: float, worth: float, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-steps`: the comparisons that the recommendation goes by."""
    title = names(ran)
    told = {f"{side}_title": steps[side].map(title) for side in ("ours", "theirs")}
    frame = steps.assign(**told, data=facts["data"])
    return Artefact(
        "whatif-steps",
        "table",
        "The comparisons behind the recommendation",
        caption="Hours waited, against today, and of what predicts or learns against what is simpler.",
        data=(str(facts["data"]),),
        source=source,
        columns={
            "ours_title": Column("Scheduler"),
            "theirs_title": Column("Against"),
            "ours_h": Column("Waited", "h", "int"),
            "theirs_h": Column("The other", "h", "int"),
            "gain": Column("Less", "", "percent", low="low", high="high"),
            "p": Column("p", "", "p"),
            "p_holm": Column("Holm p", "", "p"),
            "shows": Column("Shown"),
            "windows": Column("Blocks", "", "int"),
        },
        notes=(
            f"Shown: the interval leaves zero out, and Holm’s p is below {1 - confidence:.2g}. A step counts "
            f"where fewer hours are shown, and at least {show(worth, 'percent')} fewer. The best rule is chosen in hindsight "
            "on these very days.",
        ),
    ), frame


def whatif_groups(
    groups: pd.DataFrame, ran: pd.DataFrame, facts: Facts, confidence: float, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-groups-numbers`: a row a group × scheduler."""
    title = names(ran)
    frame = groups.assign(
        title=groups["scheduler"].map(title),
        name=[group_name(row) for _, row in groups.iterrows()],
        data=facts["data"],
        wait_h=groups["wait_s"] * groups["jobs"] / 3600,
        shows=groups["shows"].where(groups["scheduler"] != "current", ""),
    )
    return Artefact(
        "whatif-groups-numbers",
        "table",
        "Who waits, in numbers",
        caption="By the GPU time of a job’s user before the measured part, and by the GPUs of the job.",
        data=(str(facts["data"]),),
        source=source,
        columns={
            "name": Column("Jobs of"),
            "title": Column("Scheduler"),
            "jobs": Column("Jobs", "", "int"),
            "wait_h": Column("Waited", "h", "int"),
            "wait_s": Column("Mean wait", "s", "seconds"),
            "more_s": Column("Longer than today", "s", "seconds", low="more_s_low", high="more_s_high"),
            "more_s_holm": Column("Holm p", "", "p"),
            "shows": Column("Shown"),
            "less_wait": Column("Less than today", "", "percent", low="less_wait_low", high="less_wait_high"),
            "bsld": Column("Slowdown", "", "number"),
            "less_bsld": Column("Less than today", "", "percent", low="less_bsld_low", high="less_bsld_high"),
        },
        notes=(
            "Heavy users are the tenth with the most GPU-hours before the measured part, light ones "
            "the half with the least; new ones had none. A user who is not known counts as their virtual cluster. Of "
            "RLTune the mean of its seeds.",
            f"Brackets: {100 * confidence:.0f} % intervals of single comparisons. Shown: the interval of the seconds "
            f"leaves zero out, and Holm’s p over all groups of the scheduler is below {1 - confidence:.2g}. A share "
            "is missing where nobody waited today; the seconds are not.",
        ),
    ), frame
