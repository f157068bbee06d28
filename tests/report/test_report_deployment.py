"""The deployment's tables and figures from made-up runs, with the paper's numbers and verdicts; and what a page lacks."""

import numpy as np
import pandas as pd
import pytest
from report_fakes import load_artefacts
from report_runs import PAPER

from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies.deployment import by_class, compare, in_use, paired_runs, per_run
from rltune.evaluation.studies.deployment_machinery import machinery
from rltune.evaluation.studies.deployment_simulated import fidelity, predicted
from rltune.report import figures, tables
from rltune.report.artefact import Artefact, save
from rltune.report.figures.deployment import COLOURS
from rltune.report.tables.deployment import pair_sentences, switch_advice
from rltune.report.verdict import TOO_FEW

GPUS, N, INTERVALS = 13, 80, Intervals(bootstrap=300)
FACTS = {"trace": "Jobs", "cluster": "Deployment, 13 GPUs", "data": "synthetic", "gpus": GPUS, "jobs": N}
FACTS |= {"repetitions": 3, "hours": 2.2, "offered": 1.05, "accounts": 4}
CELL = pd.Series({"preset": "order", "estimate": "requested", "seed": 1})


def jobs(factors: dict[str, float]) -> pd.DataFrame:
    """Three repetitions of jobs that wait about twenty minutes times a factor under each scheduler."""
    frames, index = [], np.arange(N)
    for repetition in (1, 2, 3):
        rng = np.random.default_rng(repetition)
        at, wait, run_s = 100.0 * index, rng.uniform(600, 1800, N), rng.uniform(300, 900, N)
        one = pd.DataFrame({"repetition": repetition, "index": index, "state": "COMPLETED"})
        one = one.assign(
            asked_gpus=1 + index % 2, qos=np.where(index % 4, "low", "high"), partition="all", at_s=at, submit_s=at
        )
        for scheduler, factor in factors.items():
            start = at + wait * factor
            times = {"start_s": start, "end_s": start + run_s, "run_s": run_s, "lasts_s": run_s}
            frames.append(one.assign(scheduler=scheduler, **times))
    return pd.concat(frames, ignore_index=True)


def in_simulator(factors: dict[str, float]) -> pd.DataFrame:
    """The same with EASY; with conservative backfilling all wait as long as under Slurm's order."""
    slow = jobs(dict.fromkeys(factors, factors["slurm"])).assign(backfill="conservative")
    return pd.concat([jobs(factors).assign(backfill="easy"), slow])


def taken(measured: pd.DataFrame, cycle_s: float, **facts: object) -> pd.DataFrame:
    """The overheads of runs whose records are complete but for ``facts``."""
    runs = per_run(measured, GPUS)[["scheduler", "repetition"]]
    cycles = pd.DataFrame({"repetition": [1, 2, 3], "ok": [True, True, False], "changed": [3.0, 4.0, np.nan]})
    cycles = cycles.assign(scheduler="rltune", began_s=0.0, took_s=cycle_s)
    policy = ["a9e47" * 5 if s == "rltune" else None for s in runs["scheduler"]]
    first = np.arange(len(runs)) == 0
    retries = [["slurmctld ended"] if one else [] for one in first]
    recorded = {"tries": 1 + first, "retries": retries, "resumed": [[]] * len(runs), "code": "c0de" * 8}
    recorded |= {"policy": policy, **facts}
    return machinery(measured, cycles, runs.assign(speed=200.0, true_s=60.0, drift_s=0.4, **recorded))


def numbers(measured: pd.DataFrame, took: pd.DataFrame) -> tuple[Artefact, pd.DataFrame]:
    """The table of numbers."""
    compared, paired = compare(measured, GPUS, 10, INTERVALS), paired_runs(measured, GPUS)
    return tables.deployment_numbers(compared, paired, took, FACTS, CELL, PAPER, 10, "yes")


def repeated(times: int, factor: float = 0.7) -> pd.DataFrame:
    """So many repetitions in which RLTune waits about ``factor`` times as long as Slurm."""
    three = jobs({"slurm": 1.0, "rltune": factor})
    return pd.concat([three.assign(repetition=three["repetition"] + 3 * k) for k in range(times // 3)])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """All artefacts of runs in which RLTune waits 0.7 times as long as Slurm, and SAF 0.8 times."""
    measured = jobs({"slurm": 1.0, "rltune": 0.7, "saf": 0.8})
    simulated = in_simulator({"slurm": 0.9, "rltune": 0.63, "saf": 0.72})
    runs, took = per_run(measured, GPUS), taken(measured, 20.0)
    folder = tmp_path_factory.mktemp("artefacts")
    for made in (
        tables.deployment_runs(runs, per_run(simulated, GPUS), FACTS, ""),
        tables.deployment_classes(by_class(measured), FACTS),
        tables.deployment_machinery(took, FACTS),
        numbers(measured, took),
        tables.deployment_fidelity(fidelity(measured, simulated, GPUS), FACTS),
        tables.deployment_predicted(predicted(measured, simulated, GPUS), FACTS),
        figures.fig18(runs, paired_runs(measured, GPUS), FACTS, PAPER),
        figures.fig19(in_use(measured, GPUS, 600.0), FACTS, PAPER),
    ):
        save(folder, *made)
    return load_artefacts(folder)


def test_three_repetitions_have_an_interval_and_no_verdict(saved):
    rows = saved["deployment-numbers"].frame.set_index(["ours", "theirs", "measure"])
    wait = rows.loc[("rltune", "slurm", "wait")]
    assert wait["paper"] == 0.305 and wait["gain"] == pytest.approx(0.3) and wait["windows"] == 3
    assert wait["verdict"] == wait["shows"] == TOO_FEW and wait["low"] == pytest.approx(0.3)
    assert wait["blocks"] == 24 and wait["block_low"] == pytest.approx(0.3)
    makespan = rows.loc[("rltune", "slurm", "makespan")]
    assert makespan["verdict"] == makespan["shows"] == TOO_FEW and makespan["paper"] == 0.248
    assert np.isnan(rows.loc[("rltune", "saf", "wait"), "paper"]) and rows["p_holm"].isna().all()
    notes = " ".join(saved["deployment-numbers"].artefact.notes)
    assert "3 repetitions, one agent (training seed 1), one run of each" in notes
    assert "p_holm" not in saved["deployment-numbers"].artefact.columns


def test_who_waits_by_qos_partition_and_gpus(saved):
    table = saved["deployment-classes"]
    assert list(zip(table.frame["by_title"], table.frame["name"], table.frame["jobs"])) == [
        *(("QOS", "low", 180), ("QOS", "high", 60), ("partition", "all", 240), ("GPUs", "1", 120), ("GPUs", "2", 120))
    ]
    assert np.allclose(table.frame["wait_rltune_h"], 0.7 * table.frame["wait_slurm_h"])
    heads = [spec.heading for spec in table.artefact.columns.values()]
    assert [heads.count(name) for name in ("Slurm", "RLTune", "SAF")] == [2, 2, 2]
    notes = " ".join(table.artefact.notes).replace("\u00a0", " ")
    assert "20 % low (factor 0.0), 60 % medium (factor 0.5)" in notes


def test_whether_to_switch_it_on_follows_the_interval_and_the_longest_wait(saved):
    few = saved["deployment-numbers"].artefact.notes[0]
    assert few.startswith("Switch the controller “RLTune” on? Too few repetitions to say: jobs complete ")
    said = {}
    for factor in (0.7, 1.4, 1.0):
        many = repeated(9, factor)
        said[factor] = switch_advice(compare(many, GPUS, 10, INTERVALS), paired_runs(many, GPUS))
    assert "on? Yes: jobs complete" in said[0.7] and "% sooner)" in said[0.7]
    assert "on? No: jobs complete" in said[1.4] and "% later)" in said[1.4]
    assert "on? Not on this evidence: " in said[1.0]
    late = repeated(9)
    late.loc[(late["scheduler"] == "rltune") & (late["index"] == 0), ["start_s", "end_s"]] += 5000.0
    said = switch_advice(compare(late, GPUS, 10, INTERVALS), paired_runs(late, GPUS))
    assert "Not on this evidence" in said and said.count(". ") == 2, "three sentences"
    at_once = repeated(9)
    mine = (at_once["scheduler"] == "slurm") & (at_once["repetition"] == 1)
    at_once.loc[mine, "start_s"] = at_once.loc[mine, "submit_s"]
    said = switch_advice(compare(at_once, GPUS, 10, INTERVALS), paired_runs(at_once, GPUS))
    assert "Not on this evidence" in said and "jobs wait only under the controller" in said and "inf" not in said


def test_enough_repetitions_get_a_verdict_unless_cycles_were_too_long():
    measured = repeated(9)
    artefact, frame = numbers(measured, taken(measured, 20.0))
    wait = frame.set_index("measure").loc["wait"]
    assert (wait["verdict"], wait["shows"]) == ("holds", "better") and wait["p_holm"] < 0.1
    assert "on? Yes: jobs complete" in artefact.notes[0]
    artefact, frame = numbers(measured, taken(measured, 31.0))
    assert set(frame["shows"]) == {"cycles too long"} and frame["p_holm"].isna().all()
    assert set(frame["verdict"]) == {"cycles too long", ""}, "none where the paper has no figure"
    assert any("RLTune 31.0 s in the slowest" in note for note in artefact.notes)
    assert "on? Not on this evidence: its cycles take too long. Jobs complete " in artefact.notes[0]


def test_schedulers_have_colours_of_their_own():
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_which_sizes_wait_longer_is_said_in_words():
    """Jobs of one GPU wait half as long, those of two twice as long: the sign and the words follow the numbers."""
    measured = jobs({"slurm": 1.0, "rltune": 1.0})
    factor = measured["asked_gpus"].map({1: 0.5, 2: 2.0}).where(measured["scheduler"] == "rltune", 1.0)
    longer = (measured["start_s"] - measured["submit_s"]) * (factor - 1)
    measured[["start_s", "end_s"]] = measured[["start_s", "end_s"]].add(longer, axis=0)
    (one,) = pair_sentences(paired_runs(measured, GPUS))
    assert one.startswith("RLTune against Slurm, 3 repetitions: mean wait ") and "% longer (jobs" in one
    assert "1 GPU: 50.0" in one and "2 GPUs: 100.0" in one
    assert one.index("shorter") < one.index("2 GPUs") and "utilisation" in one


def test_claims_of_the_paper_have_our_counterpart(saved):
    numbers = saved["deployment-numbers"].frame
    _, without = tables.claims({}, pd.DataFrame(), PAPER)
    _, frame = tables.claims({"deployment-numbers": numbers}, pd.DataFrame(), PAPER)
    claims = frame[frame["key"].str.startswith("fig18: ")].set_index("key")
    assert len(claims) == 3 and set(claims["artefact"]) == {"deployment-numbers"} and len(frame) == len(without)
    wait = claims.loc["fig18: wait"]
    assert wait["verdict"] == TOO_FEW and wait["where"] == "Section 5.6" and wait["data"] == "synthetic"
    assert numbers.loc[wait["row"], "measure"] == "wait" and numbers.loc[wait["row"], "theirs"] == "slurm"


def test_what_was_restarted_and_why_is_reported(saved):
    notes = saved["deployment-machinery"].artefact.notes
    assert "200 times as fast" in notes[0]
    assert "Slurm 1 was restarted, and the earlier attempt does not count: slurmctld ended." in notes
    assert not any(word in note for note in notes for word in ("different versions", "resumed"))


def test_runs_of_different_code_or_agents_are_reported():
    measured = jobs({"slurm": 1.0, "rltune": 0.7})
    resumed, policy = [["k80-1"], [], ["m40-1", "m40-1"], [], [], []], [None, "p1", None, "p2", None, None]
    code = ["aaaaaaaa1", "bbbbbbbb1", *["aaaaaaaa1"] * 4]
    mixed = taken(measured, 20.0, code=code, resumed=resumed, policy=policy)
    artefact, frame = tables.deployment_machinery(mixed, FACTS)
    notes = " ".join(artefact.notes)
    names = [f"{'Slurm' if s == 'slurm' else 'RLTune'} {k}" for s, k in zip(mixed["scheduler"], mixed["repetition"])]
    said = [f"resumed 3 times ({names[0]}: 1, {names[2]}: 2)", f"bbbbbbbb: {names[1]}"]
    said += [f"different versions of {what}" for what in ("the code", "the agent’s weights")]
    assert not [text for text in said if text not in notes], notes
    assert list(frame["tries"]) == [2, *[1] * 5] and frame["code_short"][2] == "aaaaaaaa"


def test_the_simulators_error_and_what_it_predicts_are_reported(saved):
    frame = saved["deployment-fidelity"].frame
    assert np.allclose(frame["wait_s_easy_error"], -0.1) and np.allclose(frame["rank_easy"], 1.0) and len(frame) == 9
    rows = saved["deployment-predicted"].frame.set_index(["ours", "theirs", "measure"])
    wait = rows.loc[("rltune", "slurm", "wait")]
    assert wait[["gain", "gain_easy", "gain_conservative"]].tolist() == pytest.approx([0.3, 0.3, 0.0])
    assert (wait["agrees_easy"], wait["agrees_conservative"]) == ("yes", "no")
    said = "Of 6 comparisons the simulator predicts the direction of 6 with EASY and of 0 with conservative"
    assert said in saved["deployment-predicted"].artefact.caption


def test_without_slurm_the_simulator_alone_and_what_to_install():
    none = pd.DataFrame()
    why, simulated = "9 of 9 … apt-get install …", per_run(in_simulator({"slurm": 1.0}), GPUS)
    artefact, frame = tables.deployment_runs(none, simulated, FACTS, why)
    assert set(frame["system"]) == {"simulator"} and why in artefact.notes
    assert "there is no run on a Slurm cluster" in artefact.caption
