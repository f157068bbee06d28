"""The workflow's files: as Snakemake's linter and formatter want them, and in step with the notebooks."""

import fcntl
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from test_notebooks import parameters

from rltune.config.context import Run

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "workflow" / "rules"
BIN = Path(sys.executable).parent


OTHERS = {"notebook", "settings", "order", "code", "mem_mb", "runtime"}
"""Names in a rule that are no parameters of its notebook."""
RULE = re.compile(r"^(?:use rule (\w+) as|rule) (\w+)(?: with)?:\n((?:(?:    .*)?\n)+)", re.MULTILINE)


def rules() -> dict[str, str]:
    """Text of every rule that runs a notebook or script, by its name; of one made of another its params come first."""
    text = "".join(path.read_text() for path in sorted(RULES.glob("*.smk")))
    found = {name: (base, body) for base, name, body in RULE.findall(text)}

    def params(name: str) -> str:
        base, body = found[name]
        own = re.search(r"^    params:\n(?:        .*\n)+", body, re.MULTILINE)
        return (own[0] if own else "") + (params(base) if base else "")

    return {name: body if not base else body + params(base) for name, (base, body) in found.items()}


BY_NOTEBOOK = {match[1]: body for body in rules().values() if (match := re.search(r'="notebooks/(\w+)\.ipynb"', body))}
SOURCES_DO_NOT_COUNT = {"deploy", "pdf", "expected"}
"""Rules that are not repeated for a change of the code."""


def snakemake(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / "snakemake", *arguments], cwd=cwd, capture_output=True, text=True)


def test_linter_and_formatter_find_nothing():
    lint = snakemake("--lint", "--configfile", "config/smoke.yaml")
    assert lint.returncode == 0, lint.stderr
    form = [BIN / "snakefmt", "--check", "workflow"]
    assert subprocess.run(form, cwd=ROOT, capture_output=True).returncode == 0
    strip = [BIN / "nbstripout", "--verify", *sorted(ROOT.glob("notebooks/*.ipynb"))]
    assert subprocess.run(strip, capture_output=True, text=True).stdout == ""


@pytest.mark.parametrize(("preset", "trained_with"), [("minibatch", "exact"), ("tuned", "lognormal-1")])
def test_an_agent_trains_with_the_estimates_of_its_preset(preset, trained_with):
    """`minibatch` is like `paper`, which has true run times; all are evaluated with the cell's estimates."""
    cells = Run.open("config/real-rows.yaml").config.cells()
    cell = next(cell for cell in cells if (cell.preset, cell.estimate) == (preset, "lognormal-1"))
    policy = f"results/real-rows/cells/{cell.name}/policy.npz"
    said = snakemake("--dry-run", "--nolock", "--configfile", "config/real-rows.yaml", "--", policy)
    assert re.findall(r"run-time estimates (\S+) for", said.stdout + said.stderr) == [trained_with], said


@pytest.mark.parametrize(("folder", "status"), [("my {} log", 0), ("my {x} log", 1)])
def test_a_path_that_snakemake_takes_for_a_pattern_is_explained(folder, status, project):
    (project.root / folder).mkdir()
    project.jobs.rename(project.root / folder / "jobs.csv")
    project.change(project.trace, "path: jobs.csv", f"path: '{folder}/jobs.csv'")
    planned = ("--dry-run", "--configfile", "config/tiny.yaml", "--", "results/traces/tiny/jobs.parquet")
    said = snakemake(*planned, cwd=project.root)
    refused = "trace tiny: found my {x} log/jobs.csv, expected a path without {name}" in said.stdout + said.stderr
    assert said.returncode == status and refused == bool(status), said


def test_policies_may_be_in_the_users_home_folder(project, tmp_path, monkeypatch):
    shutil.copy(ROOT / "config" / "own_policies.example.py", tmp_path / "mine.py")
    project.change(project.run, "title:", "plugins: [~/mine.py]\ntitle:")
    monkeypatch.setenv("HOME", str(tmp_path))
    said = snakemake("--dry-run", "--configfile", "config/tiny.yaml", cwd=project.root)
    assert said.returncode == 0, said


@pytest.mark.parametrize("notebook", sorted(BY_NOTEBOOK))
def test_a_notebooks_parameters_are_what_its_rule_passes(notebook):
    body = BY_NOTEBOOK[notebook]
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))
    passed = {"config"} | set(re.findall(r"^        (\w+)=", body, re.MULTILINE)) - OTHERS
    assert parameters(cells).keys() == passed


def test_every_rule_depends_on_the_sources_of_what_it_runs():
    assert len(rules()) > 15
    for name in rules().keys() - SOURCES_DO_NOT_COUNT:
        ran = re.search(r"notebooks/\w+\.ipynb|scripts/\w+\.py", rules()[name])[0]
        start = re.escape(f"workflow/{ran}" if ran.startswith("scripts") else ran)
        assert re.search(rf'^        code=digest\("{start}"(, shown=True)?\),$', rules()[name], re.MULTILINE), name


@pytest.mark.parametrize(
    ("stage", "of", "expected"),
    [
        ("clean", "alibaba-smoke", "results/smoke/notebooks/clean-alibaba-smoke.ipynb"),
        ("whatif", "", "results/smoke/notebooks/whatif.ipynb"),
        ("clean", "", "TRACE: found ''; stage clean of config/smoke.yaml has:\n  philly-smoke\n  alibaba-smoke"),
        ("train", "", "CELL: found ''; stage train of config/smoke.yaml has:\n  philly-smoke__smoke-40__fifo__"),
    ],
)
def test_the_file_of_a_stage_or_what_there_is(stage, of, expected, monkeypatch):
    monkeypatch.chdir(ROOT)
    target = runpy.run_path("workflow/scripts/stage.py")["target"]
    try:
        found = target("config/smoke.yaml", stage, of)
    except SystemExit as end:
        found = str(end)
    assert found.startswith(expected)


def test_a_chapter_that_a_run_does_not_have(monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit, match="STAGE: config/default.yaml asks for nothing that whatif makes"):
        runpy.run_path("workflow/scripts/stage.py")["target"]("config/default.yaml", "whatif", "")


def test_published_predictions_are_an_input_of_the_table_on_estimates(project, shell):
    project.change(project.trace, "path: jobs.csv\n", "path: jobs.csv\npredictions: {path: p.csv, run_s: seconds}\n")
    project.change(project.run, "policy: [fifo]", "policy: [fifo]\n    estimate: [published]")
    (project.root / "p.csv").write_text("job_id,seconds\nj0,1\n")
    said = shell.make("report", "CONFIG=config/tiny.yaml", "ARGS=--filegraph", cwd=project.root)
    boxes = [box for box in said.out.split("</table>") if ">p.csv<" in box]
    assert len(boxes) == 1 and ">characterise<" in boxes[0], said


def test_runs_keep_compiled_modules_where_the_environment_says_not_to():
    probe = ("make", "--no-print-directory", "--eval", "probe:; @env", "probe")
    env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "RLTUNE_ROOT": "/elsewhere"}
    said = subprocess.run(probe, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    assert "XDG_CACHE_HOME=" in said and "PYTHONDONTWRITEBYTECODE" not in said
    assert "RLTUNE_ROOT" not in said, "a run would write to another project"


def test_clean_follows_a_linked_folder_and_waits_for_no_run(project, shell, tmp_path):
    for name in ("slurm/assigned.json", "example_schedules.csv", "report/index.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("kept?")
    project.results.symlink_to(tmp_path)
    (project.root / ".cache").mkdir()
    with open(project.root / ".cache" / "run.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = shell.make("clean", cwd=project.root)
    assert refused.status and "another run is at work" in refused.err and (tmp_path / "report").is_dir(), refused
    assert shell.make("clean", cwd=project.root).status == 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["assigned.json"]


def test_the_default_profile_holds_what_works_anywhere():
    profile = yaml.safe_load((ROOT / "workflow" / "profiles" / "default" / "config.yaml").read_text())
    assert not set(profile) & {"executor", "cluster", "jobs", "cores", "default-resources", "conda-prefix"}
    assert {"mtime", "params", "input"} <= set(profile["rerun-triggers"])
