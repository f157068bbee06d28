"""The Helios and PAI readers on hand-written files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rltune.errors import DataError
from rltune.traces.clean import clean_trace

HEADER = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
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


def test_helios(tmp_path: Path, trace: Callable, make_zip: Callable) -> None:
    other = HEADER + "\n99,u,vc,1,1,1,COMPLETED,2020-04-01 10:00:00,,,5,0\n"
    make_zip(tmp_path / "data.zip", {"data/Earth/cluster_log.csv": other,
                                     "data/Venus/cluster_log.csv": "\n".join(HELIOS) + "\n"})
    clean = clean_trace("t", trace("helios"), tmp_path)
    jobs = clean.jobs.set_index("job_id")
    assert jobs.index.tolist() == ["1", "4", "5"]
    assert jobs["run_s"].tolist() == [60, 30, 60]
    assert jobs["wait_s"].tolist() == [10, 5, 2]
    assert jobs["status"].tolist() == ["passed", "failed", "unknown"]
    assert jobs["cpus"].fillna(-1).tolist() == [48, 6, -1]
    assert clean.audit.rows_read == 8
    assert clean.audit.left_out == {"row with too many fields": 1, "CPU job (gpu_num 0)": 1, "no submission time": 1,
                                    "run time zero": 1, "no GPU count": 1}
    assert clean.meta.t0 == "2020-04-01T10:00:00.000+08:00"
    assert clean_trace("t", trace("helios", part="Earth"), tmp_path).jobs["job_id"].tolist() == ["99"]
    with pytest.raises(DataError, match="holds no file Saturn/cluster_log.csv"):
        clean_trace("t", trace("helios", part="Saturn"), tmp_path)


def test_helios_truncated_zip_and_csv(tmp_path: Path, trace: Callable, make_zip: Callable) -> None:
    make_zip(tmp_path / "z" / "data.zip", {"data/Venus/cluster_log.csv": "\n".join(HELIOS * 50) + "\n"})
    whole = (tmp_path / "z" / "data.zip").read_bytes()
    for share in (0.3, 0.9):
        (tmp_path / "z" / "data.zip").write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(DataError, match="data.zip"):
            clean_trace("t", trace("helios"), tmp_path / "z")
    folder = tmp_path / "plain" / "Venus"
    folder.mkdir(parents=True)
    (folder / "cluster_log.csv").write_text("\n".join(HELIOS[:4])[:-70])
    with pytest.raises(DataError, match="truncated: the last row has"):
        clean_trace("t", trace("helios"), tmp_path / "plain")
    (folder / "cluster_log.csv").write_text("")
    with pytest.raises(DataError, match="empty"):
        clean_trace("t", trace("helios"), tmp_path / "plain")
    (folder / "cluster_log.csv").write_text("\n".join(HELIOS).replace("gpu_num", "gpus", 1))
    with pytest.raises(DataError, match="'gpu_num'.*nearest: .*gpus"):
        clean_trace("t", trace("helios"), tmp_path / "plain")


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


@pytest.mark.parametrize("packed", [True, False])
def test_alibaba(packed: bool, tmp_path: Path, trace: Callable, make_tar: Callable) -> None:
    for name, lines in (("pai_job_table", JOBS), ("pai_task_table", TASKS)):
        text = "\n".join(lines) + "\n"
        if packed:
            make_tar(tmp_path / f"{name}.tar.gz", {f"{name}.csv": text})
        else:
            (tmp_path / f"{name}.csv").write_text(text)
    clean = clean_trace("t", trace("alibaba2020"), tmp_path)
    jobs = clean.jobs.set_index("job_id")
    assert jobs.index.tolist() == ["j1/worker", "j2/tensorflow"]
    assert jobs["gpus"].tolist() == [2, 4]
    assert jobs["cpus"].tolist() == [18, 24]
    assert np.allclose(jobs["mem_gb"], [87.9, 80])
    assert jobs["wait_s"].tolist() == [5, 5]
    assert jobs["run_s"].tolist() == [100, 100]
    assert jobs["submit_s"].tolist() == [0, 10]
    assert jobs["user"].tolist() == ["alice", "bob"]
    assert jobs["gpu_type"].fillna("any").tolist() == ["V100", "any"]
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


def test_alibaba_damage(tmp_path: Path, trace: Callable, make_tar: Callable) -> None:
    make_tar(tmp_path / "pai_job_table.tar.gz", {"pai_job_table.csv": "\n".join(JOBS) + "\n"})
    with pytest.raises(DataError, match="expected pai_task_table.csv or pai_task_table.tar.gz"):
        clean_trace("t", trace("alibaba2020"), tmp_path)
    make_tar(tmp_path / "pai_task_table.tar.gz", {"something_else.csv": "1\n"})
    with pytest.raises(DataError, match="holds no file pai_task_table.csv"):
        clean_trace("t", trace("alibaba2020"), tmp_path)
    header = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    make_tar(tmp_path / "pai_task_table.tar.gz", {"pai_task_table.csv": header + "\n".join(TASKS)})
    with pytest.raises(DataError, match="header row"):
        clean_trace("t", trace("alibaba2020"), tmp_path)
    (tmp_path / "pai_task_table.tar.gz").write_bytes(b"no archive at all")
    with pytest.raises(DataError, match="truncated or damaged"):
        clean_trace("t", trace("alibaba2020"), tmp_path)
