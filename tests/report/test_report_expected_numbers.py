"""Expected numbers: read from a file, compared with a run's artefacts by their tolerances, written back."""

import re
from pathlib import Path

import pandas as pd
import pytest

from rltune.config import load_run
from rltune.errors import ConfigError, DataError
from rltune.report import artefacts
from rltune.report.artefact import Artefact, save
from rltune.report.expected_numbers import FILE, Checked, Number, as_table, check, expected_text, load_expectations

ROOT = Path(__file__).resolve().parents[2]
TEXT = """\
config: config/tiny.yaml
why: it says
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
"""
FRAME = pd.DataFrame({"policy": ["fifo", "sjf"], "wait_s": [109.0, 80.0], "verdict": ["", "holds"]})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with a finished run's artefacts, as far as this goes, and what is expected of it."""
    save(tmp_path, Artefact("waits", "table", "Waits", "…"), FRAME)
    (tmp_path / "config").mkdir()
    (tmp_path / FILE).write_text(TEXT)
    return tmp_path


def checked(run: Path, config: str = "config/tiny.yaml") -> list[Checked]:
    return check(config, run, load_expectations(run / FILE, run), ["philly"])


def test_within_and_outside(run):
    assert [one.inside for one in checked(run)] == [True, True, True]
    changed = FRAME.assign(wait_s=[110.1, 80.0], verdict=["", "undecided"])
    save(run, Artefact("waits", "table", "Waits", "…"), changed)
    found = checked(run)
    assert [one.inside for one in found] == [False, False, True]
    assert re.search(r"waits +mean wait of FIFO +100 ± 10\.0 s +110 s +OUTSIDE", as_table(found))
    assert re.search(r"a verdict +holds +undecided +OUTSIDE", as_table(found))
    save(run, Artefact("waits", "table", "Waits", "…"), FRAME.assign(policy=["saf", "sjf"]))
    assert re.search(r"mean wait of FIFO .* 0 rows, expected 1 +OUTSIDE", as_table(checked(run)))


def test_numbers_of_a_trace_that_another_replaces_are_left_out(run):
    for trace, compared in (("philly", 3), ("alibaba-synthetic", 2)):
        (run / FILE).write_text(TEXT.replace("artefact: waits", f"artefact: waits\n        trace: {trace}", 1))
        assert len(checked(run)) == compared


def test_another_configuration_an_unfinished_run_and_an_unknown_column_are_explained(run):
    with pytest.raises(ConfigError, match="config/other.yaml"):
        checked(run, "config/other.yaml")
    save(run, Artefact("waits", "table", "Waits", "…"), FRAME.drop(columns="verdict"))
    with pytest.raises(DataError, match="found no column verdict"):
        checked(run)
    (run / "waits.json").unlink()
    with pytest.raises(DataError, match="waits.json"):
        checked(run)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    stage: figures\n", "", "stage: missing"),
        ("ids: [waits]", "ids: [others]", "not among"),
        ('value: "holds"', 'value: "holds"\n        absolute: 1', "a text has no tolerance"),
    ],
)
def test_mistakes_in_the_file_are_explained(run, old, new, says):
    (run / FILE).write_text(TEXT.replace(old, new))
    with pytest.raises(ConfigError, match=says):
        load_expectations(run / FILE, run)


def test_tolerances_in_words():
    share = Number(says="x", artefact="a", value=0.747, unit="fraction", absolute=0.2)
    ratio = Number(says="x", artefact="a", value=2.5, unit="ratio", relative=0.1)
    assert [expected_text(share), expected_text(ratio)] == ["74.7 ± 20.0\u00a0%", "2.50 ± 0.250"]


def test_the_projects_file_covers_the_paper_and_names_what_the_default_run_makes():
    expectations = load_expectations(ROOT / FILE, ROOT)
    papers = [part.paper for part in expectations.reproduced]
    assert len(papers) == len(set(papers))
    wanted = {f"Table {i}" for i in range(1, 10)} | {f"Figure {i}" for i in range(1, 20)}
    assert wanted | {"Section 5.7", "Section 3.2"} <= set(papers)
    made = set(artefacts.expected(load_run(expectations.config, ROOT)))
    assert {name for part in expectations.reproduced for name in part.ids} <= made
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    stages = {part.stage for part in expectations.reproduced}
    assert stages <= set(re.findall(r"^(?:use rule \w+ as|rule) (\w+)", rules, re.MULTILINE))
