"""Your cluster, what if, in tables: the recommendation, every scheduler in numbers, the comparisons, groups of jobs."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.config.max_wait import DEFAULT as MAX_WAIT_H
from rltune.evaluation.intervals import FEWEST, Intervals
from rltune.evaluation.recorded import LEAST_RANK, Nearness
from rltune.evaluation.studies.hours_waited import BOUNDED, CURRENT, totals as sums
from rltune.policies import TITLES
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, with_holm
from rltune.report.format import show
from rltune.report.style import scheduler_title
from rltune.report.templates import fill

HOURS = (("mean", "wait_s", ""), *(("more", "more_s", end) for end in ("", "_low", "_high")))
TESTED = {f"less_{m}_p": f"less_{m}_holm" for m in ("wait", "gpu", "bsld")}
WAITS = ("wait_mean_h", "wait_median_h", "wait_p95_h", "wait_max_h")
MULTIFACTOR = {"multifactor": "multifactor as in the paper", "multifactor_size": "Slurm multifactor, equal weights"}
Facts = Mapping[str, Any]


def names(ran: pd.DataFrame) -> dict[str, str]:
    """Scheduler → its name: `Assumed: Slurm multifactor, equal weights + EASY`, `SAF + EASY`, `QSSF + EASY`, `RLTune`.

    ``ran``: scheduler, kind, policy, backfill.
    """
    titles = {
        "qssf": "QSSF + EASY",
        "configuration": "RLTune’s configuration, no network",
        "rltune": "RLTune",
        "bounded": "RLTune, maximum waits",
    }
    rows = zip(ran["scheduler"], ran["kind"], map(full_title, ran["policy"], ran["backfill"]))
    return {s: titles.get(kind, f"{'Assumed: ' * (kind == 'current')}{title}") for s, kind, title in rows}


def full_title(policy: str, backfill: str) -> str:
    """`FIFO + EASY`, `FIFO without backfilling`: all that an operator has to set. Slurm's multifactor is Slurm's own formula."""
    title = scheduler_title(policy, backfill).replace(TITLES[policy], MULTIFACTOR.get(policy, TITLES[policy]), 1)
    return title + (" without backfilling" if backfill == "none" else "")


def max_wait(machine: str) -> str:
    """The controller's maximum waits in words: `24 h up to 1 GPU, 72 h up to 8 GPUs, 168 h for larger jobs`."""
    return fill("max_wait.j2", limits=MAX_WAIT_H, machine=machine)


def group_name(row: Mapping[str, Any], machine: str) -> str:
    """`heavy users`, `jobs of 5–8 GPUs`, of a row of groups."""
    if row["grouping"] == "user":
        return f"{row['group']} users"
    return f"jobs of {row['group']} {machine}{'s' if str(row['group']) != '1' else ''}"


def sentences(
    advice: Mapping[str, Any],
    totals: pd.DataFrame,
    steps: pd.DataFrame,
    ran: pd.DataFrame,
    groups: pd.DataFrame,
    recorded: Nearness,
    facts: Facts,
    worth: float,
    least_wait_s: float,
) -> list[tuple[str, str]]:
    """(Topic, text) of the results, the recommendation first (templates/recommendation.j2).

    ``advice``: the fields of rltune.evaluation.studies.hours_waited.Advice.
    """
    name = names(ran)
    outcome, chosen = advice["outcome"], advice["chosen"]
    found = {(r["ours"], r["theirs"]): r for r in steps.to_dict("records")}
    unbounded = totals[totals["scheduler"] != BOUNDED]
    best = str(unbounded.loc[unbounded["wait_h"].idxmin(), "scheduler"])
    # while undecided RLTune is compared with the best rule, with which QSSF is compared too
    best_rule = next((theirs for ours, theirs in found if ours == "qssf" and theirs != "current"), "current")
    against = best_rule if outcome == "open" else advice["reached"]
    current = groups[groups["scheduler"] == "current"].set_index(["grouping", "group"])["wait_s"]
    agents = ran[ran["kind"] == "configuration"].itertuples()
    text = fill(
        "recommendation.j2",
        **advice,
        facts=facts,
        name=name,
        best=best,
        rival=name[against],
        totals=totals.set_index("scheduler").to_dict("index"),
        rules=ran.drop_duplicates("scheduler").set_index("scheduler").to_dict("index"),
        comparisons=len(found),
        found=found.get((best if outcome == "open" else chosen, "current")),
        rltune=found.get(("rltune", against)),
        learned=found.get(("rltune", facts["configuration"])),
        chose=" or ".join(
            dict.fromkeys(f"{full_title(r.policy, r.backfill)}, {r.placement}, {r.estimate}" for r in agents)
        ),
        max_wait=max_wait(facts["machine"]),
        groups=[
            {**row, "name": group_name(row, facts["machine"]), "current_s": current[row["grouping"], row["group"]]}
            for row in groups[groups["scheduler"] == chosen].to_dict("records")
        ],
        fewest=FEWEST,
        least_gain=worth,
        least_wait_s=least_wait_s,
        recorded=recorded,
        least_rank=LEAST_RANK,
    )
    lines = (line.partition(": ") for line in text.splitlines() if line.strip())
    return [(topic, sentence) for topic, _, sentence in lines]


def whatif_recommendation(sentences: list[tuple[str, str]], facts: Facts) -> Table:
    """The table `whatif-recommendation`: a row per sentence."""
    frame = pd.DataFrame(sentences, columns=["topic", "text"])
    return describe("whatif-recommendation", frame, rows=pd.DataFrame([facts]), facts=facts), frame


def whatif_numbers(
    totals: pd.DataFrame, ran: pd.DataFrame, recorded: pd.DataFrame, recorded_used: float, facts: Facts
) -> Table:
    """The table `whatif-numbers`: the log as recorded, then a row per scheduler.

    ``recorded``: the measured jobs as the log has them, ``wait_s`` missing where not recorded.
    """
    rules = ran.drop_duplicates("scheduler").set_index("scheduler")
    settings = {s: f"{full_title(r['policy'], r['backfill'])}, {r['estimate']}" for s, r in rules.iterrows()}
    first_h = totals["wait_h"].iloc[0]
    known = recorded.dropna(subset="wait_s").assign(scheduler=CURRENT, kind="recorded", seed=0)
    log = [sums(known, Intervals()).assign(scheduler="recorded", seeds=0)] if len(known) else []
    some = f" ({show(len(known), 'int')} of {show(len(recorded), 'int')} jobs)" if len(known) < len(recorded) else ""
    every = pd.concat([*log, totals], ignore_index=True)
    untested = every.assign(**{p: every[p].where(every["scheduler"] != BOUNDED) for p in TESTED})
    used = {"recorded": recorded_used} | ran.groupby("scheduler")["utilisation"].mean().to_dict()
    frame = with_holm(untested, TESTED).assign(
        title=every["scheduler"].map({"recorded": f"As recorded in the log{some}"} | names(ran)),
        utilisation=every["scheduler"].map(used),
        ran=every["scheduler"].map(settings).fillna(""),
        **{name: every[name.replace("_h", "_s")] / 3600 for name in WAITS},
        **{f"hours_less{end}": every[f"less_wait{end}"] * first_h for end in ("", "_low", "_high")},
        data=facts["data"],
    )
    return describe(
        "whatif-numbers",
        frame,
        facts=facts,
        unit=f"{facts['machine']} h",
        max_wait=max_wait(facts["machine"]),
        calibrated=ran["estimate"].astype(str).str.endswith("as calibrated").any(),
        holm=holm_note(frame, TESTED, "over the assumed policy"),
    ), frame


def whatif_steps(steps: pd.DataFrame, ran: pd.DataFrame, facts: Facts, worth: float) -> Table:
    """The table `whatif-steps`: the comparisons that the recommendation uses."""
    titles = {f"{side}_title": steps[side].map(names(ran)) for side in ("ours", "theirs")}
    frame = steps.assign(**titles, shows=steps["shows"].replace("open", "not significant"), data=facts["data"])
    return describe("whatif-steps", frame, least_gain=worth), frame


def whatif_groups(groups: pd.DataFrame, ran: pd.DataFrame, facts: Facts) -> Table:
    """The table `whatif-groups-numbers`: a row per group × scheduler."""
    frame = groups.assign(
        title=groups["scheduler"].map(names(ran)),
        name=[group_name(row, facts["machine"]) for row in groups.to_dict("records")],
        data=facts["data"],
        wait_h=groups["wait_s"] * groups["jobs"] / 3600,
        **{f"{name}_h{end}": groups[f"{of}{end}"] / 3600 for name, of, end in HOURS},
        shows=groups["shows"].replace("open", "not significant").where(groups["scheduler"] != "current", ""),
    )
    return describe("whatif-groups-numbers", frame), frame
