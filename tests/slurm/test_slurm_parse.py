"""Recorded answers of real daemons about jobs and nodes are read correctly; others give counted faults or SlurmError.

recorded/22.05 and 22.05-accounting are what daemons said (slurm_record.py), v0.0.39 and v0.0.41 the same in the layouts of
Slurm 23.02 to 24.11, by their published schema (https://slurm.schedmd.com/rest_api.html: v0.0.41_job_info, sinfo).
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rltune.errors import SlurmError, SlurmUnavailable
from rltune.slurm.answers import jobs_from_json, nodes_from_json
from rltune.slurm.records import Parsed, SlurmJob, SlurmNode
from rltune.slurm.resources import allocated_mb, gpus, requested_gpus, used_gpus
from rltune.slurm.values import Fault, Row, compress, expand

RECORDED = Path(__file__).parent / "recorded"
FOLDERS = ("22.05", "22.05-accounting", "v0.0.39", "v0.0.41")
EXPECTED = json.loads((RECORDED / "expected.json").read_text())
USUAL = {"nodes": 1, "cpus": 1, "mem_mb": None, "reason": "", "constraint": "", "shared": "OK", "held": False}
"""What expected.json does not say again."""


def answer_of(folder: str, name: str) -> dict[str, Any]:
    return json.loads((RECORDED / folder / name).read_text())


def read_jobs(folder: str) -> dict[str, list[SlurmJob]]:
    """Jobs of a recording by their names."""
    names = {number: name for name, number in answer_of(folder, "jobs.json").items()}
    read = jobs_from_json((RECORDED / folder / "squeue.json").read_text())
    assert not read.faults
    found: dict[str, list[SlurmJob]] = {}
    for job in sorted(read.records, key=lambda job: job.id):
        found.setdefault(names[job.array_id or job.het_id or job.id], []).append(job)
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_jobs_of_every_kind(folder):
    jobs, expected = read_jobs(folder), {name: [USUAL | row for row in rows] for name, rows in EXPECTED.items()}
    found = {name: [{key: getattr(job, key) for key in expected[name][0]} for job in jobs[name]] for name in jobs}
    assert found == expected
    has_accounts = folder in ("22.05-accounting", "v0.0.41")
    for job in (job for some in jobs.values() for job in some):
        assert (job.user, job.partition, job.account) == ("alice", "all", "alice" if has_accounts else "")
        assert job.gpus == sum(job.gpus_by_type.values()) and job.gpu_type in (None, *job.gpus_by_type)
        assert bool(job.node_names) == (job.state == "RUNNING") or job.state == "CANCELLED"
        assert (job.priority > 0) == (job.reason != "JobHeldUser")
    (typed,), (uneven,), (rest,), (dependent,), (later,) = (
        jobs[name] for name in ("typed", "uneven", "array", "dependent", "begin")
    )
    assert (
        typed.submit_s <= typed.start_s and typed.gpus_of_node == {typed.node_names[0]: 1} and typed.gpu_type == "p100"
    )
    assert uneven.node_names == ("p100-1", "p100-2") and uneven.gpus_of_node == {"p100-1": 4, "p100-2": 1}
    assert dependent.dependency.startswith(f"afterok:{typed.id}") and later.eligible_s > later.submit_s + 86000
    one, two = jobs["array running"]
    assert rest.array_id == rest.id and one.array_id == two.array_id and one.id != two.id and typed.array_id is None
    assert (rest.tasks, one.tasks, two.tasks, typed.tasks) == ("0-99", "2", "", ""), "one has its array's id"
    leader, other = jobs["het"]
    assert leader.het_id == leader.id == other.het_id != other.id and typed.het_id is None


def test_a_job_that_another_cluster_of_a_federation_has_started_waits_no_more():
    answer = answer_of("v0.0.41", "squeue.json")
    pending = next(job for job in answer["jobs"] if job["job_state"] == ["PENDING"])
    pending["job_state"] = ["PENDING", "REVOKED"]
    assert [job.state for job in jobs_from_json(json.dumps(answer)).records if job.id == pending["job_id"]] == [
        "REVOKED"
    ]


def test_types_of_requests_where_slurm_accounts_for_gpus_without_them():
    text = (RECORDED / "22.05-accounting" / "squeue.json").read_text()
    typed, untyped = (jobs_from_json(t).records for t in (text, re.sub(r",gres/gpu:\w+=\d+", "", text)))
    assert sum(job.gpu_type is not None for job in typed) > 9
    for ours, theirs in zip(untyped, typed, strict=True):
        assert (ours.asked_type, ours.gpu_type, ours.gpus) == (theirs.asked_type, theirs.gpu_type, theirs.gpus)
    fields = {"tres_per_job": "gres:gpu:4", "tres_per_node": "gres:gpu:p100:2"}
    assert requested_gpus(lambda key: fields.get(key, ""), 1, 1, 1) == {"p100": 4}, "on nodes not known yet"
    fields["tres_per_node"] = "gres:gpu:p100:2,gres:gpu:k80:2"
    assert requested_gpus(lambda key: fields.get(key, ""), 1, 1, 1) == {"p100": 2, "k80": 2}


@pytest.mark.parametrize("folder", FOLDERS)
def test_nodes(folder):
    read = nodes_from_json((RECORDED / folder / "sinfo.json").read_text())
    nodes = {node.name: node for node in read.records}
    assert not read.faults and list(nodes) == ["k80-1", "k80-2", "m40-1", "p100-1", "p100-2"]
    assert [name for name, node in nodes.items() if not node.usable] == ["k80-2", "m40-1"]
    k80, draining, down, p100 = (nodes[name] for name in ("k80-1", "k80-2", "m40-1", "p100-1"))
    assert "ALLOCATED" in k80.state and k80.cpus == k80.cpus_alloc == 16 and k80.gpus == k80.gpus_alloc == {"k80": 2}
    assert "DRAIN" in draining.state and draining.gpus_alloc == {"k80": 1}
    assert down.state == {"DOWN"} and down.gpus == {"m40": 1} and down.gpus_alloc == {}
    assert (p100.cpus, p100.mem_mb, p100.gpus) == (32, 262144, {"p100": 4}) and "MIXED" in p100.state
    assert p100.partitions == (("all", "another") if folder.startswith("v") else ("all",)), "a row for each"


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (gpus, "gpu:p100", {"p100": 1}),
        (gpus, "gpu:1K", {"": 1024}),
        (gpus, "gpu:(null):3(IDX:0,2-3)", {"": 3}),
        (gpus, "gres/gpu=4,gres/gpu:a=1", {"a": 1, "": 3}),
        (gpus, "gpu:p100:0(IDX:N/A)", {}),
        (gpus, "gpu:p100:no_consume:2", {"p100": 2}),
        (gpus, "gpu:p100(CNT:4)", {"p100": 4}),
        (gpus, "gpu:p100:4(S:0", "found 'gpu:p100:4"),
        (gpus, "gpu=many", "found 'gpu=many'"),
        (allocated_mb, "cpu=8,mem=2G,gres/gpu=4", 2048),
        (allocated_mb, "mem=1.5T", 1_572_864),
        (allocated_mb, "mem=700", 700),
        (allocated_mb, "cpu=1,gres/mem=5", None),
        (allocated_mb, "mem=0", None),
        (allocated_mb, "", None),
        (allocated_mb, "cpu=1,mem=12X", "tres_alloc_str: found mem='12X', expected memory"),
        (allocated_mb, "mem=,cpu=1", "tres_alloc_str: found mem='', expected memory"),
    ],
)
def test_gpus_and_memory_of_a_job(read, text, expected):
    """Spellings of GPUs that tests/traces does not have; a text that is expected is part of the error."""
    if isinstance(expected, str):
        with pytest.raises(Fault, match=re.escape(expected)):
            read(text)
    else:
        assert read(text) == expected


def test_lists_of_nodes():
    crossed = tuple(f"a{n}x{k}-y" for n in ("01", "02", "03", "7") for k in (0, 1))
    assert expand("k80-[1-2],a[01-03,7]x[0-1]-y,b") == ("k80-1", "k80-2", *crossed, "b")
    assert expand("n[098-101]") == ("n098", "n099", "n100", "n101") and expand("") == expand("(null)") == ()
    for typed in ("a[1-2], b", " a[1-2],b,", "a1\ta2 b", ",a1,, a2,b"):  # Slurm keeps what a user types
        assert expand(typed) == ("a1", "a2", "b"), typed
    assert expand(",") == ()
    for wrong in ("a[1-", "a]", "a[2-1]", "a[x]", "a[0-999999999]", "a[1-9999][1-9999]", "a[1, 2]", "a\nb", "a[[1]]"):
        with pytest.raises(Fault):
            expand(wrong)


@given(st.sets(st.from_regex(r"\A[a-z.-]{0,3}[0-9]{0,2}[a-z]?[0-9]{0,12}\Z").filter(bool), max_size=20))
def test_the_short_form_of_nodes_stands_for_the_same_nodes(names):
    short = compress(names)
    assert set(expand(short)) == names and len(expand(short)) == len(names)


def test_the_short_form_is_short():
    assert compress(f"k80-{n}" for n in (9, 1, 2, 3, 10)) == "k80-[1-3,9],k80-10" and compress([]) == ""
    assert compress(f"n{n:04}" for n in range(1000)) == "n[0000-0999]"


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_unset_and_infinite_numbers_depend_on_the_width_of_the_field(bits):
    nothing, without_end, seven = 2**bits - 2, 2**bits - 1, {"set": True, "infinite": False, "number": 7}

    def number(value: Any) -> float | None:
        return Row({"n": value}).number("n", bits)

    assert number(nothing) is None and number(without_end) == float("inf")
    assert number(seven) == number("7") == number(7) == 7
    assert number(seven | {"number": min(nothing, 2**32 - 2)}), "this dialect says itself what is not set"
    assert number(seven | {"set": False}) is None
    assert number(seven | {"set": False, "infinite": True}) == float("inf")


@pytest.mark.parametrize("value", [65534, 65535])
def test_numbers_that_are_unset_in_16_bits_only(value):
    """Ids, priorities, limits and memory of jobs and nodes, where they are plain numbers."""
    answer, machines = answer_of("22.05", "squeue.json"), answer_of("22.05", "sinfo.json")
    fields = dict.fromkeys(("job_id", "array_job_id", "priority", "time_limit", "cpus"), value)
    answer["jobs"] = [answer["jobs"][0] | fields]
    machines["nodes"] = [machines["nodes"][0] | {"real_memory": value, "alloc_memory": value}]
    read, nodes = jobs_from_json(json.dumps(answer)), nodes_from_json(json.dumps(machines))
    assert read.faults == () == nodes.faults
    (job,), (node,) = read.records, nodes.records
    assert (job.id, job.array_id, job.priority, job.cpus, job.held) == (value, value, value, value, False)
    assert job.time_limit_s == value * 60 and (node.mem_mb, node.mem_alloc_mb) == (value, value)


def test_a_broken_record_is_named_and_the_others_stand():
    answer = answer_of("22.05", "squeue.json")
    whole = len(answer["jobs"])
    answer["jobs"][3]["submit_time"] = "soon"
    answer["jobs"][5]["tres_per_node"] = "gpu:a:b:c"
    answer["jobs"][7] = None
    answer["jobs"][9]["job_id"] = -3
    read = jobs_from_json(json.dumps(answer))
    assert len(read.records) == whole - 4 and len(read.faults) == 4
    wrong = answer["jobs"][3]["job_id"]
    assert read.faults[0] == f"record 3 (job {wrong}): submit_time: found 'soon', expected a number"
    assert "gpu:a:b:c" in read.faults[1] and "job_id: found -3" in read.faults[3]


def test_lists_of_excluded_nodes_as_users_type_them():
    answer = answer_of("22.05", "squeue.json")
    for job in answer["jobs"]:
        job["excluded_nodes"] = "k80-1,, k80-2"
    read = jobs_from_json(json.dumps(answer))
    assert not read.faults and {job.excluded for job in read.records} == {frozenset({"k80-1", "k80-2"})}


@pytest.mark.parametrize(
    ("said", "tasks"),
    [("4", "4"), ("0", "0"), ("1-3,7%2", "1-3,7"), ("0-20:8%2", "0,8,16"), ("1;shutdown", None), ("1-2 3", None)],
)
def test_tasks_that_the_rest_of_an_array_stands_for(said, tasks):
    """scontrol takes no intervals, and gets nothing but numbers."""
    answer = answer_of("22.05", "squeue.json")
    answer["jobs"] = [job | {"array_task_string": said} for job in answer["jobs"] if job["array_task_string"]]
    read = jobs_from_json(json.dumps(answer))
    assert [job.tasks for job in read.records] == ([] if tasks is None else [tasks])
    assert len(read.faults) == (tasks is None) and all("expected tasks of an array" in fault for fault in read.faults)


@pytest.mark.parametrize(
    ("has", "used", "expected"),
    [
        ("gpu:a:4,shard:a:16", "gpu:a:0(IDX:N/A),shard:a:3(1/4,2/4,0/4,0/4)", {"a": 2}),
        ("gpu:a:4(S:0-1),shard:16", "gpu:a:1(IDX:3),shard:2(2/4,0/4,0/4,0/4)", {"a": 2}),
        ("gpu:a:4,shard:16", "gpu:1(IDX:3),shard:2(2/4,0/4,0/4,0/4)", {"a": 2}),
        ("gpu:a:2,gpu:b:2,mps:400", "gpu:a:0,gpu:b:1(IDX:2),mps:a:50(50/100,0/100)", {"a": 1, "b": 1}),
        ("gpu:a:4,shard:a:16", "gpu:a:0(IDX:N/A),shard:a:0(0/4,0/4,0/4,0/4)", {}),
    ],
)
def test_a_gpu_with_shards_in_use_is_in_use(has, used, expected):
    assert used_gpus(has, used) == expected


@pytest.mark.parametrize("each", ["gres:gpu:24", "gres/gpu:24"])
def test_processors_that_are_requested_for_each_gpu(each):
    """--cpus-per-gpu: while the job waits, Slurm's own count is one for each task."""
    answer = answer_of("22.05", "squeue.json")
    waiting = next(job for job in answer["jobs"] if job["job_state"] == "PENDING" and job["tres_per_node"])
    asked = {"tres_per_node": "gres:gpu:2", "node_count": 1, "cpus": 1, "cpus_per_tres": each, "memory_per_cpu": 100}
    (job,) = jobs_from_json(json.dumps(answer | {"jobs": [waiting | asked]})).records
    assert (job.gpus, job.cpus, job.mem_mb) == (2, 48, 4800)


@pytest.mark.parametrize("folder", FOLDERS)
def test_jobs_that_slurm_spreads_over_as_many_nodes_as_it_needs(folder):
    found = {name for name, jobs in read_jobs(folder).items() for job in jobs if job.spreads}
    assert found == {"per-job-untyped"}, "--gpus without --nodes"


@pytest.mark.parametrize("memory", ["gres:gpu:61440", "gres/gpu:61440"])
def test_memory_that_is_requested_for_each_gpu(memory):
    """--mem-per-gpu=60G, as Slurm 22.05 and later versions write it."""
    answer = answer_of("22.05", "squeue.json")
    waiting = next(job for job in answer["jobs"] if job["job_state"] == "PENDING" and job["tres_per_node"])
    asked = {"tres_per_node": "gres:gpu:2", "memory_per_tres": memory, "memory_per_node": None, "memory_per_cpu": None}
    (job,) = jobs_from_json(json.dumps(answer | {"jobs": [waiting | asked]})).records
    assert (job.gpus, job.mem_mb) == (2, 122_880)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"tres_per_node": "gres:gpu:999999999G", "node_count": 9}, "GPUs"),
        ({"tres_per_node": "gres:gpu:1000001"}, "GPUs"),
        ({"tres_per_node": "gres:gpu:1000000", "cpus": 1_000_000}, ""),
        ({"tres_per_node": "gres:gpu:2", "node_count": 1, "cpus_per_tres": "gres:gpu:999999999"}, "CPUs"),
        ({"cpus": 1_000_001}, "CPUs"),
        ({"node_count": 1_000_001, "tres_per_node": ""}, "nodes"),
    ],
)
def test_a_request_too_large_for_any_cluster_cannot_be_read(fields, found):
    """The simulator's whole numbers could not hold some of them."""
    answer = answer_of("22.05", "squeue.json")
    waiting = next(job for job in answer["jobs"] if job["job_state"] == "PENDING" and job["tres_per_node"])
    read = jobs_from_json(json.dumps(answer | {"jobs": [waiting | fields]}))
    assert len(read.records) == (not found) and all(f"{found}, expected at most 1000000" in f for f in read.faults)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"jobs": 3, "nodes": 3}', "[" * 100_000])
def test_what_is_no_answer_at_all(text):
    for read in (jobs_from_json, nodes_from_json):
        with pytest.raises(SlurmError, match="--json"):
            read(text)


def test_slurm_says_it_cannot_answer():
    error = {"description": "Failed while looking for jobs", "error_number": -1, "source": "slurm_load_jobs"}
    with pytest.raises(SlurmUnavailable, match="slurm_load_jobs, Failed while looking for jobs"):
        jobs_from_json(json.dumps({"errors": [error], "jobs": []}))


def test_several_nodes_in_a_row_cannot_be_distinguished_once_some_are_in_use():
    answer = answer_of("v0.0.41", "sinfo.json")
    used, free = answer["sinfo"][0], answer["sinfo"][4]
    for row in (used, free):
        row["nodes"]["nodes"] = ["x-1", "x-2"]
    answer["sinfo"] = [used, free]
    read = nodes_from_json(json.dumps(answer))
    assert [node.name for node in read.records] == ["x-1", "x-2"] and "expected a row a node" in read.faults[0]


def test_a_node_that_is_there_twice_is_one_with_all_its_partitions():
    answer = answer_of("22.05", "sinfo.json")
    again = answer["nodes"][0] | {"partitions": ["more"]}
    names = [node.name for node in nodes_from_json(json.dumps(answer)).records]
    read = nodes_from_json(json.dumps(answer | {"nodes": [*answer["nodes"], again]}))
    assert [node.name for node in read.records] == names and read.records[0].partitions[-1] == "more"


ANSWERS = [
    (read, answer_of(folder, file))
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
def test_any_value_anywhere(k, data):
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
def test_any_answer(read, text):
    try:
        sound(read(text))
    except SlurmError as error:
        assert str(error)
