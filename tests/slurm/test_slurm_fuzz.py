"""Whatever Slurm may say, reading it gives records and counted faults, or the one error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from slurm_newer import newer_jobs, newer_nodes

from rltune.errors import SlurmError
from rltune.slurm.answers import (
    JOB_COLUMNS,
    NODE_COLUMNS,
    jobs_from_json,
    jobs_from_text,
    nodes_from_json,
    nodes_from_text,
)
from rltune.slurm.records import Parsed, SlurmJob, SlurmNode

RECORDED = Path(__file__).parent / "recorded" / "22.05"
JOBS = json.loads((RECORDED / "squeue.json").read_text())
NODES = json.loads((RECORDED / "sinfo.json").read_text())
ANSWERS = [
    (jobs_from_json, "jobs", JOBS),
    (jobs_from_json, "jobs", newer_jobs(JOBS)),
    (nodes_from_json, "nodes", NODES),
    (nodes_from_json, "sinfo", newer_nodes(NODES)),
]
LINES = [
    (jobs_from_text, (RECORDED / "squeue.txt").read_text()),
    (nodes_from_text, (RECORDED / "sinfo.txt").read_text()),
]
SLURMS_TEXTS = st.sampled_from(
    [
        "",
        "N/A",
        "(null)",
        "gpu",
        "gpu:2",
        "gpu:p100:4(S:0-1)",
        "gres/gpu=4",
        "gpu:(null):1(IDX:0)",
        "n[1-3]",
        "n[1-",
        "n[1-3][4-5]",
        "0x1f",
        "1-5%2",
        "UNLIMITED",
        "1-02:03:04",
        "PENDING",
        "RUNNING",
        "COMPLETING",
        "none",
        "4G",
        "idle*",
        "gpu:p100:x",
        "((",
        "a,b",
        "999999999999999999999",
        "-1",
        "NaN",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | SLURMS_TEXTS
    | st.builds(
        lambda s, i, n: {"set": s, "infinite": i, "number": n},
        st.booleans(),
        st.booleans(),
        st.integers() | st.floats() | st.none(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def sound(read: Parsed[Any], items: int | None = None) -> None:
    """Records hold what their types say, and each item is a record or a fault."""
    assert items is None or len(read.faults) <= items
    for record in read.records:
        if isinstance(record, SlurmJob):
            assert record.id > 0 and record.gpus == sum(record.gpus_by_type.values()) and record.state
            assert record.time_limit_s is None or 0 <= record.time_limit_s < float("inf")
            assert record.array_tasks >= 1 and all(isinstance(name, str) and name for name in record.node_names)
            assert record.mem_mb is None or record.mem_mb >= 0
        else:
            assert isinstance(record, SlurmNode) and record.name and record.state
            assert all(n > 0 for n in (*record.gpus.values(), *record.gpus_alloc.values())) and record.cpus >= 0
    assert all(isinstance(fault, str) and fault.startswith("record ") for fault in read.faults)


@pytest.mark.parametrize("k", range(len(ANSWERS)))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_value_anywhere(k: int, data: st.DataObject) -> None:
    read, key, whole = ANSWERS[k]
    item = json.loads(json.dumps(data.draw(st.sampled_from(whole[key]))))
    for _ in range(data.draw(st.integers(1, 4))):
        here, field = item, data.draw(st.sampled_from(sorted(item)))
        if isinstance(here[field], dict) and here[field] and data.draw(st.booleans()):
            here, field = here[field], data.draw(st.sampled_from(sorted(here[field])))
        if data.draw(st.booleans()):
            here[field] = data.draw(VALUES)
        else:
            del here[field]
        if not item:
            break
    parsed = read(json.dumps({**whole, key: [whole[key][0], item, data.draw(VALUES)]}))
    sound(parsed)
    assert parsed.records  # the first one stands


@pytest.mark.parametrize("read", [jobs_from_json, nodes_from_json, jobs_from_text, nodes_from_text])
@settings(max_examples=120, deadline=None)
@given(
    text=st.text()
    | VALUES.map(json.dumps)
    | st.dictionaries(st.sampled_from(["jobs", "nodes", "sinfo", "errors", "meta"]), VALUES).map(json.dumps)
)
def test_any_answer(read: Callable[[str], Parsed], text: str) -> None:
    try:
        sound(read(text))
    except SlurmError as error:
        assert str(error)


@pytest.mark.parametrize("read", [jobs_from_json, nodes_from_json])
def test_an_answer_nested_without_end(read: Callable[[str], Parsed]) -> None:
    with pytest.raises(SlurmError):
        read("[" * 100_000)


@pytest.mark.parametrize("k", range(2))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_column(k: int, data: st.DataObject) -> None:
    read, text = LINES[k]
    columns = (JOB_COLUMNS, NODE_COLUMNS)[k]
    lines = [line for line in text.split("\n") if line]
    line = data.draw(st.sampled_from(lines)).encode()
    name = data.draw(st.sampled_from(sorted(columns)))
    at = sum(width for other, width in columns.items() if list(columns).index(other) < list(columns).index(name))
    value = data.draw(SLURMS_TEXTS | st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"])))
    cell = value.encode()[: columns[name]].ljust(columns[name])
    changed = (line[:at] + cell + line[at + columns[name] :]).decode("utf-8", "replace")
    parsed = read("\n".join([lines[0], changed]))
    sound(parsed, 1)
    assert parsed.records
