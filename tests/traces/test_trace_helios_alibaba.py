"""The Helios and PAI readers on hand-written files."""

from pathlib import Path

import pytest
from raw_cases import HELIOS_HEADER as HEADER, cleaned, rows, trace_config, write_zip

from rltune.errors import DataError
from rltune.traces.clean import clean_trace
from rltune.traces.raw import csv_text
from rltune.traces.readers import alibaba2020
from rltune.traces.synthetic.archives import write_tar_gz

HELIOS = [
    HEADER,
    "1,u1,vcA,8,48,1,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:00:10,2020-04-01 10:01:10,60,10",
    "2,u1,vcA,0,4,1,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:00:10,2020-04-01 10:01:10,60,10",
    "3,u2,vcB,1,6,1,CANCELLED by 1034,2020-04-01 10:00:05,2020-04-01 10:00:05,2020-04-01 10:00:05,0,0",
    "4,u2,vcB,1,6,1,TIMEOUT,2020-04-01 10:00:06,,,30,5",
    "5,u2,vcB,1,0,1,STRANGE,2020-04-01 10:00:07,2020-04-01 10:00:09,2020-04-01 10:01:09,,",
    "6,u2,vcB,many,6,1,FAILED,2020-04-01 10:00:08,2020-04-01 10:00:09,2020-04-01 10:01:09,60,1",
    "7,u2,vcB,1,6,1,NODE_FAIL,not a time,2020-04-01 10:00:09,2020-04-01 10:01:09,60,1",
    "8,u2,vcB,1,6,1,FAILED,2020-04-01 10:00:08,2020-04-01 10:00:09,2020-04-01 10:01:09,60,1,surplus",
]


def test_helios(tmp_path):
    other = HEADER + "\n99,u,vc,1,1,1,COMPLETED,2020-04-01 10:00:00,,,5,0\n"
    logs = {"data/Earth/cluster_log.csv": other, "data/Venus/cluster_log.csv": "\n".join(HELIOS) + "\n"}
    write_zip(tmp_path / "data.zip", logs)
    clean = clean_trace("t", trace_config("helios"), tmp_path)
    assert rows(clean, "run_s wait_s status cpus") == [
        ["1", 60, 10, "passed", 48],
        ["4", 30, 5, "failed", 6],
        ["5", 60, 2, "unknown", None],
    ]
    assert clean.audit.rows_read == 8
    assert clean.audit.left_out == {
        "row with too many fields": 1,
        "CPU job (gpu_num 0)": 1,
        "no submission time": 1,
        "run time zero": 1,
        "no GPU count": 1,
    }
    assert clean.meta.t0 == "2020-04-01T10:00:00.000+08:00"
    assert clean_trace("t", trace_config("helios", part="Earth"), tmp_path).jobs["job_id"].tolist() == ["99"]
    with pytest.raises(DataError, match="holds no file Saturn/cluster_log.csv"):
        clean_trace("t", trace_config("helios", part="Saturn"), tmp_path)


def test_helios_without_optional_columns(tmp_path):
    text = "job_id,user,vc,gpu_num,state,submit_time,duration\n1,u,v,1,,2020-04-01 10:00:00,5\n"
    jobs = cleaned(tmp_path / "cluster_log.csv", text, "helios").jobs
    assert jobs[["run_s", "status"]].values.tolist() == [[5, "unknown"]] and jobs["wait_s"].isna().all()


def test_shares_of_a_gpu_are_rounded_up_in_formats_of_whole_ones_too(tmp_path):
    rows = "".join(f"{k},u,v,{gpus},,2020-04-01 10:00:00,5\n" for k, gpus in enumerate((0.5, 2.7, 2)))
    text = f"job_id,user,vc,gpu_num,state,submit_time,duration\n{rows}"
    found = cleaned(tmp_path / "cluster_log.csv", text, "helios")
    assert found.jobs["gpus"].tolist() == [1, 3, 2] and any("rounded up" in note for note in found.audit.noted)


def test_helios_four_clusters_at_once(tmp_path):
    row = "1,u1,{vc},{n},6,1,COMPLETED,2020-04-0{n} 10:00:00,,,{run},{n}\n"
    logs = {
        f"data/{part}/cluster_log.csv": f"{HEADER}\n{row.format(vc=vc, n=n, run=60 * n)}"
        for n, (part, vc) in enumerate((("Earth", "vcA"), ("Saturn", "vcA"), ("Uranus", ""), ("Venus", "vcA")), 1)
    }
    logs["data/Saturn/cluster_log.csv"] += ",u1,vcA,1,6,1,COMPLETED,2020-04-01 10:00:00,,,5,0\n"
    write_zip(tmp_path / "data.zip", logs)
    clean = clean_trace("t", trace_config("helios", part="all"), tmp_path)
    assert rows(clean, "vc gpus submit_s") == [
        ["Earth/1", "Earth/vcA", 1, 0],
        ["Saturn/1", "Saturn/vcA", 2, 86_400],
        ["Uranus/1", None, 3, 2 * 86_400],
        ["Venus/1", "Venus/vcA", 4, 3 * 86_400],
    ]
    assert clean.audit.rows_read == 5 and clean.audit.left_out == {"no job id": 1}
    expected = r"cluster_log.csv: found one file.*expected the folder or the archive .data.zip."
    with pytest.raises(DataError, match=expected):
        cleaned(tmp_path / "cluster_log.csv", "", "helios", part="all")


PAI = trace_config("alibaba2020")
JOBS = ["j1,i1,alice,Terminated,1000,2000", "j2,i2,bob,Failed,1010,2000", "j3,i3,carol,Terminated,,2000"]
TASKS = [
    "j1,worker,3,Terminated,1005,1105,600,29.3,50,V100",  # 3 × half a GPU: 1.5, so 2
    "j1,ps,2,Terminated,1005,1105,300,10,,",  # CPU task
    "j2,worker,4,Failed,1015,1105,600,20,100,T4",
    "j2,tensorflow,4,Terminated,1015,1115,600,20,100,",
    "j2,evaluator,1,Terminated,1015,,600,20,100,T4",
    "j2,chief,1,Terminated,1015,1015,600,20,100,T4",
    "j2,other,1,Running,1015,,600,20,100,T4",
    "j3,worker,1,Terminated,1015,1020,600,20,100,T4",
    "j9,worker,1,Terminated,1015,1020,600,20,100,T4",
    "j2,late,1,Waiting,,,600,20,100,T4",
    "j2,bad,x,Terminated,1015,1020,600,20,100,T4",
]


def test_alibaba(tmp_path):
    write_tar_gz(tmp_path / "pai_job_table.tar.gz", {"pai_job_table.csv": "\n".join(JOBS) + "\n"})
    clean = clean_trace("t", PAI, write(tmp_path, task=TASKS))
    assert rows(clean, "gpus cpus mem_gb wait_s run_s submit_s user gpu_type") == [
        ["j1/worker", 2, 18, 87.9, 5, 100, 0, "alice", "V100"],
        ["j2/tensorflow", 4, 24, 80, 5, 100, 10, "bob", None],
    ]
    assert clean.audit.left_out == {
        "CPU task (no plan_gpu)": 2,  # with the one whose inst_num is not a number
        "task Failed": 1,
        "no start or end time": 1,
        "task Running": 1,
        "task's job is not in the job table": 1,
        "task Waiting": 1,
        "no submission time": 1,
        "run time zero": 1,
    }


EARLY = ["j1,i1,a,Failed,early,2", "j2,i2,b,Failed,late,2"]


@pytest.mark.parametrize(
    ("jobs", "tasks", "message"),
    [
        (EARLY, TASKS, "pai_job_table.csv: job start_time: 2 of 2.*'early'"),
        (JOBS, [TASKS[0] + ",surplus"], "pai_task_table.csv: no rows with 10 columns"),
        (JOBS, [",".join(alibaba2020.TASK_COLUMNS), *TASKS], "pai_task_table.csv: has a header row"),
        (JOBS, None, "expected pai_task_table.csv or pai_task_table.tar.gz"),
    ],
)
def test_alibaba_damage(jobs, tasks, message, tmp_path):
    folder = write(tmp_path, job=jobs) if tasks is None else write(tmp_path, job=jobs, task=tasks)
    with pytest.raises(DataError, match=message):
        clean_trace("t", PAI, folder)


def test_alibaba_rows_without_names_have_no_job_id(tmp_path):
    jobs = [*JOBS, ",i8,dan,Terminated,1000,2000"]
    tasks = [TASKS[0], ",,1,Terminated,1005,1105,600,20,100,T4", "j1,,1,Terminated,1005,1105,600,20,100,T4"]
    clean = clean_trace("t", PAI, write(tmp_path, job=jobs, task=tasks))
    assert clean.jobs["job_id"].tolist() == ["j1/", "j1/worker"]
    assert clean.audit.left_out == {"task's job is not in the job table": 1}


def write(folder: Path, **tables: list[str]) -> Path:
    for name, lines in tables.items():
        (folder / f"pai_{name}_table.csv").write_text("".join(line + "\n" for line in lines))
    return folder


TIMED = [
    "j1,worker,3,Terminated,1005,1105,600,29.3,100,V100",
    "j1,ps,1,Terminated,1005,1105,600,29.3,100,V100",
    "j2,worker,1,Terminated,1015,,600,29.3,100,T4",
    "j2,chief,2,Terminated,1015,1115,600,29.3,100,",
]
INSTANCES = [
    "j1,worker,i1,w1,i1,Terminated,1006,1090,m1",
    "j1,worker,i2,w2,i1,Terminated,1010,1120,m2",
    "j1,worker,i3,w3,i1,Failed,1004,,m3",  # no end: when it held its GPUs is not known
    "j1,worker,i4,w4,i1,Failed,1300,1200,m3",  # ends before it starts
    "j2,worker,i5,w5,i2,Terminated,1015,1065,m3",
    "j2,chief,i6,w6,i2,Terminated,1015,1115,m3",
    "j2,chief,i7,w7,i2,Terminated,1016,1114.5,m3",
    "j7,worker,i8,w8,i7,Terminated,1,2,m3",
]


@pytest.mark.parametrize("block", [200, 1 << 22])
def test_alibaba_instances_give_the_times(block, tmp_path, monkeypatch):
    """j1/worker: 1006–1120, though its task says 1005–1105 (15 s off); j2/worker's missing end is 1065."""
    monkeypatch.setattr(csv_text, "BLOCK", block)
    folder = write(tmp_path, job=JOBS, task=TIMED)
    assert clean_trace("t", PAI, folder).audit.left_out == {"no start or end time": 1}
    clean = clean_trace("t", PAI, write(folder, instance=INSTANCES))
    times = [["j1/ps", 100, 5], ["j1/worker", 114, 6], ["j2/chief", 100, 5], ["j2/worker", 50, 5]]
    assert rows(clean, "run_s wait_s") == times
    assert not clean.audit.left_out
    assert clean.audit.noted == {
        "pai_instance_table: instance without start and end in order": 2,
        "task without instances that have both times: its own times count": 1,
        "task's times differ from its instances' by more than a second: theirs count": 1,
        "inst_num differs from the rows of the instance table: inst_num counts": 1,  # j1/worker: 4 rows for 3
    }


def test_alibaba_required_gpu_type(tmp_path):
    tags = ["i1,u,T4,g1,bert", "i2,u,,g2,", "i2,u,V100M32,g2,", "i9,u,P100,g9,ctr"]
    folder = write(tmp_path, job=JOBS, task=[*TIMED[:2], TIMED[3], "j3,w,1,Failed,1,2,,,100,"], group_tag=tags)
    clean = clean_trace("t", PAI, folder)
    assert rows(clean, "gpu_type") == [["j1/ps", "T4"], ["j1/worker", "T4"], ["j2/chief", "V100M32"]]
    noted = clean.audit.noted
    assert noted["GPU type as required by gpu_type_spec"] == 3
    assert noted["GPU type given (gpu_type) is not the one required (gpu_type_spec): the required one counts"] == 2


def test_alibaba_faults_of_the_other_tables_are_counted(tmp_path):
    jobs = [*JOBS, "j1,i1,again,Terminated,5,6", "j4,i4,u,Terminated,1,2,3"]
    clean = clean_trace("t", PAI, write(tmp_path, job=jobs, task=TASKS))
    assert clean.jobs["user"].tolist() == ["alice", "bob"]
    assert clean.audit.noted["job named again in the job table: its first row counts"] == 1
    assert clean.audit.noted["pai_job_table: row with too many fields"] == 1
    assert clean.audit.rows_read == len(TASKS)
