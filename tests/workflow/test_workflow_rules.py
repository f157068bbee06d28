"""The workflow's files: as Snakemake's linter and formatter want them, and in step with the notebooks."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "workflow" / "rules"
BIN = Path(sys.executable).parent


def rules() -> dict[str, str]:
    """Text of every rule that runs a notebook, by the notebook's name."""
    found = {}
    for path in RULES.glob("*.smk"):
        for body in re.findall(r"^rule \w+:\n((?:(?:    .*)?\n)+)", path.read_text(), re.MULTILINE):
            if match := re.search(r'notebook="notebooks/(\w+)\.ipynb"', body):
                found[match[1]] = body
    return found


def parameters(notebook: str) -> set[str]:
    """Names in a notebook's parameters cell."""
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    (source,) = ["".join(c["source"]) for c in cells if "parameters" in c["metadata"].get("tags", [])]
    return {target.id for statement in ast.parse(source).body for target in statement.targets}


def test_linter_and_formatter_find_nothing() -> None:
    smoke = ["--configfile", "config/smoke.yaml"]
    lint = subprocess.run([BIN / "snakemake", "--lint", *smoke], cwd=ROOT, capture_output=True, text=True)
    assert lint.returncode == 0, lint.stderr
    form = [BIN / "snakefmt", "--check", "workflow"]
    assert subprocess.run(form, cwd=ROOT, capture_output=True).returncode == 0


@pytest.mark.parametrize("notebook", sorted(rules()))
def test_a_notebooks_parameters_are_what_its_rule_passes(notebook: str) -> None:
    body = rules()[notebook]
    others = {"notebook", "settings", "code", "mem_mb", "runtime"}
    assert parameters(notebook) == set(re.findall(r"^        (\w+)=", body, re.MULTILINE)) - others


def test_the_default_profile_holds_what_works_anywhere() -> None:
    profile = yaml.safe_load((ROOT / "workflow" / "profiles" / "default" / "config.yaml").read_text())
    assert not set(profile) & {"executor", "cluster", "jobs", "cores", "default-resources", "conda-prefix"}
    assert {"mtime", "params", "input"} <= set(profile["rerun-triggers"])
