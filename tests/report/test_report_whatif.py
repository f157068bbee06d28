"""The recommendation in words, one made-up case each, and its tables and figures."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from report_fakes import load_artefacts
from report_fakes_traces import parsed

from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies.hours_waited import CURRENT, against_recorded, recommend, steps, totals
from rltune.report import artefacts, figures, tables
from rltune.report.artefact import save
from rltune.report.figures.whatif import COLOURS, RULES
from rltune.report.page import contents
from rltune.report.page.summary import whatif_sentences
from rltune.report.tables.whatif import sentences

INTERVALS = Intervals(bootstrap=300)
KINDS = {"current": "current", "saf-easy": "rule", "qssf": "qssf", "rltune": "rltune", "configuration": "configuration"}
RAN = parsed("""\
scheduler      kind           seed  policy       backfill      placement  estimate                 utilisation
current        current        0     multifactor_size  easy     best_fit   requested                0.7
saf-easy       rule           0     saf          easy          best_fit   requested                0.7
qssf           qssf           0     qssf         easy          best_fit   history-lightgbm         0.7
configuration  configuration  1     saf          conservative  best_fit   requested, as calibrated  0.7
rltune         rltune         1     saf          conservative  best_fit   requested                0.7
""")
FACTS = {"trace": "Mine", "cluster": "Mine", "data": "own", "machine": "GPU", "configuration": "configuration"}
FACTS |= {"warm_jobs": 100, "jobs": 200, "gpus": 64, "agents": 2, "idle": 0}
FACTS |= {"days": 20.0, "offered": 0.8, "used": 0.9, "limits": 0.9}
FACTS |= {"training_s": 120.0, "block_h": 24.0, "log_days": 41.0, "needed_days": 90}
FACTS |= {"from": "2024-01-01 00:00", "until": "2024-01-20 23:00"}


def jobs(factors: dict[str, float], blocks: int = 20, wait_s: float = 3600.0) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    block = np.repeat(np.arange(blocks), 10)
    base = wait_s * rng.uniform(0.5, 1.5, len(block))
    one = pd.DataFrame(
        {"block": block, "gpus": 1, "bsld": 1.0 + base / 100, "job_id": [f"j{i}" for i in range(len(block))]}
    )
    frames = []
    for name, kind in KINDS.items():
        factor = factors.get(name, 1.0) * (1.0 if name == CURRENT else rng.normal(1, 0.02, len(block)))
        frames.append(one.assign(scheduler=name, kind=kind, seed=int(kind == "rltune"), wait_s=base * factor))
    return pd.concat(frames, ignore_index=True)


def groups(worse: bool = False) -> pd.DataFrame:
    """Where it is worse, jobs of over 8 GPUs did not wait at all today."""
    share = np.nan if worse else 0.05
    less = {f"less_{of}{end}": value for of, value in (("wait", share), ("bsld", 0.0)) for end in ("", "_low", "_high")}
    rows = []
    for grouping, group in (("user", "heavy"), ("size", "over 8")):
        for name in KINDS:
            hit = worse and group == "over 8" and name != CURRENT
            more = (3600.0, 3000.0, 4200.0, 0.01, "longer") if hit else (0.0, -5.0, 5.0, 0.9, "open")
            row = dict(zip(("more_s", "more_s_low", "more_s_high", "more_s_holm", "shows"), more))
            wait_s = 3600.0 if hit or not worse else 0.0
            about = {"grouping": grouping, "group": group, "scheduler": name, "jobs": 50, "wait_s": wait_s, "bsld": 2.0}
            rows.append(about | less | row)
    return pd.DataFrame(rows)


NOTHING = pd.DataFrame({"job_id": [], "wait_s": []})


def filled(
    frame: pd.DataFrame, ran: pd.DataFrame, log: pd.DataFrame, facts: dict, worse: bool = False
) -> dict[str, str]:
    """Topic → what is said of these jobs."""
    found, compared = totals(frame, INTERVALS), steps(frame, INTERVALS)
    advice, real = recommend(found, compared, 0.05, facts["used"]), against_recorded(frame, log)
    return dict(sentences(asdict(advice), found, compared, ran, groups(worse), real, facts, 0.05, 60.0))


def advised(
    factors: dict[str, float],
    ran: pd.DataFrame = RAN,
    worse: bool = False,
    recorded: float = 1.0,
    facts: dict[str, object] | None = None,
    shuffled: bool = False,
    **how: object,
) -> dict[str, str]:
    frame = jobs(factors, **how)  # type: ignore[arg-type]
    log = frame[frame["scheduler"] == CURRENT][["job_id", "wait_s"]]
    log = log.assign(wait_s=np.roll(log["wait_s"], 7 if shuffled else 0) * recorded)
    return filled(frame, ran, log, FACTS | (facts or {}), worse)


@pytest.mark.parametrize(
    ("factors", "recommended", "of_rltune"),
    [
        (
            {},
            "No change: over the log’s last 20.0 days (200 jobs) no scheduler",
            "adds nothing measurable over the assumed Slurm multifactor, equal weights",
        ),
        (
            {"saf-easy": 0.97},
            "No change: over the log’s last 20.0 days (200 jobs) SAF + EASY, which has the fewest hours of those tried, does not",
            "adds nothing measurable over the assumed Slurm multifactor, equal weights",
        ),
        (
            {"saf-easy": 0.7, "rltune": 0.7},
            "Switch to SAF + EASY (smallest area first; backfilling with a planned start for the first job): ",
            "adds nothing measurable over SAF + EASY",
        ),
        ({"saf-easy": 0.7, "rltune": 0.68}, "Switch to SAF + EASY (", "less than the 5.0\u00a0% that justify a change"),
        ({"saf-easy": 0.7, "rltune": 0.9}, "Switch to SAF + EASY (", "RLTune is worse than SAF + EASY"),
        (
            {"saf-easy": 0.7, "qssf": 0.6, "rltune": 0.7},
            "Switch to QSSF + EASY, smallest area first with run times predicted",
            "worse than QSSF",
        ),
        ({"saf-easy": 0.7, "qssf": 0.8, "rltune": 0.5}, "Use RLTune: ", "fewer hours (interval of the saving"),
    ],
    ids=["none better", "keep", "rule", "not worth it", "worse", "qssf", "rltune"],
)
def test_every_outcome_has_its_words(factors, recommended, of_rltune):
    said = advised(factors)
    assert said["Recommendation"].startswith(recommended), said
    assert of_rltune in said["RLTune"] and "rollouts and updates took 120 s" in said["RLTune"], said
    assert ("not recommended" in said["RLTune"]) == (not recommended.startswith("Use RLTune"))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"facts": {"used": 1.5}}, "No verdict"),
        ({"blocks": 4}, "Too few days for a verdict: the last part has 4 days of arrivals"),
        ({"blocks": 1, "facts": {"block_h": 6.0}}, "1 block of 6.00 h of"),
        ({"wait_s": 10.0}, "below the 60.0 s"),
    ],
)
def test_without_a_verdict_nothing_is_said_of_rltune(how, said):
    found = advised({"saf-easy": 0.5, "rltune": 0.1}, **how)
    assert said in found["Recommendation"] and "RLTune" not in found and "Who would wait longer" not in found


def test_undecided_says_why_and_compares_rltune_with_the_best_rule():
    frame = jobs({"saf-easy": 0.75}, blocks=9)
    wild = np.random.default_rng(1).choice([0.1, 3.0], 9, p=[0.75, 0.25])
    for name, factor in (("saf-easy", 1.0), ("rltune", 0.74)):
        rows = frame["scheduler"] == name
        frame.loc[rows, "wait_s"] *= factor * wild[frame.loc[rows, "block"]]
    said = filled(frame, RAN, NOTHING, FACTS)
    assert said["Recommendation"].startswith("Undecided: ") and "the interval includes zero" in said["Recommendation"]
    assert "SAF + EASY" in said["RLTune"] and "assumed" not in said["RLTune"], said
    sure = advised({"saf-easy": 0.953, "rltune": 1.0})["Recommendation"]
    assert sure.startswith("Undecided: ") and "but it is not shown to be the 5.0\u00a0% that justify a change" in sure


@pytest.mark.parametrize(
    ("policy", "backfill", "said"),
    [
        ("saf", "easy", "slurm.conf has no setting for this order"),
        (
            "fifo",
            "easy",
            "PriorityType=priority/basic; SchedulerType=sched/backfill and SchedulerParameters=bf_job_part",
        ),
        ("multifactor_size", "none", "sched/builtin"),
        ("multifactor_size", "conservative", "bf_continue,bf_max_job_test=JOBS,bf_window=MINUTES"),
        ("multifactor_size", "greedy", "slurm.conf has no setting for this backfilling."),
    ],
)
def test_it_says_how_slurm_is_set_or_that_it_cannot_be(policy, backfill, said):
    ran = RAN.copy()
    ran.loc[ran["scheduler"] == "saf-easy", ["policy", "backfill"]] = policy, backfill
    assert said in advised({"saf-easy": 0.7}, ran)["In Slurm"]
    assert "In Slurm" not in advised({}, ran)


def test_maximum_waits_are_shown_and_never_recommended():
    """Even where they have the fewest hours; and they are in nobody's family of comparisons."""
    bounded = RAN[RAN["kind"] == "rltune"].assign(scheduler="bounded", kind="bounded")
    frame = jobs({"rltune": 0.7})
    more = frame[frame["scheduler"] == "rltune"].assign(scheduler="bounded", kind="bounded")
    frame = pd.concat([frame, more.assign(wait_s=more["wait_s"] * 0.5)], ignore_index=True)
    found, compared = totals(frame, INTERVALS), steps(frame, INTERVALS)
    assert "bounded" not in {*compared["ours"], *compared["theirs"]}
    ran = pd.concat([RAN, bounded], ignore_index=True)
    said = filled(frame, ran, NOTHING, FACTS)
    assert said["Recommendation"].startswith("Use RLTune: ")
    assert "24 h up to 1 GPU, 72 h up to 8 GPUs, 168 h for larger jobs" in said["Maximum waits"]
    _, table = tables.whatif_numbers(found, ran, frame.iloc[:0].assign(wait_s=np.nan), 0.6, FACTS)
    row = table.set_index("scheduler").loc["bounded"]
    assert row["less_wait"] > 0.5 and np.isnan(row["less_wait_holm"])


def test_on_a_cluster_of_cpus_no_gpu_hours_are_waited():
    frame = jobs({"saf-easy": 0.7})
    log = frame.iloc[:0].assign(wait_s=np.nan)
    artefact, _ = tables.whatif_numbers(totals(frame, INTERVALS), RAN, log, 0.6, FACTS | {"machine": "CPU"})
    assert "the CPU-hours waited (CPUs × wait)" in artefact.caption
    assert {artefact.columns[name].heading for name in ("gpu_h", "less_gpu")} == {"CPU-hours waited"}


def test_it_says_who_would_wait_longer():
    assert advised({"saf-easy": 0.7})["Who would wait longer"].startswith("No group")
    said = advised({"saf-easy": 0.7}, worse=True)["Who would wait longer"]
    assert "jobs of over 8 GPUs, 1.00 h instead of 0 h" in said


def test_on_a_cluster_of_processors_sizes_are_in_cpus():
    said = advised({"saf-easy": 0.7}, worse=True, facts={"machine": "CPU"})
    assert "jobs of over 8 CPUs, 1.00 h" in said["Who would wait longer"]
    assert "goes by CPUs and time limits" in said["In Slurm"] and not any("GPU" in text for text in said.values()), said
    assert (
        tables.whatif_groups(groups(), RAN, FACTS | {"machine": "CPU"})[1]["name"]
        .isin(["heavy users", "jobs of over 8 CPUs"])
        .all()
    )


def test_it_says_what_the_network_adds_to_the_configuration_it_chose():
    """A network that adds nothing to the better configuration gets no credit; the configuration is recommended alone."""
    said = advised({"saf-easy": 0.9, "qssf": 0.9, "configuration": 0.5, "rltune": 0.5})
    assert said["Recommendation"].startswith(
        "Use RLTune’s configuration, no network: SAF + conservative, best_fit, requested, as calibrated"
    )
    assert "adds nothing measurable over RLTune’s configuration, no network" in said["What it learned"]
    assert "not recommended" in said["RLTune"] and "kept nothing" not in said["What it learned"]
    rules = RAN[RAN["kind"] != "configuration"]
    same = advised({"saf-easy": 0.7, "rltune": 0.9}, rules, facts={"configuration": "saf-easy"})["What it learned"]
    assert (
        same.startswith("The network does harm") and "SAF + EASY, which is its configuration without a network" in same
    )


def test_all_waiting_on_one_day_is_said_to_be_too_little():
    frame = jobs({"saf-easy": 0.5}, wait_s=36_000.0)
    frame.loc[frame["block"] != 5, "wait_s"] = 0.0
    said = filled(frame, RAN, NOTHING, FACTS)
    assert "% fewer hours, but jobs wait on too few of these days" in said["Recommendation"].replace("\u00a0", " ")
    assert "interval includes" not in said["Recommendation"] + said["RLTune"]


def test_a_simulation_far_from_the_log_stands_in_the_recommendation():
    near, orders, hours = (advised({"saf-easy": 0.7}, **how) for how in ({}, {"shuffled": True}, {"recorded": 0.3}))
    warning = "do not rely on this: the simulation of the assumed policy does not match the log"
    assert "does not match the log" not in near["Recommendation"]
    assert "different jobs wait (rank correlation" in orders["Recommendation"] and warning in orders["Recommendation"]
    assert "far off" in orders["Simulated and recorded"], "hours alone are as recorded"
    assert "it has 3.33 times the hours" in hours["Recommendation"] and warning in hours["Recommendation"]
    nothing, idle = (advised({}, recorded=recorded)["Simulated and recorded"] for recorded in (np.nan, 0.0))
    assert "has no waits" in nothing and "has no waiting at all" in idle


def test_tables_and_figures_are_saved_and_shown_on_the_page(tmp_path):
    frame = jobs({"saf-easy": 0.7})
    found, compared = totals(frame, INTERVALS), steps(frame, INTERVALS)
    log = frame[frame["scheduler"] == CURRENT][["job_id", "block", "gpus", "wait_s", "bsld"]]
    days = frame.groupby(["scheduler", "block"], sort=False)["wait_s"].sum().div(3600).reset_index(name="wait_h")
    numbers = tables.whatif_numbers(found, RAN, log, 0.6, FACTS)
    who = tables.whatif_groups(groups(), RAN, FACTS)
    at = "2024-01-" + (days["block"] + 1).astype(str).str.zfill(2) + " 00:00"
    for made in (
        numbers,
        who,
        tables.whatif_steps(compared, RAN, FACTS, 0.05),
        tables.whatif_recommendation(list(advised({"saf-easy": 0.7}).items()), FACTS),
        figures.whatif(numbers[1], FACTS),
        figures.whatif_groups(who[1]),
        figures.whatif_days(days.assign(at=at), RAN, FACTS),
    ):
        save(tmp_path, *made)
    there = load_artefacts(tmp_path)
    assert set(there) == {entry.id for entry in artefacts.chapters()["whatif"].entries}
    first = there["whatif-numbers"].frame.iloc[0]
    assert first["kind"] == "recorded" and first["wait_h"] == pytest.approx(log["wait_s"].sum() / 3600)
    assert first["title"] == "As recorded in the log"
    partly = tables.whatif_numbers(
        found, RAN, log.assign(wait_s=log["wait_s"].where(log.index > log.index[9])), 0.6, FACTS
    )
    assert partly[1]["title"].iloc[0] == f"As recorded in the log ({len(log) - 10} of {len(log)} jobs)"
    saved = there["whatif-numbers"].frame.set_index("scheduler").loc["saf-easy"]
    assert saved["hours_less"] == pytest.approx(found["wait_h"][0] - found["wait_h"][1])
    assert saved["hours_less_low"] < saved["hours_less"] < saved["hours_less_high"]
    assert "Switch to SAF + EASY" in whatif_sentences(there)["Recommendation"]


def test_a_page_about_a_users_cluster_has_the_replay_and_nothing_of_the_paper():
    names = ["claims", "fig12-numbers", "fig11", "table4", "whatif", "table5", "costs", "latency", "gpu-types"]
    found = contents.for_an_operator({name: name for name in names})  # type: ignore[misc]
    assert [(chapter.id, shown) for chapter, shown in found] == [
        ("whatif", ["whatif"]),
        ("agent", ["fig11", "costs"]),
        ("types", ["gpu-types"]),
        ("log", ["table4"]),
    ]


def test_no_rule_has_the_colour_of_a_scheduler_that_always_has_the_same():
    fixed = {colour for kind, colour in COLOURS.items() if kind != "rule"}
    assert len(set(RULES)) == len(RULES) and not fixed & set(RULES)
