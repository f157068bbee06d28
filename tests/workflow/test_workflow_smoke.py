"""A whole run of the workflow: complete, confined to its folder, not repeated without need."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rltune.agent.policy_file import load_policy
from rltune.files import read_json
from rltune.report.page.contents import CHAPTERS
from rltune.traces.audit import Audit
from rltune.traces.table import read_table

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = ("table2", "table4", "loads", "estimates", "audits", "fig5", "fig6", "arrivals", "distributions", "fig11",
             "fig12", "fig12-numbers", "heuristics", "improvements", "placements", "costs", "ablation", "ablation-numbers",
             "verdicts",
             "table1", "table3", "table5", "motivation", "fig1", "fig2", "fig3", "fig4", "fig7", "fig8", "fig9",
             "semantics", "semantics-numbers", "room", "fairness", "fairness-numbers", "fairness-losers",
             "table7", "transfer", "robustness", "table9", "table9-numbers", "latency", "payback")


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


def test_its_lines_say_which_stage_they_are_of(smoke_run: Any) -> None:
    lines = smoke_run.outcome.out.splitlines()[:-1]
    stages = "|".join(("clean", "fit", "estimate", "baselines", "train", "evaluate", "report", *CHAPTERS))
    stage = re.compile(rf"\[({stages})[^]]*\] ")
    assert lines and all(stage.match(line) for line in lines)


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
        assert len(fitted) == Audit.from_dict(read_json(workspace.fit_audit(workload.trace, workload.cluster))).rows_kept
        estimates = pd.read_parquet(workspace.estimates(workload.trace, workload.cluster, "lognormal-1"))
        assert list(estimates["job_id"]) == list(fitted["job_id"]) and (estimates["estimate_s"] >= 1).all()
    for cell in workspace.config.cells():
        assert load_policy(workspace.policy(cell)).facts["cell"]["trace"] == cell.trace
        assert len(pd.read_csv(workspace.history(cell))) == workspace.config.preset(cell.preset).epochs
        windows = pd.read_csv(workspace.windows(cell))
        assert {"rltune", "base", "baseline", "rltune_also", "base_also"} <= set(windows["role"]) and not windows["wait_s"].isna().any()
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
    names += [workspace.notebook("clean", t) for t in workspace.config.traces()]
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
    assert outcome.status == 0 and "Nothing to be done" in outcome.err, outcome
    assert outcome.out == f"report: {results / 'report' / 'index.html'}\n"
    assert {p: p.stat().st_mtime_ns for p in results.rglob("*")} == before


@pytest.mark.parametrize(
    ("old", "new", "planned"),
    [
        ("epochs: 3", "epochs: 4", {"train": 3, "evaluate": 3, "ablation": 1, "semantics": 1, "figures": 1, "report": 1}),
        ("[best_fit]", "[first_fit]", {"train": 1, "evaluate": 1, "ablation": 1, "semantics": 1, "figures": 1, "report": 1}),
        ("{placement: best_fit}, ", "", {"evaluate": 3, "ablation": 1, "semantics": 1, "figures": 1, "report": 1}),
        ("sharing: 1.25", "sharing: 1.5",
         {"baselines": 2, "train": 3, "evaluate": 3, "ablation": 1, "semantics": 1, "figures": 1, "report": 1}),
        ("bootstrap: 200", "bootstrap: 300", {"evaluate": 3, "ablation": 1, "semantics": 1, "figures": 1, "report": 1}),
        ("features: [raw]\n    preset: [smoke]", "features: [raw]\n    preset: [paper]",
         {"train": 1, "evaluate": 1, "semantics": 1, "figures": 1, "report": 1}),
        ("train: 0.9", "train: 0.8",
         {"characterise": 1, "baselines": 2, "train": 3, "evaluate": 3, "ablation": 1, "semantics": 1, "figures": 1, "report": 1}),
        ("title: RLTune, smoke run", "title: Another", {"report": 1}),
    ],
    ids=["budget", "one-cell", "also", "sharing", "evaluation", "another-preset", "split", "title"],
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


def test_an_unset_variable_stops_before_the_first_job(shell: Any, tmp_path: Path) -> None:
    outcome = shell.rltune("run", "--config", "config/csv.yaml", "--base", tmp_path / "base", cwd=ROOT)
    outcome.explains("config/traces/philly-csv.yaml, path", "RLTUNE_REAL_TRACES, which is not set")
    assert not outcome.out and not (tmp_path / "base" / "results").exists()


def test_a_wrong_value_stops_before_the_first_job(shell: Any, tmp_path: Path) -> None:
    config = tmp_path / "wrong.yaml"
    config.write_text((ROOT / "config" / "smoke.yaml").read_text().replace("epochs: 3", "epochs: 0"))
    base = tmp_path / "base"
    outcome = shell.rltune("run", "--config", config, "--base", base, "--cores", 2, cwd=ROOT)
    outcome.explains(f"{config}:", "presets.smoke.epochs: found 0", "greater than or equal to 1")
    assert not outcome.out and not base.exists()
