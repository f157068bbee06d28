"""A whole run of the workflow: complete, confined to its folder, not repeated without need."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import page_checks
import pandas as pd
import pytest

from rltune.agent.policy_file import load_policy
from rltune.files import read_json
from rltune.report.page.contents import CHAPTERS
from rltune.report.page.deployment import ALWAYS, DEPLOYMENT
from rltune.slurm.emulate.packages import missing, needed
from rltune.traces.audit import Audit
from rltune.traces.table import read_table

ROOT = Path(__file__).resolve().parents[2]
HAS_SLURM = not missing(needed(accounting=True, speed=400.0))
"""Where Slurm's packages are absent, the deployment's runs are left out, and what shows them."""
OF_RUNS = tuple(name for name in DEPLOYMENT if name not in ALWAYS) if HAS_SLURM else ()
ARTEFACTS = (
    "table2",
    "table4",
    "loads",
    "estimates",
    "audits",
    "fig5",
    "fig6",
    "arrivals",
    "distributions",
    "fig11",
    "fig12",
    "fig12-numbers",
    "heuristics",
    "improvements",
    "placements",
    "costs",
    "ablation",
    "ablation-numbers",
    "ablation-training",
    "verdicts",
    "table1",
    "table3",
    "table5",
    "example-schedules",
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "fig7",
    "fig8",
    "fig9",
    "scheduling-rules",
    "scheduling-rules-numbers",
    "headroom",
    "fairness",
    "fairness-numbers",
    "fairness-losers",
    "table7",
    "transfer",
    "robustness",
    "table9",
    "table9-numbers",
    "latency",
    "break-even",
    "whatif",
    "whatif-recommendation",
    "whatif-numbers",
    "whatif-steps",
    "whatif-days",
    "whatif-groups",
    "whatif-groups-numbers",
    *ALWAYS,
    *OF_RUNS,
)


STAGES = 29 if HAS_SLURM else 27


@pytest.fixture
def results(smoke_run: Any) -> Path:
    return smoke_run.workspace.results


def jobs_planned(text: str) -> dict[str, int]:
    """The job counts of a dry run, without the target."""
    table = text[text.index("Job stats:") :].split("\n\n")[0]
    return {n: int(c) for n, c in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE) if n not in ("total", "all")}


def test_it_says_where_the_report_is(smoke_run: Any) -> None:
    index = smoke_run.workspace.report / "index.html"
    assert smoke_run.outcome.out.splitlines()[-1] == f"report: {index}" and index.is_file()
    assert "Traceback" not in smoke_run.outcome.out + smoke_run.outcome.err


def test_it_says_what_it_costs_then_how_far_it_is(smoke_run: Any) -> None:
    lines = smoke_run.outcome.out.splitlines()[:-1]
    assert lines[0] == f"config/smoke.yaml: 0 of 3 cells done, {STAGES} stages to do"
    told = [line for line in lines if line.startswith(("time: ", "disk: "))]
    assert len(told) == 2
    rest = lines[lines.index(told[-1]) + 1 :]
    done = [line for line in rest if re.fullmatch(r"done: [a-z].*, (\d+ min )?\d+ s", line)]
    assert len(done) == STAGES and sum("done: train" in line for line in done) == 3
    assert all("cells done; " in line and line.endswith(" left") for line in rest if line not in done)


def test_all_that_was_said_is_in_a_file(smoke_run: Any, results: Path) -> None:
    (log,) = (results / "logs" / "runs").glob("*.log")
    text = log.read_text(encoding="utf-8")
    for stage in ("clean", "fit", "baselines", "train", "evaluate", "compare", "report", *CHAPTERS):
        assert re.search(rf"^\[{stage}[^]]*\] ", text, re.MULTILINE), stage
    assert "Building DAG of jobs" in text and "Building DAG" not in smoke_run.outcome.out + smoke_run.outcome.err


def test_the_home_folder_is_left_alone(smoke_run: Any, shell: Any) -> None:
    assert smoke_run.outcome.status == 0
    assert [p for p in shell.home.rglob("*") if p.is_file()] == []


def test_every_file_is_there_and_holds_what_its_name_says(smoke_run: Any) -> None:
    workspace = smoke_run.workspace
    for trace in workspace.config.traces():
        jobs, meta = read_table(workspace.jobs(trace))
        assert len(jobs) == Audit.from_dict(read_json(workspace.clean_audit(trace))).rows_kept and meta.name == trace
    for workload in workspace.config.all_workloads():
        fitted = pd.read_parquet(workspace.fitted(workload.trace, workload.cluster))
        assert (
            len(fitted) == Audit.from_dict(read_json(workspace.fit_audit(workload.trace, workload.cluster))).rows_kept
        )
        estimates = pd.read_parquet(workspace.estimates(workload.trace, workload.cluster, "lognormal-1"))
        assert list(estimates["job_id"]) == list(fitted["job_id"]) and (estimates["estimate_s"] >= 1).all()
    for cell in workspace.config.cells():
        assert load_policy(workspace.policy(cell)).facts["cell"]["trace"] == cell.trace
        assert len(pd.read_csv(workspace.history(cell))) == workspace.config.preset(cell.preset).epochs
        windows = pd.read_csv(workspace.windows(cell))
        assert {"rltune", "base", "baseline", "rltune_also", "base_also"} <= set(windows["role"]) and not windows[
            "wait_s"
        ].isna().any()
        assert len(pd.read_parquet(workspace.test_jobs(cell)))


def test_every_artefact_has_its_data_beside_it(smoke_run: Any) -> None:
    folder = smoke_run.workspace.artefacts
    assert {p.stem for p in folder.glob("*.json")} == set(ARTEFACTS)
    for name in ARTEFACTS:
        assert len(pd.read_csv(folder / f"{name}.csv"))
    figures = [name for name in ARTEFACTS if read_json(folder / f"{name}.json")["kind"] == "figure"]
    assert len(figures) > 10
    for name in figures:
        assert (folder / f"{name}.svg").stat().st_size and (folder / f"{name}.png").stat().st_size


def test_the_report_shows_the_papers_tables_and_figures(smoke_run: Any) -> None:
    page = (smoke_run.workspace.report / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'\bid="([^"]+)"', page)) >= set(ARTEFACTS)


def test_the_notebooks_were_executed(smoke_run: Any) -> None:
    workspace = smoke_run.workspace
    names = [workspace.notebook(chapter) for chapter in CHAPTERS]
    names += [workspace.notebook(s, t) for s in ("clean", "compare") for t in workspace.config.traces()]
    names += [workspace.notebook(s, c.name) for s in ("train", "evaluate") for c in workspace.config.cells()]
    for path in names:
        code = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
        outputs = [o for c in code for o in c["outputs"]]
        assert outputs and not [o for o in outputs if o["output_type"] == "error"], path.name
        assert all(c["execution_count"] for c in code), path.name
        page = workspace.report / "notebooks" / f"{path.stem}.html"
        assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?:', page.read_text(encoding="utf-8")), page.name
    assert {p.name for p in (workspace.results / "notebooks").glob("*.ipynb")} == {p.name for p in names}


def test_nothing_half_written_is_left(smoke_run: Any, results: Path) -> None:
    assert not [p for p in results.rglob(".*")]
    assert {p.name for p in smoke_run.workspace.base.iterdir()} == {"results", ".cache", ".snakemake"}


def test_the_checkout_is_as_it_was(smoke_run: Any) -> None:
    before, after = smoke_run.checkout
    assert before == after


def test_a_second_run_does_nothing(smoke_run: Any, shell: Any, results: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in results.rglob("*")}
    base = smoke_run.workspace.base
    outcome = shell.rltune("run", "--config", "config/smoke.yaml", "--base", base, "--cores", 2, cwd=ROOT)
    assert outcome.status == 0 and not outcome.err, outcome
    assert outcome.out == f"nothing to be done\nreport: {results / 'report' / 'index.html'}\n"
    assert {p: p.stat().st_mtime_ns for p in results.rglob("*")} == before


CHAPTERS_AFTER = {"semantics": 1, "transfer": 1, "peers": 1, "figures": 1, "report": 1}
"""What depends on the results of any cell."""
ALL_AFTER = {"compare": 2, "ablation": 1, **CHAPTERS_AFTER}
"""What depends on the results of all."""
FIRST_AFTER = {**ALL_AFTER, "whatif": 1, "deployment": 1}
"""… and on the first agent and how differences are judged."""
CHAPTER_OF_CLAIMS = {"figures": 1, "report": 1}
DEPLOY, DEPLOY_ALL = ({"deploy": n} if HAS_SLURM else {} for n in (1, 2))
"""Runs on the Slurm cluster under the first agent; those under Slurm's own order, too."""


@pytest.mark.parametrize(
    ("old", "new", "planned"),
    [
        ("epochs: 3", "epochs: 4", {"train": 3, "evaluate": 3, **FIRST_AFTER, **DEPLOY}),
        ("[best_fit]", "[first_fit]", {"train": 1, "evaluate": 1, "compare": 1, "ablation": 1, **CHAPTERS_AFTER}),
        ("{placement: best_fit}, ", "", {"evaluate": 3, **ALL_AFTER}),
        (
            "interference_slowdown: 1.25",
            "interference_slowdown: 1.5",
            {"baselines": 2, "train": 3, "evaluate": 3, **FIRST_AFTER, **DEPLOY},
        ),
        ("bootstrap: 200", "bootstrap: 300", {"evaluate": 3, **FIRST_AFTER}),
        ("whatif: {}", "whatif: {worth: 0.1}", {"whatif": 1, "report": 1}),
        (
            "features: [raw]\n    preset: [smoke]",
            "features: [raw]\n    preset: [paper]",
            {"train": 1, "evaluate": 1, "compare": 1, **CHAPTERS_AFTER},
        ),
        (
            "train: 0.9",
            "train: 0.8",
            {"characterise": 1, "baselines": 2, "train": 3, "evaluate": 3, **FIRST_AFTER, **DEPLOY_ALL},
        ),
        ("jobs: 12", "jobs: 10", {"deployment": 1, **CHAPTER_OF_CLAIMS, **DEPLOY_ALL}),
        ("title: RLTune, smoke run", "title: Another", {"report": 1}),
    ],
    ids=[
        "budget",
        "one-cell",
        "also",
        "interference_slowdown",
        "evaluation",
        "whatif",
        "another-preset",
        "split",
        "deployment",
        "title",
    ],
)
def test_a_change_makes_anew_what_depends_on_it(
    old: str, new: str, planned: dict[str, int], smoke_run: Any, shell: Any, tmp_path: Path
) -> None:
    text = (ROOT / "config" / "smoke.yaml").read_text()
    assert text.count(old) == 1
    config = tmp_path / "changed.yaml"
    config.write_text(text.replace(old, new))
    base = smoke_run.workspace.base
    outcome = shell.rltune("run", "--config", config, "--base", base, "--cores", 2, "--", "--dry-run", cwd=ROOT)
    assert outcome.status == 0, outcome
    assert jobs_planned(outcome.out + outcome.err) == planned


def test_the_readmes_arguments_for_snakemake_work(smoke_run: Any, shell: Any) -> None:
    base = smoke_run.workspace.base
    jobs = "results/smoke/traces/philly-smoke/jobs.parquet"
    for arguments in (["--forcerun", "figures", "--dry-run"], [jobs, "-f", "--dry-run"]):
        outcome = shell.rltune(
            "run", "--config", "config/smoke.yaml", "--base", base, "--cores", 2, "--", *arguments, cwd=ROOT
        )
        assert outcome.status == 0, outcome
        planned = jobs_planned(outcome.out + outcome.err)
        assert planned == ({"figures": 1, "report": 1} if "figures" in arguments else {"clean": 1})


@pytest.mark.parametrize(
    ("asked", "again", "then"),
    [
        (
            ["train", "--trace", "philly-smoke", "--features", "raw"],
            "train philly-smoke smoke-40 fifo best_fit raw",
            ["evaluate philly-smoke smoke-40 fifo best_fit raw", "compare philly-smoke", "ablation", *CHAPTERS_AFTER],
        ),
        (["characterise"], "characterise", ["report"]),
        (["clean", "--trace", "alibaba-smoke", "--only"], "clean alibaba-smoke", []),
    ],
    ids=["train", "characterise", "clean-only"],
)
def test_one_stage_again_is_that_one_and_what_depends_on_it(
    asked: list[str], again: str, then: list[str], smoke_run: Any, shell: Any
) -> None:
    base = smoke_run.workspace.base
    outcome = shell.rltune("notebook", *asked, "-n", "--config", "config/smoke.yaml", "--base", base, cwd=ROOT)
    assert outcome.status == 0, outcome
    first, *others = outcome.out.splitlines()
    assert first == f"again: {again}" and sorted(others) == sorted(f"  then: {label}" for label in then)


def test_status_tells_that_all_is_done(smoke_run: Any, shell: Any) -> None:
    outcome = shell.rltune("status", "--config", "config/smoke.yaml", "--base", smoke_run.workspace.base, cwd=ROOT)
    assert outcome.status == 0 and "3 of 3 cells done" in outcome.out, outcome
    assert "the last one ended at" in outcome.out
    rows = {line.split()[0]: line.split()[1:] for line in outcome.out.splitlines()[3:]}
    assert rows["train"] == ["3", "0", "0", "0"] and {tuple(row[1:]) for row in rows.values()} == {("0", "0", "0")}


def test_a_long_run_does_not_start_without_being_asked_to(shell: Any, tmp_path: Path) -> None:
    outcome = shell.rltune("run", "--config", "config/paper.yaml", "--base", tmp_path, "--cores", 2, cwd=ROOT)
    assert outcome.status == 2 and "train 83 × paper" in outcome.out and "--yes" in outcome.err, outcome
    assert not (tmp_path / "results").exists() and not (tmp_path / ".cache").exists()


def test_an_unset_variable_stops_before_the_first_job(shell: Any, tmp_path: Path) -> None:
    outcome = shell.rltune("run", "--config", "config/csv.yaml", "--base", tmp_path / "base", cwd=ROOT)
    outcome.explains("config/traces/philly-csv.yaml, path", "RLTUNE_REAL_TRACES, which is not set")
    assert not outcome.out and not (tmp_path / "base" / "results").exists()


def test_a_wrong_value_stops_before_the_first_job(shell: Any, tmp_path: Path) -> None:
    config = tmp_path / "wrong.yaml"
    config.write_text((ROOT / "config" / "smoke.yaml").read_text().replace("epochs: 3", "epochs: 0"))
    base = tmp_path / "base"
    outcome = shell.rltune("run", "--config", config, "--base", base, "--cores", 2, cwd=ROOT)
    outcome.explains(f"{config}:", "presets.smoke.epochs: found 0", "expected 1 or more")
    assert not outcome.out and not base.exists()


@pytest.mark.parametrize(
    "check",
    [page_checks.check_layout, page_checks.check_words, page_checks.check_contrast, page_checks.check_links],
    ids=lambda check: check.__name__.removeprefix("check_"),
)
def test_the_report_in_a_browser(smoke_run: Any, browser: Any, check: Any) -> None:
    check(browser, (smoke_run.workspace.report / "index.html").resolve())


def test_snakemakes_own_report_holds_the_artefacts(smoke_run: Any, shell: Any) -> None:
    base = smoke_run.workspace.base
    outcome = shell.rltune("workflow-report", "--config", "config/smoke.yaml", "--base", base, cwd=ROOT)
    path = smoke_run.workspace.report / "snakemake.html"
    assert outcome.status == 0 and outcome.out.splitlines()[-1] == f"workflow report: {path}", outcome
    text = path.read_text(encoding="utf-8")
    path.unlink()
    assert "5.2 Waiting time" in text and "fig12-numbers.csv" in text and "fig7.svg" in text
