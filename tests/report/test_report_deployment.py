"""The deployment's tables and figures from made-up runs, with the paper's numbers and verdicts; and what a page lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rltune.config import load_run
from rltune.config.load import project_root
from rltune.evaluation.deployment import compare, fidelity, in_use, machinery, per_run
from rltune.evaluation.paired import Judge
from rltune.report import figures, tables
from rltune.report.artefact import load_artefacts, save_figure, save_table
from rltune.report.page import chapters, contents
from rltune.report.page.deployment import ALWAYS, DEPLOYMENT, made
from rltune.report.paper import load_paper
from rltune.report.tables.verdicts import verdicts

ROOT = project_root()
PAPER = load_paper(ROOT)
GPUS, N, JUDGE = 13, 80, Judge(bootstrap=300)
FACTS = {"trace": "Jobs", "cluster": "Deployment, 13 GPUs", "data": "synthetic", "gpus": GPUS, "jobs": N, "repetitions": 3,
         "hours": 2.2, "offered": 1.05, "accounts": 4}  # fmt: skip
CELL = pd.Series({"preset": "order", "estimate": "requested", "seed": 1})


def jobs(factors: dict[str, float]) -> pd.DataFrame:
    """Three repetitions of jobs that wait about twenty minutes times a factor under each scheduler."""
    frames = []
    for repetition in (1, 2, 3):
        rng = np.random.default_rng(repetition)
        at, wait, run_s = 100.0 * np.arange(N), rng.uniform(600, 1800, N), rng.uniform(300, 900, N)
        for scheduler, factor in factors.items():
            start = at + wait * factor
            frames.append(pd.DataFrame({
                "scheduler": scheduler, "repetition": repetition, "index": range(N), "asked_gpus": 1, "at_s": at,
                "submit_s": at, "start_s": start, "end_s": start + run_s, "run_s": run_s, "state": "COMPLETED",
            }))  # fmt: skip
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def there(tmp_path: Path) -> dict:
    """All artefacts of runs in which RLTune waits 0.7 times as long as Slurm, and SAF 0.8 times."""
    measured = jobs({"slurm": 1.0, "rltune": 0.7, "saf": 0.8})
    simulated = jobs({"slurm": 0.9, "rltune": 0.63, "saf": 0.72})
    runs, cycles = per_run(measured, GPUS), pd.DataFrame({
        "scheduler": "rltune", "repetition": [1, 2, 3], "took_s": 20.0, "ok": [True, True, False],
        "changed": [3.0, 4.0, np.nan],
    })  # fmt: skip
    facts = runs[["scheduler", "repetition"]].assign(speed=200.0, true_s=60.0, tries=[2, *[1] * 8])
    took = machinery(measured, cycles, facts)
    save_table(tmp_path, *tables.deployment_runs(runs, took, per_run(simulated, GPUS), FACTS, ""))
    compared = compare(measured, GPUS, 10, JUDGE)
    save_table(tmp_path, *tables.deployment_numbers(compared, runs, FACTS, CELL, PAPER, 10, 0.95, "yes"))
    save_table(tmp_path, *tables.deployment_fidelity(fidelity(measured, simulated, GPUS), FACTS))
    use = in_use(measured, GPUS, 600.0)
    for artefact, frame, figure in (figures.fig18(runs, FACTS, PAPER), figures.fig19(use, FACTS, PAPER)):
        save_figure(tmp_path, artefact, figure, frame)
    return load_artefacts(tmp_path)


def test_all_artefacts_are_made_in_the_chapter_of_the_paper(there: dict) -> None:
    assert set(there) == set(DEPLOYMENT)
    section = next(section for section in chapters.SECTIONS if section.where == "§5.6")
    assert [saved.artefact.id for saved in chapters.section_artefacts(section, there)] == list(DEPLOYMENT)
    shown = {entry.where: [name for name, _ in entry.ours] for entry in contents.coverage(PAPER, there)}
    assert set(shown["Figures 18 and 19"]) == {"fig18", "fig19", "deployment-numbers"}


def test_numbers_stand_beside_the_papers_with_a_verdict(there: dict) -> None:
    rows = there["deployment-numbers"].frame.set_index(["ours", "theirs", "measure"])
    wait = rows.loc[("rltune", "slurm", "wait")]
    assert wait["paper"] == 0.305 and wait["gain"] == pytest.approx(0.3) and wait["windows"] == 24
    assert wait["low"] == pytest.approx(0.3) and wait["verdict"] == "holds", "0.305 is outside an interval of no width"
    makespan = rows.loc[("rltune", "slurm", "makespan")]
    assert makespan["verdict"] == makespan["shows"] == "too few windows" and makespan["paper"] == 0.248
    over_rule = rows.loc[("rltune", "saf", "wait")]
    assert np.isnan(over_rule["paper"]) and over_rule["shows"] == "better"
    assert np.isnan(makespan["p_holm"]) and wait["p_holm"] < 0.1


def test_claims_of_the_paper_have_our_counterpart(there: dict) -> None:
    numbers = there["deployment-numbers"].frame
    _, without = verdicts({}, pd.DataFrame(), PAPER)
    _, frame = verdicts({}, pd.DataFrame(), PAPER, deployment=numbers)
    mine = frame[frame["key"].str.startswith("fig18: ")].set_index("key")
    assert len(mine) == 3 and set(mine["artefact"]) == {"deployment-numbers"} and len(frame) == len(without)
    wait = mine.loc["fig18: wait"]
    assert wait["verdict"] == "holds" and wait["where"] == "Section 5.6" and wait["data"] == "synthetic"
    assert numbers.loc[wait["row"], "measure"] == "wait" and numbers.loc[wait["row"], "theirs"] == "slurm"


def test_what_the_machinery_took_and_what_was_begun_anew_is_told(there: dict) -> None:
    saved = there["deployment-runs"]
    assert sorted(saved.frame["system"].value_counts().items()) == [("Slurm", 9), ("simulator", 9)]
    assert any(note.startswith("1 times a run was begun anew") for note in saved.artefact.notes)
    assert any("200 times as fast" in note for note in saved.artefact.notes)
    rltune = saved.frame[(saved.frame["scheduler"] == "rltune") & (saved.frame["system"] == "Slurm")]
    assert list(rltune["failed"]) == [0, 0, 1] and set(rltune["cycle_s"]) == {20.0}


def test_the_simulators_error_is_told(there: dict) -> None:
    frame = there["deployment-fidelity"].frame
    assert np.allclose(frame["wait_s_error"], -0.1) and np.allclose(frame["rank"], 1.0) and len(frame) == 9


def test_without_slurm_the_simulator_alone_and_what_to_install() -> None:
    none = pd.DataFrame()
    why, simulated = "9 of 9 … make slurm-deps does it.", per_run(jobs({"slurm": 1.0}), GPUS)
    artefact, frame = tables.deployment_runs(none, none, simulated, FACTS, why)
    assert set(frame["system"]) == {"simulator"} and why in artefact.notes
    assert "there is no run on a Slurm cluster" in artefact.caption and "late_s" not in artefact.columns


def test_a_page_says_why_it_has_no_deployment(there: dict) -> None:
    smoke = load_run("config/smoke.yaml", ROOT)
    assert made(smoke, True) == (["deployment-numbers", "deployment-runs", "deployment-fidelity"], ["fig18", "fig19"])
    assert made(smoke, False) == (list(ALWAYS), [])
    partly = {missing.id: missing.why for missing in contents.missing(smoke, {"deployment-runs": there["deployment-runs"]})}
    assert "no run on the Slurm cluster is there" in partly["fig18"] and "deployment-runs" not in partly
    other = load_run("config/transfer.yaml", ROOT)
    assert made(other, True) == ([], []) and "deployment" not in contents.chapters(other)
    assert "has no block `deployment`" in {m.id: m.why for m in contents.missing(other, {})}["fig19"]
