"""Whatever Slurm may say, reading it gives records and counted faults, or the one error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rltune.errors import SlurmError
from rltune.slurm.answers import jobs_from_json, nodes_from_json
from rltune.slurm.records import Parsed, SlurmJob, SlurmNode

RECORDED = Path(__file__).parent / "recorded"
ANSWERS = [
    (read, json.loads((RECORDED / folder / file).read_text()))
    for folder in ("22.05", "v0.0.41")
    for read, file in ((jobs_from_json, "squeue.json"), (nodes_from_json, "sinfo.json"))
]
SLURMS_TEXTS = st.sampled_from(
    "N/A (null) gpu gpu:2 gpu:p100:4(S:0-1) gres/gpu=4 gpu:(null):1(IDX:0) n[1-3] n[1- n[1-3][4-5] mem=4G,gres/gpu=1 "
    "UNLIMITED 1-02:03:04 PENDING RUNNING COMPLETING none 4G idle* gpu:p100:x (( a,b 999999999999999999999 -1 NaN".split()
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | SLURMS_TEXTS
    | st.fixed_dictionaries(
        {"set": st.booleans(), "infinite": st.booleans(), "number": st.integers() | st.floats() | st.none()}
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def sound(read: Parsed[Any]) -> None:
    """Records hold what their types say, and faults are lines."""
    for record in read.records:
        if isinstance(record, SlurmJob):
            assert record.id > 0 and record.gpus == sum(record.gpus_by_type.values()) and record.state
            assert record.time_limit_s is None or 0 <= record.time_limit_s < float("inf")
            assert all(isinstance(name, str) and name for name in record.node_names)
            assert record.mem_mb is None or record.mem_mb >= 0
        else:
            assert isinstance(record, SlurmNode) and record.name and record.state
            assert all(n > 0 for n in (*record.gpus.values(), *record.gpus_alloc.values())) and record.cpus >= 0
    assert all(isinstance(fault, str) and fault.startswith("record ") for fault in read.faults)


@pytest.mark.parametrize("k", range(len(ANSWERS)))
@given(data=st.data())
def test_any_value_anywhere(k: int, data: st.DataObject) -> None:
    read, whole = ANSWERS[k]
    key = next(key for key in ("jobs", "nodes", "sinfo") if key in whole)
    item = json.loads(json.dumps(data.draw(st.sampled_from(whole[key]))))
    for _ in range(data.draw(st.integers(1, 4))):
        here, field = item, data.draw(st.sampled_from(sorted(item)))
        if isinstance(here[field], dict) and here[field] and data.draw(st.booleans()):
            here, field = here[field], data.draw(st.sampled_from(sorted(here[field])))
        if data.draw(st.booleans()):
            here[field] = data.draw(VALUES)
        else:
            del here[field]
    parsed = read(json.dumps({**whole, key: [whole[key][0], item, data.draw(VALUES)]}))
    sound(parsed)
    assert parsed.records, "the first one stands"


@pytest.mark.parametrize("read", [jobs_from_json, nodes_from_json])
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
