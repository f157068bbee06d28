"""What Slurm says of jobs and nodes, recorded from real daemons, becomes the records that it means."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from slurm_newer import newer_jobs, newer_nodes

from rltune.errors import SlurmError, SlurmUnavailable
from rltune.slurm.answers import (
    JOB_COLUMNS,
    NODE_COLUMNS,
    jobs_from_json,
    jobs_from_text,
    nodes_from_json,
    nodes_from_text,
)
from rltune.slurm.records import SlurmJob, SlurmNode
from rltune.slurm.resources import gpus
from rltune.slurm.values import Fault, array_tasks, duration, expand, memory, number

RECORDED = Path(__file__).parent / "recorded"
FORMS = ("json", "text", "json v0.0.39", "json v0.0.41")


def read_jobs(folder: str, form: str) -> dict[str, list[SlurmJob]]:
    """Jobs of a recording by their names, which the text does not hold."""
    names = {number: name for name, number in json.loads((RECORDED / folder / "jobs.json").read_text()).items()}
    text = (RECORDED / folder / "squeue.json").read_text()
    if form == "text":
        read = jobs_from_text((RECORDED / folder / "squeue.txt").read_text())
    elif form == "json":
        read = jobs_from_json(text)
    else:
        read = jobs_from_json(json.dumps(newer_jobs(json.loads(text), form.endswith("41"))))
    assert not read.faults
    found: dict[str, list[SlurmJob]] = {}
    for job in read.records:
        found.setdefault(names.get(job.array_id or job.het_id or job.id, "?"), []).append(job)
    return found


@pytest.fixture(params=["22.05", "22.05-accounting"])
def folder(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def jobs(folder: str, form: str) -> dict[str, list[SlurmJob]]:
    return read_jobs(folder, form)


def test_every_job_is_there(jobs: dict[str, list[SlurmJob]], folder: str, form: str) -> None:
    names = set(json.loads((RECORDED / folder / "jobs.json").read_text()))
    assert set(jobs) == (names - {"cancelled"} if form == "text" else names)


@pytest.mark.parametrize(
    ("name", "gpu_count", "gpu_type", "nodes"),
    [
        ("typed", 1, "p100", 1),
        ("per-node", 8, "p100", 2),
        ("per-job", 6, "p100", 2),
        ("per-job-untyped", 5, None, 2),
        ("per-task", 4, "p100", 1),
        ("per-socket", 4, "p100", 2),
        ("bare", 1, None, 1),
        ("array", 1, "p100", 1),
        ("whole nodes", 2, "p100", 1),
        ("cpu-only", 0, None, 1),
        ("on-draining", 1, "k80", 1),
    ],
)
def test_gpus(jobs: dict[str, list[SlurmJob]], name: str, gpu_count: int, gpu_type: str | None, nodes: int) -> None:
    (job,) = jobs[name]
    assert (job.gpus, job.gpu_type, job.nodes) == (gpu_count, gpu_type, nodes)
    assert sum(job.gpus_by_type.values()) == gpu_count


def test_a_running_job(jobs: dict[str, list[SlurmJob]]) -> None:
    (job,) = jobs["typed"]
    assert (job.state, job.user, job.partition, job.mem_mb, job.cpus) == ("RUNNING", "alice", "all", 1000, 8)
    assert job.time_limit_s == 90 * 60 and job.end_limit_s == job.start_s + job.time_limit_s
    assert job.submit_s <= job.start_s and not job.held and job.reason == ""
    assert job.gpus_of_node == {job.node_names[0]: 1}


def test_gpus_of_each_node_of_a_running_job(jobs: dict[str, list[SlurmJob]], form: str) -> None:
    (job,) = jobs["uneven"]
    assert job.node_names == ("p100-1", "p100-2") and job.gpus == 5
    assert job.gpus_of_node == (None if form == "text" else {"p100-1": 4, "p100-2": 1})


def test_no_limit(jobs: dict[str, list[SlurmJob]]) -> None:
    (job,) = jobs["untyped"]
    assert job.time_limit_s is None and job.end_limit_s is None and job.tasks == 2 and job.constraint == "p100"


def test_a_waiting_array_is_one_record(jobs: dict[str, list[SlurmJob]]) -> None:
    (rest,) = jobs["array"]
    assert rest.array_tasks == 100 and rest.array_id == rest.id and rest.constraint == "p100|k80"
    one, two = jobs["array running"]
    assert one.array_tasks == two.array_tasks == 1 and one.array_id == two.array_id and one.id != two.id
    assert {one.state, two.state} == {"RUNNING"}


def test_parts_of_a_het_job(jobs: dict[str, list[SlurmJob]]) -> None:
    leader, other = sorted(jobs["het"], key=lambda job: job.id)
    assert leader.het_id == leader.id == other.het_id != other.id
    assert (leader.gpu_type, other.gpu_type) == ("p100", "k80")
    assert all(job.het_id is None for job in jobs["typed"])


def test_held_dependent_later(jobs: dict[str, list[SlurmJob]]) -> None:
    (held,), (dependent,), (later,), (plain,) = (jobs[n] for n in ("held", "dependent", "begin", "per-job"))
    assert held.held and held.priority == 0 and held.reason == "JobHeldUser"
    assert dependent.dependency.startswith(f"afterok:{jobs['typed'][0].id}") and not dependent.held
    assert later.reason == "BeginTime" and later.eligible_s > later.submit_s + 86000
    assert plain.priority > 0 and plain.dependency == "" and not plain.held
    (again,) = jobs["requeued"]
    assert again.state == "PENDING" and again.node_names == () and again.gpus_of_node is None


def test_over_subscription(jobs: dict[str, list[SlurmJob]]) -> None:
    assert [jobs[n][0].shared for n in ("typed", "whole nodes", "oversubscribing")] == ["OK", "NO", "YES"]


def test_accounts_where_slurm_keeps_them() -> None:
    for form in FORMS:
        assert {job.account for jobs in read_jobs("22.05", form).values() for job in jobs} == {""}
        assert {job.account for jobs in read_jobs("22.05-accounting", form).values() for job in jobs} == {"alice"}


def test_odd_names(folder: str) -> None:
    found = read_jobs(folder, "json")
    assert {j.name for n in ("ünïcödé", "pipes | and spaces = odd\tname") for j in found[n]} == {
        "ünïcödé",
        "pipes | and spaces = odd\tname",
    }


@pytest.mark.parametrize("newer", ["json v0.0.39", "json v0.0.41"])
def test_all_versions_say_the_same(folder: str, newer: str) -> None:
    assert read_jobs(folder, newer) == read_jobs(folder, "json")


def test_text_says_the_same_as_far_as_it_goes(folder: str) -> None:
    by_json, by_text = read_jobs(folder, "json"), read_jobs(folder, "text")
    for name, jobs in by_text.items():
        pairs = (sorted(jobs, key=lambda job: job.id) for jobs in (by_json[name], jobs))
        for one, other in zip(*pairs, strict=True):
            unsaid = {"name": ""}
            if name in ("uneven", "untyped"):
                unsaid |= {
                    "gpus_of_node": other.gpus_of_node,
                    "gpus_by_type": other.gpus_by_type,
                    "gpu_type": other.gpu_type,
                }
            if name == "cpu-only":
                unsaid["mem_mb"] = other.mem_mb  # for each CPU, which the text does not tell
            assert replace(one, **unsaid) == other


def read_nodes(folder: str, form: str) -> dict[str, SlurmNode]:
    text = (RECORDED / folder / "sinfo.json").read_text()
    if form == "text":
        read = nodes_from_text((RECORDED / folder / "sinfo.txt").read_text())
    elif form.endswith("41"):
        read = nodes_from_json(json.dumps(newer_nodes(json.loads(text))))
    else:
        read = nodes_from_json(text)
    assert not read.faults
    return {node.name: node for node in read.records}


def test_nodes(folder: str, form: str) -> None:
    nodes = read_nodes(folder, form)
    assert list(nodes) == ["k80-1", "k80-2", "m40-1", "p100-1", "p100-2"]
    assert [name for name, node in nodes.items() if not node.usable] == ["k80-2", "m40-1"]
    k80, draining, down, p100 = (nodes[name] for name in ("k80-1", "k80-2", "m40-1", "p100-1"))
    assert "ALLOCATED" in k80.state and k80.cpus == k80.cpus_alloc == 16 and k80.gpus == k80.gpus_alloc == {"k80": 2}
    assert "DRAIN" in draining.state and draining.reason == "fan | broken" and draining.gpus_alloc == {"k80": 1}
    assert down.state == {"DOWN"} and down.gpus == {"m40": 1} and down.gpus_alloc == {}
    assert (p100.cpus, p100.mem_mb, p100.gpus, p100.features) == (32, 262144, {"p100": 4}, ("p100",))
    assert p100.partitions == (("all", "another") if form.endswith("41") else ("all",)) and "MIXED" in p100.state


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:p100:4(S:0-1)", {"p100": 4}),
        ("gres/gpu=4", {"": 4}),
        ("gres/gpu:p100=2", {"p100": 2}),
        ("gpu:2", {"": 2}),
        ("gpu", {"": 1}),
        ("gpu:p100", {"p100": 1}),
        ("gres:gpu:p100:2", {"p100": 2}),
        ("gres/gpu:p100:2", {"p100": 2}),
        ("gpu:(null):3(IDX:0,2-3)", {"": 3}),
        ("gpu:3090:2", {"3090": 2}),
        ("gpu:a:1,gpu:b:2(S:0)", {"a": 1, "b": 2}),
        ("cpu=8,mem=2G,gres/gpu=4,gres/gpu:p100=4", {"p100": 4}),
        ("gres/gpu=4,gres/gpu:a=1", {"a": 1, "": 3}),
        ("lustre:400G,gpu:2,gres/gpumem=80G,shard:8", {"": 2}),
        ("gpu:p100:0(IDX:N/A)", {}),
        ("", {}),
        ("N/A", {}),
        ("(null)", {}),
        ("gpu:1K", {"": 1024}),
        ("gpu:p100:no_consume:2", {"p100": 2}),
    ],
)
def test_spellings_of_gpus(text: str, expected: dict[str, int]) -> None:
    assert gpus(text) == expected


@pytest.mark.parametrize("text", ["gpu:a:b:c", "gpu:p100:4(S:0", "gpu=many", "gpu:a:-2"])
def test_wrong_spellings_of_gpus(text: str) -> None:
    with pytest.raises(Fault, match="found"):
        gpus(text)


def test_lists_of_nodes() -> None:
    assert expand("k80-[1-2],a[01-03,7]x[0-1]-y,b") == (
        "k80-1",
        "k80-2",
        "a01x0-y",
        "a01x1-y",
        "a02x0-y",
        "a02x1-y",
        "a03x0-y",
        "a03x1-y",
        "a7x0-y",
        "a7x1-y",
        "b",
    )
    assert expand("n[098-101]") == ("n098", "n099", "n100", "n101") and expand("") == expand("(null)") == ()
    for wrong in ("a[1-", "a]", "a[2-1]", "a[x]", "a[0-999999999]", "a[1-9999][1-9999]", "a b", ",", "a[[1]]"):
        with pytest.raises(Fault):
            expand(wrong)


def test_times_and_amounts() -> None:
    days = [duration(text, "t") for text in ("1-02:03:04", "2-12", "45", "10:30", "1:00:00", "UNLIMITED")]
    assert days == [93784, 216000, 2700, 630, 3600, None]
    assert memory("2G", "m") == (2048, "") and memory("10Mc", "m") == (10, "c") and memory("0", "m") is None
    assert [array_tasks(text) for text in ("2-99%3", "0-98:2", "1,3,5-9", "0x1f", "7")] == [98, 50, 7, 5, 1]
    assert number({"set": True, "infinite": False, "number": 7}, "n") == number("7", "n") == number(7, "n") == 7
    assert number({"set": False, "infinite": False, "number": 0}, "n") is None is number(4294967294, "n")
    assert number({"set": False, "infinite": True, "number": 0}, "n") == number(4294967295, "n") == float("inf")


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_what_slurm_writes_for_nothing_and_without_end_goes_by_the_width_of_the_field(bits: int) -> None:
    nothing, without_end = 2**bits - 2, 2**bits - 1
    if bits < 64:  # no text is as long
        assert number(str(nothing), "n", bits) is None and number(str(without_end), "n", bits) == float("inf")
    assert number(nothing, "n", bits) is None and number(without_end, "n", bits) == float("inf")
    told = {"set": True, "infinite": False, "number": min(nothing, 2**32 - 2)}
    assert number(told, "n", bits) == told["number"], "this dialect says itself what is not set"


@pytest.mark.parametrize("value", [65534, 65535])
@pytest.mark.parametrize("form", FORMS)
def test_numbers_that_mean_nothing_in_16_bits_are_numbers_in_wider_fields(form: str, value: int) -> None:
    """Ids, priorities, limits and memory of jobs and nodes."""
    fields = {"job_id": value, "array_job_id": value, "priority": value, "time_limit": value, "cpus": value}
    if form == "text":
        line = (RECORDED / "22.05" / "squeue.txt").read_bytes().split(b"\n")[0]
        told = {"JobID": value, "ArrayJobID": value, "ArrayTaskID": 3, "PriorityLong": value, "NumCPUs": value}
        read = jobs_from_text(_with_cells(line, JOB_COLUMNS, told | {"TimeLimit": "45-12:15:00"}))
        node = (RECORDED / "22.05" / "sinfo.txt").read_bytes().split(b"\n")[0]
        nodes = nodes_from_text(_with_cells(node, NODE_COLUMNS, {"Memory": value, "AllocMem": value}))
    else:
        answer = json.loads((RECORDED / "22.05" / "squeue.json").read_text())
        answer["jobs"] = [job | fields for job in answer["jobs"][:1]]
        machines = json.loads((RECORDED / "22.05" / "sinfo.json").read_text())
        machines["nodes"] = [machines["nodes"][0] | {"real_memory": value, "alloc_memory": value}]
        if form != "json":
            answer = newer_jobs(answer, form.endswith("41"))
            machines = newer_nodes(machines)
        read, nodes = jobs_from_json(json.dumps(answer)), nodes_from_json(json.dumps(machines))
    assert read.faults == () == nodes.faults
    (job,), (node_,) = read.records, nodes.records
    assert (job.id, job.array_id, job.priority, job.cpus, job.held) == (value, value, value, value, False)
    assert job.time_limit_s == (65535 * 60 if form == "text" else value * 60)
    assert (node_.mem_mb, node_.mem_alloc_mb) == (value, value)


def _with_cells(line: bytes, columns: dict[str, int], told: dict[str, object]) -> str:
    """A line with other values in some of its columns."""
    at, cells = 0, []
    for name, width in columns.items():
        cells.append(str(told[name]).encode().ljust(width) if name in told else line[at : at + width])
        at += width
    return b"".join(cells).decode()


def test_a_broken_record_is_named_and_the_others_stand() -> None:
    answer = json.loads((RECORDED / "22.05" / "squeue.json").read_text())
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


def test_a_column_that_may_be_cut_off_is_a_fault() -> None:
    lines = (RECORDED / "22.05" / "squeue.txt").read_bytes().split(b"\n")
    at = sum(list(JOB_COLUMNS.values())[: list(JOB_COLUMNS).index("NodeList")])
    lines[2] = lines[2][:at] + b"n" * JOB_COLUMNS["NodeList"] + lines[2][at + JOB_COLUMNS["NodeList"] :]
    read = jobs_from_text(b"\n".join([*lines, b"slurm: a warning"]).decode())
    assert len(read.faults) == 2 and len(read.records) == len(lines) - 2
    assert "NodeList: fills its 1024 bytes" in read.faults[0] and "found a line of 16 bytes" in read.faults[1]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"jobs": 3, "nodes": 3}', "slurm_load_jobs error: no"])
def test_what_is_no_answer_at_all(text: str) -> None:
    for read in (jobs_from_json, nodes_from_json):
        with pytest.raises(SlurmError, match="--json"):
            read(text)


def test_no_answer_in_text() -> None:
    for read, columns in ((jobs_from_text, JOB_COLUMNS), (nodes_from_text, NODE_COLUMNS)):
        assert read("").records == () == read("\n\n").faults
        with pytest.raises(SlurmError, match=f"expected lines of {sum(columns.values())} bytes"):
            read("Invalid job format specification: JobID\n")


def test_slurm_says_it_cannot_answer() -> None:
    with pytest.raises(SlurmUnavailable, match="slurm_load_jobs, Failed while looking for jobs"):
        jobs_from_json(
            json.dumps(
                {
                    "errors": [
                        {
                            "description": "Failed while looking for jobs",
                            "error_number": -1,
                            "source": "slurm_load_jobs",
                        }
                    ],
                    "jobs": [],
                }
            )
        )


def test_several_nodes_in_a_row_cannot_be_told_apart_once_some_are_in_use() -> None:
    answer = newer_nodes(json.loads((RECORDED / "22.05" / "sinfo.json").read_text()))
    used, free = answer["sinfo"][0], answer["sinfo"][4]
    for row in (used, free):
        row["nodes"]["nodes"] = ["x-1", "x-2"]
    answer["sinfo"] = [used, free]
    read = nodes_from_json(json.dumps(answer))
    assert [node.name for node in read.records] == ["x-1", "x-2"] and "expected a row a node" in read.faults[0]
