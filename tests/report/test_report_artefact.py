"""Artefacts: saved and read back alike, complete or absent, the same bytes each time."""

from dataclasses import replace

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure
from report_fakes import load_artefacts

from rltune.errors import DataError
from rltune.report.artefact import Artefact, Column, load_artefact, save

FRAME = pd.DataFrame({"name": ["a", "none", ""], "wait_s": [1.25, float("nan"), 3e-7], "low": [1.0, 2.0, 3.0]})
TABLE = Artefact(
    "table2",
    "table",
    "Title",
    "What one sees",
    "Table 2",
    ("synthetic",),
    "figures",
    {"name": Column("Name"), "wait_s": Column("Wait", "s", "seconds", low="low", high="low")},
    ("a note",),
)
PICTURE = Artefact("fig1", "figure", "Title", "What one sees", alt="A line.")


def draw() -> Figure:
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([1, 2], [-3, 4])
    return figure


def test_round_trip(tmp_path):
    save(tmp_path, TABLE, FRAME)
    save(tmp_path, PICTURE, FRAME, draw())
    there = load_artefacts(tmp_path)
    assert list(there) == ["fig1", "table2"]
    assert there["table2"].artefact == TABLE
    assert there["fig1"].artefact == PICTURE and there["fig1"].svg.rstrip().endswith("</svg>")
    read = there["table2"].frame
    assert read["wait_s"].equals(FRAME["wait_s"])
    assert list(read["name"].fillna("")) == ["a", "none", ""]  # `none` is a backfilling, not a missing value
    assert not list(tmp_path.glob(".*"))


def test_a_figure_has_the_same_bytes_each_time_whatever_the_settings(tmp_path):
    save(tmp_path / "one", PICTURE, FRAME, draw())
    with matplotlib.rc_context({"svg.hashsalt": None, "axes.unicode_minus": False, "savefig.dpi": 31}):
        save(tmp_path / "two", PICTURE, FRAME, draw())
    for name in ("fig1.svg", "fig1.png", "fig1.csv", "fig1.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_table_without_rows_may_have_no_columns(tmp_path):
    save(tmp_path, replace(TABLE, columns={}), pd.DataFrame([]))
    assert load_artefact(tmp_path, "table2").frame.empty


def test_what_fails_half_way_is_absent(tmp_path):
    save(tmp_path, PICTURE, FRAME, draw())

    class Broken(Figure):
        def savefig(self, *arguments: object, **options: object) -> None:
            if options.get("format") == "png":
                raise RuntimeError("disk full")
            super().savefig(*arguments, **options)

    with pytest.raises(RuntimeError, match="disk full"):
        save(tmp_path, PICTURE, FRAME, Broken())
    assert load_artefacts(tmp_path) == {}
    assert not list(tmp_path.glob(".*"))


def test_a_missing_part_is_named(tmp_path):
    save(tmp_path, TABLE, FRAME)
    (tmp_path / "table2.csv").unlink()
    with pytest.raises(DataError, match="table2.csv is missing"):
        load_artefact(tmp_path, "table2")
    (tmp_path / "table2.json").write_text('{"id": "table2", "surprise": 1}')
    with pytest.raises(DataError, match="table2.json: not an artefact: kind: Field required"):
        load_artefact(tmp_path, "table2")


def test_wrong_artefacts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="alternative text"):
        Artefact("fig1", "figure", "Title", "Caption")
    with pytest.raises(ValueError, match="pattern"):
        Artefact("Fig 1", "table", "Title", "Caption")
    with pytest.raises(ValueError, match="format 'percents'"):
        Column("Heading", format="percents")
    with pytest.raises(ValueError, match="wait_s"):
        save(tmp_path, TABLE, FRAME[["name", "low"]])
