"""Mistakes in the files of traces and clusters: maps of columns, filters, pools."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_texts import CLUSTER, MAP, TRACE, mistake

from rltune.config import ClusterConfig, TraceConfig


@pytest.mark.parametrize(
    ("name", "column", "parts"),
    [
        ("run_s", "{column: c, unit: GB}", ["columns.run_s: `unit`: found 'GB'", "allowed: s, ms, min, h, d"]),
        ("gpus", "{column: c, unit: mili}", ["columns.gpus: `unit`: found 'mili' (did you mean 'milli'?)", "percent"]),
        ("user", "{column: c, unit: s}", ["columns.user: `unit`: found 's'", "no column of numbers"]),
        ("vc", "{column: c, factor: 2}", ["columns.vc: `factor`: found 2.0, which goes with numbers: submit_s, "]),
        ("run_s", "{column: c, factor: 0}", ["columns.run_s.factor: found 0", "greater than 0"]),
        (
            "run_s",
            "{column: c, time_zone: UTC}",
            ["columns.run_s: `time_zone`: found 'UTC', which goes with times: submit_s, start_s, end_s"],
        ),
        ("gpus", "{column: c, constant: 1}", ["columns.gpus: give either `column` or `constant`"]),
    ],
)
def test_a_column_that_does_not_suit_its_name(name: str, column: str, parts: list[str], tmp_path: Path) -> None:
    rest = {"submit_s": "a", "gpus": "b", "run_s": "c"}
    rest.pop(name, None)
    lines = "".join(f"  {key}: {value}\n" for key, value in rest.items())
    message = mistake(tmp_path, TRACE.replace(MAP, f"columns:\n  {name}: {column}\n{lines}"), TraceConfig)
    assert message.startswith("/") and "mine.yaml:6: " in message and "\n" not in message
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ("{}", "found none; needs submit_s, gpus, run_s (or start_s and end_s) as well"),
        ("{submit_s: t, run_s: r, resource: kind}", "needs gpus as well"),
        ("{submit_s: t, gpus: g, end_s: e}", "needs run_s (or start_s and end_s) as well"),
    ],
)
def test_a_map_needs_submission_gpus_and_run_time(columns: str, missing: str, tmp_path: Path) -> None:
    message = mistake(tmp_path, TRACE.replace(MAP, f"columns: {columns}\n"), TraceConfig)
    assert "mine.yaml:5: columns: found " in message and message.endswith(missing), message


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("{column: a, op: in, value: 1}", "value: found 1; `in` needs a list of values"),
        ("{column: a, op: '==', value: [1, 2]}", "value: found a list; `==` needs one value (`in` takes several)"),
        ("{column: a, op: '=~', value: 1}", "op: found '=~'"),
    ],
)
def test_a_filter_whose_value_does_not_suit_its_op(rule: str, text: str, tmp_path: Path) -> None:
    message = mistake(tmp_path, TRACE + f"filter:\n  - {{column: a, op: '>', value: 0}}\n  - {rule}\n", TraceConfig)
    assert f"mine.yaml:8: filter[1].{text}" in message and "\n" not in message, message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TRACE + "synthetic: {jobs: 10}\n", "exactly one of"),
        (TRACE.replace("path: jobs.csv\n", ""), "exactly one of"),
        (TRACE.split("columns")[0], "`columns` goes with format `csv`"),
        (TRACE.replace("format: csv", "format: philly"), "`columns` goes with format `csv`"),
        (TRACE + "part: Venus\n", "`part` goes with format `helios`"),
        ("title: T\ndata: synthetic\nformat: csv\nsynthetic: {}\n" + MAP, "reads a file of yours"),
    ],
)
def test_a_trace_that_contradicts_itself(text: str, words: str, tmp_path: Path) -> None:
    message = mistake(tmp_path, text, TraceConfig)
    assert "mine.yaml" in message and words in message


def test_pools_and_their_virtual_clusters_are_distinguished(tmp_path: Path) -> None:
    twice = CLUSTER + CLUSTER.split("pools:\n")[1]
    assert "found twice: all" in mistake(tmp_path, twice, ClusterConfig)
    shared = twice.replace("name: all", "name: a\n    vcs: [x]", 1).replace("name: all", "name: b\n    vcs: [y, x]")
    assert "found in two: x" in mistake(tmp_path, shared, ClusterConfig)
