"""Expected numbers: read from a file, compared with a run's artefacts by their tolerances, written back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rltune.config import Workspace
from rltune.errors import ConfigError, DataError
from rltune.report.artefact import Artefact, save_table
from rltune.report.expected import FILE, Number, check, expected_text, load_expectations, write_values
from rltune.report.page.contents import expected as artefacts_of

ROOT = Path(__file__).resolve().parents[2]
TEXT = """\
config: config/tiny.yaml
why: it says
stage_s: {}  # measured
reproduced:
  - paper: Table 1
    title: Waits
    stage: figures
    ids: [waits]
    numbers:
      - says: mean wait of FIFO
        artefact: waits
        where: {policy: fifo}
        column: wait_s
        value: 100
        unit: s
        relative: 0.1
      - says: a verdict
        artefact: waits
        where: {policy: sjf}
        column: verdict
        value: "holds"
      - says: rows
        artefact: waits
        value: 2
        unit: rows
  - paper: Figure 18
    title: On Slurm
    note: not here
"""
FRAME = pd.DataFrame({"policy": ["fifo", "sjf"], "wait_s": [109.0, 80.0], "verdict": ["", "holds"]})
Cli = Callable[..., Any]


@pytest.fixture
def run(project: Any) -> Workspace:
    """A finished run, as far as this goes, and what is expected of it."""
    workspace = Workspace.open("config/tiny.yaml")
    save_table(workspace.artefacts, Artefact("waits", "table", "Waits", "…"), FRAME)
    (workspace.results / "benchmarks").mkdir()
    (workspace.results / "benchmarks" / "figures.tsv").write_text("s\th:m:s\n7.4\t0:00:07\n")
    (project.root / "config" / "expected.yaml").write_text(TEXT)
    return workspace


def found(run: Workspace) -> list[bool]:
    return [one.inside for one in check(run, load_expectations(run.root / FILE, run.root))]


def test_within_and_outside(run: Workspace, cli: Cli) -> None:
    assert found(run) == [True, True, True]
    assert cli("expected", "--config", "config/tiny.yaml").status == 0
    changed = FRAME.assign(wait_s=[110.1, 80.0], verdict=["", "undecided"])
    save_table(run.artefacts, Artefact("waits", "table", "Waits", "…"), pd.concat([changed, changed.tail(1)]).iloc[:2])
    outcome = cli("expected", "--config", "config/tiny.yaml")
    assert outcome.status == 1 and "1 of 3 within tolerance" in outcome.out
    assert re.search(r"waits +mean wait of FIFO +100 ± 10\.0 s +110 s +OUTSIDE", outcome.out)
    assert re.search(r"a verdict +holds +undecided +OUTSIDE", outcome.out)


def test_a_number_that_is_not_there_is_outside_and_says_why(run: Workspace, cli: Cli) -> None:
    save_table(run.artefacts, Artefact("waits", "table", "Waits", "…"), FRAME.assign(policy=["saf", "sjf"]))
    outcome = cli("expected", "--config", "config/tiny.yaml")
    assert outcome.status == 1 and re.search(r"mean wait of FIFO .* 0 rows, expected 1 +OUTSIDE", outcome.out)
    cli("expected", "--config", "config/tiny.yaml", "--write").explains("expected.yaml", "mean wait of FIFO")
    assert (run.root / FILE).read_text() == TEXT


def test_written_values_are_those_of_the_run(run: Workspace, cli: Cli) -> None:
    outcome = cli("expected", "--config", "config/tiny.yaml", "--write")
    assert outcome.status == 0 and "1 values changed" in outcome.out
    text = TEXT.replace("value: 100\n", "value: 109\n").replace("stage_s: {}", "stage_s: {figures: 7}")
    assert (run.root / FILE).read_text() == text
    assert found(run) == [True, True, True]


def test_another_configuration_is_refused(run: Workspace, cli: Cli) -> None:
    (run.root / "config" / "other.yaml").write_text((run.root / "config" / "tiny.yaml").read_text())
    cli("expected", "--config", "config/other.yaml").explains("config/other.yaml", "config/tiny.yaml")


def test_an_unfinished_run_and_an_unknown_column_are_explained(run: Workspace, cli: Cli) -> None:
    save_table(run.artefacts, Artefact("waits", "table", "Waits", "…"), FRAME.drop(columns="verdict"))
    cli("expected", "--config", "config/tiny.yaml").explains("waits.csv", "found no column verdict", "wait_s")
    (run.artefacts / "waits.json").unlink()
    cli("expected", "--config", "config/tiny.yaml").explains("waits.json", "missing")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    note: not here\n", "", "why it is not reproduced"),
        ("ids: [waits]", "ids: [others]", "not among"),
        ('value: "holds"', 'value: "holds"\n        absolute: 1', "a text has no tolerance"),
    ],
)
def test_mistakes_in_the_file_are_explained(run: Workspace, old: str, new: str, says: str) -> None:
    (run.root / FILE).write_text(TEXT.replace(old, new))
    with pytest.raises(ConfigError, match=says):
        load_expectations(run.root / FILE, run.root)


def test_a_file_laid_out_otherwise_is_not_written(run: Workspace) -> None:
    path = run.root / FILE
    checked = check(run, load_expectations(path, run.root))
    path.write_text(TEXT.replace("        value: 2\n", ""))
    with pytest.raises(DataError, match="found 2 lines"):
        write_values(path, checked, {"figures": 1.0})


def test_tolerances_in_words() -> None:
    def text(**how: Any) -> str:
        return expected_text(Number(says="x", artefact="a", **how))

    assert text(value=0.747, unit="fraction", absolute=0.2) == "74.7 ± 20.0\u00a0%"
    assert (
        text(value=1500, unit="jobs") == "1,500 jobs" and text(value=2.5, unit="ratio", relative=0.1) == "2.50 ± 0.250"
    )


def test_the_projects_file_covers_the_paper_and_names_what_the_default_run_makes() -> None:
    expectations = load_expectations(ROOT / FILE, ROOT)
    papers = [part.paper for part in expectations.reproduced]
    assert len(papers) == len(set(papers))
    assert {f"Table {i}" for i in range(1, 10)} | {f"Figure {i}" for i in range(1, 20)} | {
        "Section 5.7",
        "Section 3.2",
    } <= set(papers)
    workspace = Workspace.open(expectations.config)
    made = set(artefacts_of(workspace.config))
    assert {name for part in expectations.reproduced for name in part.ids} <= made
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert all(f"\nrule {stage}:\n" in rules for stage in expectations.stages())
    assert set(expectations.stage_s) == set(expectations.stages())
    assert not [part.paper for part in expectations.reproduced if part.stage and not 1 <= len(part.numbers) <= 3]
    assert not [part.paper for part in expectations.reproduced if not part.stage], "every table and figure has an entry"
