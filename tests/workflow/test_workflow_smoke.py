"""A whole run of the workflow: complete, confined to its folder, not repeated without need."""

import json
import re
from collections import Counter

import page_checks
import pandas as pd
import pytest

from rltune.agent.policy_file import load_policy
from rltune.files import read_json
from rltune.report import artefacts
from rltune.slurm.emulate.packages import missing
from rltune.traces.audit import Audit
from rltune.traces.table import read_table

HAS_SLURM = not missing(accounting=True, speed=400.0)
"""Where Slurm's packages are absent, the deployment's runs are left out, and what shows them."""
CHAPTERS = "characterise system figures ablation scheduling_rules transfer peers gpu_types whatif deployment".split()


def planned(text: str) -> Counter[str]:
    """The rules of a dry run's jobs, by what their messages begin with."""
    names = re.findall(r"^would run: (.+?)(?:: .+)?$", text, re.MULTILINE)
    short = [re.match(r"(clean|fit|run-time|heuristics|train|evaluate|deploy|the agents) ", name) for name in names]
    return Counter(m[1] if m else name for m, name in zip(short, names, strict=True) if name != "all")


def test_it_says_how_long_it_takes_what_is_done_and_where_the_report_is(smoke_run):
    assert "Traceback" not in smoke_run.outcome.out + smoke_run.outcome.err
    lines = smoke_run.outcome.err.splitlines()
    count = 31 if HAS_SLURM else 30
    assert any(re.fullmatch(rf"{count} jobs, about .+", line) for line in lines), lines
    assert sum(line.startswith("done: ") for line in lines) == count
    assert lines[-1] == f"report: {smoke_run.run.config.results}/report/index.html"
    assert (smoke_run.report / "index.html").is_file()


def test_the_home_folder_is_left_alone(smoke_run, shell):
    assert [p for p in shell.home.rglob("*") if p.is_file()] == []


def test_every_file_is_there_and_holds_what_its_name_says(smoke_run):
    run, results = smoke_run.run, smoke_run.results
    for trace in run.traces:
        jobs, meta = read_table(results / "traces" / trace / "jobs.parquet")
        audit = Audit(**read_json(results / "traces" / trace / "audit.json"))
        audit.check()
        assert len(jobs) == audit.rows_kept and meta.name == trace
    for workload in run.config.all_workloads():
        folder = results / "workloads" / f"{workload.trace}__{workload.cluster}"
        fitted = pd.read_parquet(folder / "jobs.parquet")
        audit = Audit(**read_json(folder / "audit.json"))
        audit.check()
        assert len(fitted) == audit.rows_kept
        estimates = pd.read_parquet(folder / "estimate-lognormal-1.parquet")
        assert list(estimates["job_id"]) == list(fitted["job_id"]) and (estimates["estimate_s"] >= 1).all()
    for cell in run.config.cells():
        folder = results / "cells" / cell.name
        assert load_policy(folder / "policy.npz").facts["cell"]["trace"] == cell.trace
        assert len(pd.read_csv(folder / "history.csv")) == run.config.preset(cell.preset).epochs
        windows = pd.read_csv(folder / "windows.csv")
        assert {"rltune", "base", "baseline", "rltune_also", "base_also"} <= set(windows["role"])
        assert not windows["wait_s"].isna().any() and len(pd.read_parquet(folder / "jobs.parquet"))


def test_both_placement_solvers_agree(smoke_run):
    frames = [pd.read_csv(path) for path in smoke_run.cells("placements.csv") if path.stat().st_size > 1]
    answers = pd.concat(frames)
    assert len(answers) and answers["agree"].all()


def test_every_artefact_has_its_data_and_is_on_the_page(smoke_run):
    names = [name for stage in CHAPTERS for name in artefacts.of(smoke_run.run.config, stage)]
    if not HAS_SLURM:
        names = [name for name in names if not name.startswith(("deployment-", "fig18", "fig19"))] + ["deployment-runs"]
    assert {p.stem for p in smoke_run.artefacts.glob("*.json")} == set(names)
    for name in names:
        assert len(pd.read_csv(smoke_run.artefacts / f"{name}.csv"))
    files = [file for stage in CHAPTERS for file in artefacts.files(smoke_run.run.config, stage)]
    assert all((smoke_run.artefacts / file).stat().st_size for file in files if file.partition(".")[0] in names)
    page = (smoke_run.report / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'\bid="([^"]+)"', page)) >= set(names)


def test_the_notebooks_were_executed_and_are_pages_of_the_report(smoke_run):
    assert not [p for p in smoke_run.results.rglob(".*")], "nothing half-written is left"
    executed = sorted((smoke_run.results / "notebooks").glob("*.ipynb"))
    assert len(executed) == 2 * 3 + 2 * 2 + len(CHAPTERS)  # cells, traces
    for path in executed:
        code = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
        assert all(c["execution_count"] for c in code), path.name
        page = (smoke_run.report / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?:', page), path.name


def test_a_second_run_does_nothing(smoke_run, shell):
    before = {p: p.stat().st_mtime_ns for p in smoke_run.results.rglob("*")}
    outcome = shell.make("smoke", "CORES=2", cwd=smoke_run.root)
    assert outcome.status == 0 and "done: " not in outcome.err, outcome
    assert {p: p.stat().st_mtime_ns for p in smoke_run.results.rglob("*")} == before


AFTER = {"what scheduling rules do, and who pays", "agents on other base policies, traces and estimates"}
AFTER |= {"RLTune next to other learners and predictors", "tables and figures", "naive against pro", "report"}
"""What depends on the results of every agent."""
FIRST = {"your cluster, what if", "on a Slurm cluster"}
"""… and on those of the first one."""
TYPES = {"which GPU, now or later"}
"""What compares rules alone."""
NETWORKS = {"the system, and why the order of a queue matters"}
"""What shows the presets' networks."""


@pytest.mark.parametrize(
    ("old", "new", "counted", "others"),
    [
        ("epochs: 3", "epochs: 4", {"train": 3, "evaluate": 3, "the agents": 2}, AFTER | FIRST | NETWORKS),
        ("{placement: best_fit}, ", "", {"evaluate": 3, "the agents": 2}, AFTER),
        ("bootstrap: 200", "bootstrap: 300", {"evaluate": 3, "the agents": 2}, AFTER | FIRST | TYPES),
        ("whatif: {}", "whatif: {others: [{policy: fifo}]}", {}, {"your cluster, what if", "report"}),
        ("title: RLTune, smoke run", "title: Another", {}, {"report"}),
    ],
    ids=["budget", "also", "evaluation", "whatif", "title"],
)
def test_a_change_makes_again_what_depends_on_it(old, new, counted, others, smoke_run, shell):
    config = smoke_run.root / "config" / "smoke.yaml"
    text = config.read_text()
    assert text.count(old) == 1
    try:
        config.write_text(text.replace(old, new))
        outcome = shell.make("smoke", "ARGS=-n", cwd=smoke_run.root)
    finally:
        config.write_text(text)
    assert outcome.status == 0, outcome
    found = planned(outcome.err)
    assert {name: n for name, n in found.items() if name not in others and name != "deploy"} == counted
    assert others <= found.keys()


STAGES = [("characterise", "what the traces look like", {"report"}), ("train CELL={id} ONLY=1", "train", set())]


@pytest.mark.parametrize(("asked", "first", "then"), STAGES)
def test_one_stage_again(asked, first, then, smoke_run, shell):
    given = f"STAGE={asked}".format(id=smoke_run.run.config.cells()[0].hash).split()
    outcome = shell.make("notebook", *given, "ARGS=-n", "CONFIG=config/smoke.yaml", cwd=smoke_run.root)
    assert outcome.status == 0, outcome
    assert planned(outcome.err) == Counter({first: 1}) + Counter(then)


def test_a_stage_that_is_not_there_is_answered_with_what_there_is(smoke_run, shell):
    outcome = shell.make("notebook", "STAGE=trian", "CONFIG=config/smoke.yaml", cwd=smoke_run.root)
    assert outcome.status and "expected one of: ablation, characterise" in outcome.err


@pytest.mark.parametrize("check", page_checks.CHECKS)
def test_the_report_in_a_browser(smoke_run, browser, check):
    check(browser, (smoke_run.report / "index.html").resolve())
