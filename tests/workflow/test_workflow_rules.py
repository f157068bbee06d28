"""The workflow's files keep to one shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"
RULE_FILES = sorted((WORKFLOW / "rules").glob("*.smk"))
ORDER = ("input", "output", "log", "benchmark", "threads", "retries", "resources", "params", "message", "shell")
REQUIRED = {"input", "output", "log", "threads", "resources", "message", "shell"}


def rules(text: str) -> dict[str, list[str]]:
    """Keywords of each rule, in the order they are written."""
    found: dict[str, list[str]] = {}
    for name, body in re.findall(r"^(?:rule|checkpoint) (\w+):\n((?:(?:[ \t].*)?\n?)+)", text, re.MULTILINE):
        assert name not in found, f"two rules {name}"
        found[name] = re.findall(r"^    (\w+):", body, re.MULTILINE)
    return found


ALL = {(path.name, name): keys for path in RULE_FILES for name, keys in rules(path.read_text()).items()}


def test_the_snakefile_is_short_and_includes_every_rule_file() -> None:
    text = (WORKFLOW / "Snakefile").read_text()
    assert len(text.splitlines()) <= 60
    assert re.findall(r'^include: "rules/(.+)"$', text, re.MULTILINE) == [
        "common.smk",
        "traces.smk",
        "train.smk",
        "evaluate.smk",
        "semantics.smk",
        "transfer.smk",
        "peers.smk",
        "whatif.smk",
        "deployment.smk",
        "figures.smk",
        "system.smk",
        "report.smk",
    ]
    assert {p.name for p in RULE_FILES} == set(re.findall(r'"rules/(.+)"', text))
    assert re.search(r"^min_version\(", text, re.MULTILINE)


def test_the_configuration_is_checked_before_any_rule() -> None:
    text = (WORKFLOW / "Snakefile").read_text()
    assert text.index("Workspace.open(") < text.index("include:")


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda p: p.name)
def test_rule_files_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 200


def test_there_is_a_rule_for_every_stage() -> None:
    assert {name for _, name in ALL} >= {
        "clean",
        "fit",
        "estimate",
        "characterise",
        "train",
        "evaluate",
        "compare",
        "ablation",
        "semantics",
        "transfer",
        "peers",
        "whatif",
        "deploy",
        "deployment",
        "figures",
        "system",
        "report",
    }


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule[1])
def test_keywords_come_in_one_order(rule: tuple[str, str]) -> None:
    keys = ALL[rule]
    assert keys == [k for k in ORDER if k in keys], f"expected the order {', '.join(ORDER)}"
    assert REQUIRED <= set(keys), f"without {', '.join(sorted(REQUIRED - set(keys)))}"


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda p: p.name)
def test_executed_notebooks_are_logs(path: Path) -> None:
    """Snakemake deletes the outputs of a failed rule and keeps its logs, so the traceback survives."""
    text = path.read_text()
    for block in re.findall(r"^    output:\n((?: {8}.*\n)+)", text, re.MULTILINE):
        assert "workspace.notebook(" not in block
    for name, body in re.findall(r"^rule (\w+):\n((?:(?:[ \t].*)?\n?)+)", text, re.MULTILINE):
        if "stage notebook" in body:
            assert re.search(r"    log:\n        here\(workspace\.notebook\(", body), name


@pytest.mark.parametrize("path", [WORKFLOW / "Snakefile", *RULE_FILES], ids=lambda p: p.name)
def test_paths_come_from_the_workspace(path: Path) -> None:
    """No rule writes a folder of results out in full."""
    assert "results/" not in path.read_text() and "/home/" not in path.read_text()


def test_the_default_profile_holds_what_works_anywhere() -> None:
    profile = yaml.safe_load((WORKFLOW / "profiles" / "default" / "config.yaml").read_text())
    assert not set(profile) & {"executor", "cluster", "jobs", "cores", "default-resources", "conda-prefix"}
    assert {"mtime", "params", "input"} <= set(profile["rerun-triggers"])
