"""Your cluster, what if: the recommendation in words, every scheduler in numbers, the comparisons, groups of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.evaluation.intervals import FEWEST
from rltune.report.artefact import Artefact, Column
from rltune.report.format import NBSP, is_missing, show, show_interval
from rltune.report.style import scheduler_title
from rltune.report.tables.holm import holm_note, with_holm

FAR = 2.0
"""A simulated today that waits more than so many times as long as recorded, or less than one over it, is far off."""
TESTED = {f"less_{m}_p": f"less_{m}_holm" for m in ("wait", "gpu", "bsld")}
ADVICE = ("outcome", "chosen", "reached", "blocks")
GROUP_TITLE = {"user": "users", "size": "GPUs of a job"}
Facts = Mapping[str, Any]


def names(ran: pd.DataFrame) -> dict[str, str]:
    """Scheduler → its name: `Today: Slurm multifactor + EASY`, `SAF + EASY`, `QSSF + EASY`, `RLTune`.

    ``ran``: scheduler, kind, policy, blocking.
    """
    found = {}
    for _, row in ran.drop_duplicates("scheduler").iterrows():
        title = scheduler_title(row["policy"], row["blocking"])
        found[row["scheduler"]] = {
            "today": f"Today: {title}", "qssf": "QSSF + EASY", "rltune": "RLTune",
        }.get(row["kind"], title)
    return found


def saving(step: pd.Series) -> str:
    """`21.7 % fewer hours (interval of the saving 10.1 to 30.2 %)`: a comparison, in words."""
    def size(value: float) -> str:
        return show(abs(value), "percent")

    if is_missing(step["gain"]):
        return "nothing to compare, as nobody waits"
    word = "fewer" if step["gain"] >= 0 else "more"
    between = show_interval(step["low"], step["high"], "percent")
    return f"{size(step['gain'])} {word} hours" + (f" (interval of the saving {between})" if between else "")


def sentences(
    advice: Mapping[str, Any], totals: pd.DataFrame, steps: pd.DataFrame, ran: pd.DataFrame, groups: pd.DataFrame,
    recorded: Mapping[str, float], facts: Facts, worth: float, least_wait_s: float,
) -> list[tuple[str, str]]:
    """(Topic, text) of what came out, the recommendation first. ``advice``: the fields of
    rltune.evaluation.recommend.Advice."""
    name, step = names(ran), steps.set_index(["ours", "theirs"])
    told = [("Recommendation", _advice(advice, name, totals, step, ran, facts, least_wait_s))]
    if advice["outcome"] not in ("too few days", "no waits"):
        told.append(("RLTune", _rltune(advice, name, step, facts, worth)))
        if advice["outcome"] not in ("keep", "open"):
            told.append(("Who would wait longer", _losers(advice, groups)))
    told.append(("Simulated and recorded", _recorded(recorded, name)))
    load = float(facts["offered"])
    if load > 1:
        told.append(("Load", f"In these days jobs asked for {show(load, 'number')} times the {_machines(facts)} time "
                     "there is: queues grew to the end whatever the order, and hours waited say as much about the "
                     "length "
                     "of the log as about the scheduler."))
    return told


def _machines(facts: Facts) -> str:
    return str(facts["machine"])


def _advice(
    advice: Mapping[str, Any], name: Mapping[str, str], totals: pd.DataFrame, step: pd.DataFrame, ran: pd.DataFrame,
    facts: Facts, least_wait_s: float,
) -> str:
    today = totals[totals["scheduler"] == "today"].iloc[0]
    hours = f"{show(today['wait_h'], 'int')} h"
    over = f"the log’s last {show(facts['days'], 'number')} days ({show(facts['jobs'], 'int')} jobs)"
    match advice["outcome"]:
        case "too few days":
            return (f"Too few days for a verdict: arrivals of {advice['blocks']} days or part-days lie in the last "
                    "part, at "
                    f"least {FEWEST} are needed. A log {show(-(-FEWEST // max(int(advice['blocks']), 1)), 'int')} "
                    "times as "
                    "long would have them.")
        case "no waits":
            return (f"Do not bother: under today’s order jobs wait {show(today['wait_mean_s'], 'seconds')} s in the "
                    "mean, "
                    f"below the {show(least_wait_s, 'seconds')} s from which on a change is weighed.")
        case "keep":
            return (f"Do not bother: over {over} nothing that was tried waits less than {_lower(name['today'])} "
                    f"({hours}), or "
                    "not by enough to be worth a change.")
        case "open":
            fewest = totals.loc[totals["wait_h"].idxmin(), "scheduler"]
            found = step.loc[(fewest, "today")]
            return (f"Undecided: over {over} {name[fewest]} waits {show(found['ours_h'], 'int')} h, "
                    f"{_lower(name['today'])} "
                    f"{hours}, {saving(found)}, but {_doubt(found, len(step))}. Not enough to change anything on; a "
                    "longer "
                    "log may tell.")
    chosen, found = name[advice["chosen"]], step.loc[(advice["chosen"], "today")]
    what = {
        "rule": f"Switch to {chosen}", "qssf": f"Switch to {chosen}, smallest area first by run times predicted from "
        "earlier jobs", "rltune": f"Use {chosen}",
    }[advice["outcome"]]  # fmt: skip
    policies = ran.drop_duplicates("scheduler").set_index("scheduler")["blocking"]
    if advice["outcome"] == "rule" and policies["today"] in ("none", "fits") and policies[advice["chosen"]] == "easy":
        what = f"Switch on EASY backfilling, with the order {chosen.removesuffix(' + EASY')}"
    return (f"{what}: over {over} jobs would have waited {show(found['ours_h'], 'int')} h instead of {hours}, "
            f"{saving(found)}.")


def _rltune(
    advice: Mapping[str, Any], name: Mapping[str, str], step: pd.DataFrame, facts: Facts, worth: float
) -> str:
    undecided = advice["outcome"] == "open"
    against = _best_rule(step) if undecided else advice["reached"]
    found, rival = step.loc[("rltune", against)], _lower(name[against])
    cost = (f"training took {show(facts['training_s'], 'seconds')}{NBSP}s of one core, and what it was worth was "
            f"measured for {show(facts['days'], 'number')} days behind its training: retrain about as often, "
            f"{show(365 / max(facts['days'], 1e-9) * facts['training_s'] / 3600, 'number')} core hours a year")
    if advice["outcome"] == "rltune":
        return f"RLTune waits {saving(found)} than {rival}; {cost}."
    if found["shows"] == "fewer" and undecided:
        return f"RLTune waits {saving(found)} than {rival}, which is not shown to beat today’s order itself ({cost})."
    if found["shows"] == "fewer":
        return (f"RLTune waits {saving(found)} than {rival}, below the {show(worth, 'percent')} that a change has "
                "to be "
                f"worth here: do not bother ({cost}).")
    if found["shows"] == "more":
        return f"RLTune is worse than {rival}, {saving(found)}: do not bother ({cost})."
    return (f"RLTune adds nothing measurable over {rival}: {saving(found)}, and {_doubt(found, len(step))}; do not "
            "bother "
            f"({cost}).")


def _best_rule(step: pd.DataFrame) -> str:
    """What QSSF was compared with besides today: the rule with the fewest hours."""
    return next(theirs for ours, theirs in step.index if ours == "qssf" and theirs != "today")


def _doubt(found: pd.Series, count: int) -> str:
    """Why a comparison shows nothing."""
    if found["low"] > 0 or found["high"] < 0:
        return f"with {count} comparisons made that may be chance (Holm’s p {show(found['p_holm'], 'p')})"
    return "the interval covers zero"


def _losers(advice: Mapping[str, Any], groups: pd.DataFrame) -> str:
    mine = groups[(groups["scheduler"] == advice["chosen"]) & (groups["less_wait_high"] < 0)]
    if not len(mine):
        return "No group of users or of job sizes is shown to wait longer."
    each = [f"{_group(row)} ({show(-row['less_wait'], 'percent')} longer, interval "
            f"{show_interval(-row['less_wait_high'], -row['less_wait_low'], 'percent')})" for _, row in mine.iterrows()]
    return f"Shown to wait longer than today: {'; '.join(each)}."


def _group(row: pd.Series) -> str:
    return f"{row['group']} users" if row["grouping"] == "user" else f"jobs of {row['group']} GPUs"


def _recorded(recorded: Mapping[str, float], name: Mapping[str, str]) -> str:
    today = name["today"].removeprefix("Today: ")
    if not recorded["jobs"]:
        return ("The log records no waits, so that the simulated today cannot be held against what happened: all "
                "differences are between simulations.")
    if is_missing(recorded["ratio"]):
        return (f"The log records no waiting at all; the simulated today ({today}) has "
                f"{show(recorded['simulated_h'], 'int')} h.")
    ratio = recorded["ratio"]
    near = 1 / FAR <= ratio <= FAR
    rank = "" if is_missing(recorded["rank"]) else f"; job by job the ranks correlate by "
                                                   f"{show(recorded['rank'], 'number')}"
    verdict = ("near enough to read the differences as this cluster’s" if near else
               "far off: the cluster is scheduled otherwise than the simulated today, or has limits, dependencies or "
               "nodes that the simulation does not know. Read the differences as between simulations, and set "
               "`whatif.today` and the node list right before acting on them")
    return (f"On the {show(recorded['jobs'], 'int')} jobs with a recorded wait the log has "
            f"{show(recorded['recorded_h'], 'int')} h, the simulated today ({today}) "
            f"{show(recorded['simulated_h'], 'int')} h, {show(ratio, 'number')} times as much{rank}. That is "
            f"{verdict}.")


def _lower(title: str) -> str:
    return title.replace("Today: ", "today’s ")


def whatif_recommendation(told: list[tuple[str, str]], facts: Facts, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-recommendation`: a row a sentence."""
    frame = pd.DataFrame(told, columns=["topic", "text"])
    return Artefact(
        "whatif-recommendation", "table", "The recommendation",
        caption=f"What the replay of {facts['from']} to {facts['until']} (the log’s time) on {facts['cluster']} "
                "says; the "
        "rule it goes by is in docs/own-cluster.md.",
        data=(str(facts["data"]),), source=source,
        columns={"topic": Column("About"), "text": Column("What came out")},
    ), frame


def whatif_numbers(
    totals: pd.DataFrame, ran: pd.DataFrame, recorded: pd.DataFrame, recorded_used: float, facts: Facts,
    confidence: float, source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-numbers`: the log as recorded, then a row a scheduler.

    ``recorded``: the measured jobs as the log has them, ``wait_s`` missing where not recorded.
    """
    title = names(ran)
    means = ran.groupby("scheduler").agg(utilisation=("utilisation", "mean"), seconds=("seconds", "mean"))
    own = ran.drop_duplicates("scheduler").set_index("scheduler")
    frame = with_holm(totals, TESTED).assign(
        title=totals["scheduler"].map(title), utilisation=totals["scheduler"].map(means["utilisation"]),
        ran=totals["scheduler"].map({s: f"{scheduler_title(r['policy'], r['blocking'])}, {r['estimate']}"
                                     for s, r in own.iterrows()}),
        hours_less=totals["less_wait"] * totals["wait_h"].iloc[0],
        hours_less_low=totals["less_wait_low"] * totals["wait_h"].iloc[0],
        hours_less_high=totals["less_wait_high"] * totals["wait_h"].iloc[0], data=facts["data"],
    )  # fmt: skip
    known = recorded[recorded["wait_s"].notna()]
    if len(known):
        wait = known["wait_s"]
        first = {
            "scheduler": "recorded", "kind": "recorded", "title": "As recorded in the "
                                                                  "log", "jobs": len(known), "seeds": 0,
            "ran": "", "windows": known["block"].nunique(), "wait_h": wait.sum() / 3600,
            "gpu_h": float((wait * known["gpus"]).sum()) / 3600, "wait_mean_s": wait.mean(),
            "wait_median_s": wait.median(), "wait_p95_s": wait.quantile(0.95), "bsld": known["bsld"].mean(),
            "utilisation": recorded_used, "data": facts["data"],
        }  # fmt: skip
        frame = pd.concat([pd.DataFrame([first]), frame], ignore_index=True)
    unit = f"{facts['machine']} h"
    less = "Less than today"
    notes = (
        f"Measured: {show(facts['jobs'], 'int')} jobs that arrived from {facts['from']} to {facts['until']}, never "
        "trained "
        f"on; {show(facts['warm_jobs'], 'int')} jobs before them are replayed first and not measured, under each "
        "scheduler "
        "itself. After the last arrival nobody comes any more, so that the last jobs wait less than they would have.",
        f"Blocks of arrivals are resampled, moving-block bootstrap; {100 * confidence:.0f} % intervals. Hours less: "
        "the "
        "share and its ends times today’s hours.",
        f"{show(facts['limits'], 'percent')} of these jobs have a time limit of their user’s. All but QSSF are told "
        "the "
        "same estimates; QSSF goes by run times predicted from earlier jobs, for its order and its reservations.",
        *filter(None, [holm_note(frame, TESTED, "over today", confidence)]),
    )
    return Artefact(
        "whatif-numbers", "table", "Every scheduler on the log’s last part",
        caption="Hours waited in all, what they held up in GPU-hours (GPUs × wait), waits, slowdown and use of the "
        f"cluster ({show(facts['gpus'], 'int')} {facts['machine']}s); the log as it is, then simulations.",
        data=(str(facts["data"]),), source=source,
        columns={
            "title": Column("Scheduler"), "ran": Column("Order and estimates"), "jobs": Column("Jobs", "", "int"),
            "wait_h": Column("Waited", "h", "int"), "gpu_h": Column("Waited for", unit, "int"),
            "wait_mean_s": Column("Mean", "s", "seconds", "Wait"),
            "wait_median_s": Column("Median", "s", "seconds", "Wait"),
            "wait_p95_s": Column("95 %", "s", "seconds", "Wait"), "bsld": Column("Slowdown", "", "number"),
            "utilisation": Column("In use", "", "percent", help="Of the cluster, while the measured jobs arrived."),
            "hours_less": Column("Waited", "h", "int", less, "hours_less_low", "hours_less_high"),
            "less_wait": Column("Waited", "", "percent", less, "less_wait_low", "less_wait_high"),
            "less_wait_holm": Column("Holm p", "", "p", less),
            "less_gpu": Column("Waited for", "", "percent", less, "less_gpu_low", "less_gpu_high"),
            "less_bsld": Column("Slowdown", "", "percent", less, "less_bsld_low", "less_bsld_high"),
        },
        notes=notes,
    ), frame


def whatif_steps(
    steps: pd.DataFrame, ran: pd.DataFrame, facts: Facts, confidence: float, worth: float, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-steps`: the comparisons that the recommendation goes by."""
    title = names(ran)
    frame = steps.assign(ours_title=steps["ours"].map(title), theirs_title=steps["theirs"].map(title), data=facts["data"])
    return Artefact(
        "whatif-steps", "table", "The comparisons behind the recommendation",
        caption="Hours waited, against today, and of what predicts or learns against what is simpler.",
        data=(str(facts["data"]),), source=source,
        columns={
            "ours_title": Column("Scheduler"), "theirs_title": Column("Against"), "ours_h": Column("Waited", "h", "int"),
            "theirs_h": Column("The other", "h", "int"), "gain": Column("Less", "", "percent", low="low", high="high"),
            "p": Column("p", "", "p"), "p_holm": Column("Holm p", "", "p"), "shows": Column("Shown"), "windows": Column("Blocks", "", "int"),
        },
        notes=(f"Shown: the interval leaves zero out, and Holm’s p is below {1 - confidence:.2g}. A step counts "
               "where fewer "
               f"hours are shown, and at least {show(worth, 'percent')} fewer. The best rule is chosen in hindsight "
               "on these very days.",),
    ), frame


def whatif_groups(
    groups: pd.DataFrame, ran: pd.DataFrame, facts: Facts, confidence: float, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-groups-numbers`: a row a group × scheduler."""
    title = names(ran)
    frame = groups.assign(
        title=groups["scheduler"].map(title), name=[_group(row) for _, row in groups.iterrows()], data=facts["data"],
        wait_h=groups["wait_s"] * groups["jobs"] / 3600,
    )  # fmt: skip
    return Artefact(
        "whatif-groups-numbers", "table", "Who waits, in numbers",
        caption="By the GPU time of a job’s user before the measured part, and by the GPUs of the job.",
        data=(str(facts["data"]),), source=source,
        columns={
            "name": Column("Jobs of"), "title": Column("Scheduler"), "jobs": Column("Jobs", "", "int"),
            "wait_h": Column("Waited", "h", "int"), "wait_s": Column("Mean wait", "s", "seconds"),
            "less_wait": Column("Less than today", "", "percent", low="less_wait_low", high="less_wait_high"),
            "bsld": Column("Slowdown", "", "number"),
            "less_bsld": Column("Less than today", "", "percent", low="less_bsld_low", high="less_bsld_high"),
        },
        notes=("Heavy users are the tenth with the most GPU-hours before the measured part, light ones the half "
               "with the "
               "least; new ones had none. A user who is not known counts as their virtual cluster. Of RLTune the "
               "first seed.",
               f"Brackets: {100 * confidence:.0f} % intervals of single comparisons, not corrected for their number."),
    ), frame
