"""The workflow's rules, read from its rule files, and which rule waits for which, asked of Snakemake."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from types import SimpleNamespace

from sources import ROOT

from rltune.config import Workspace

CONFIG = "config/default.yaml"
BLOCK = re.compile(r"^(?:rule|checkpoint) (\w+):\n((?:(?:[ \t].*)?\n?)+)", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """A rule as the documents show it."""

    name: str
    message: str
    """What it says when it runs, without its wildcards."""
    per: str
    """What it runs once for."""
    notebook: str
    """Its notebook, without .ipynb; "" for a command."""
    outputs: tuple[str, ...]
    """Files it writes, relative to the run's results."""


def _rules() -> tuple[Rule, ...]:
    workspace = Workspace.open(CONFIG)
    includes = re.findall(
        r'^include: "(.+)"$', (ROOT / "workflow" / "Snakefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    found = []
    for path in includes:
        for name, body in BLOCK.findall((ROOT / "workflow" / path).read_text(encoding="utf-8")):
            sections = dict(re.findall(r"^    (\w+):\n((?:(?:        .*)?\n)+)", body, re.MULTILINE))
            message = re.sub(r"\{wildcards\.(\w+)\}", r"\1", sections["message"].strip().strip('"'))
            wildcards = list(dict.fromkeys(re.findall(r"\{(\w+)\}", sections["log"])))
            notebook = re.search(r"rltune stage notebook (\w+)", body)
            per = " × ".join(wildcards) or "run"
            found.append(
                Rule(name, message, per, notebook[1] if notebook else "", _outputs(sections["output"], workspace))
            )
    return tuple(found)


def _outputs(section: str, workspace: Workspace) -> tuple[str, ...]:
    """The files of an output section, whose expressions are asked of the workspace; a notebook's page is left out."""
    known = {"workspace": workspace, "ANY_CELL": SimpleNamespace(name="{cell}")}
    files = ["artefacts/<id>.csv, .json, .svg, .png"] if "artefact_files(" in section else []
    for name, arguments in re.findall(r"here\((workspace\.\w+)((?:[^()]|\([^()]*\))*)\)", section):
        path = eval(f"{name}{arguments}", {}, known)  # the project's own rule files
        if name != "workspace.page":
            files.append(str(path.relative_to(workspace.results)))
    return tuple(files)


def edges() -> list[tuple[str, str]]:
    """(rule, rule that waits for it), without what follows from others; of the default run, as Snakemake sees it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "snakemake",
            "--snakefile",
            str(ROOT / "workflow/Snakefile"),
            "--rulegraph",
            "--quiet",
            "all",
            "--config",
            f"run={CONFIG}",
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    names = dict(re.findall(r'(\d+)\[label = "(\w+)"', done.stdout))
    if done.returncode or not names:
        raise RuntimeError(f"snakemake --rulegraph failed:\n{done.stderr}")
    found = {(names[a], names[b]) for a, b in re.findall(r"^\s*(\d+) -> (\d+)", done.stdout, re.MULTILINE)}
    found = {(a, b) for a, b in found if b != "all"}
    after: dict[str, set[str]] = {}
    for a, b in found:
        after.setdefault(a, set()).add(b)

    def reachable(rule: str) -> set[str]:
        return {r for b in after.get(rule, ()) for r in ({b} | reachable(b))}

    return sorted((a, b) for a, b in found if not any(b in reachable(c) for c in after[a] - {b}))


RULES = _rules()
