"""A small whole file of each format to damage or pack, and what cleaning it must then come to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, settings

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.clean import CleanTrace, clean_trace

FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
COLUMNS = {
    "job_id": "job_id",
    "user": "user",
    "vc": "vc",
    "gpus": "gpu_num",
    "submit_s": "submit_time",
    "start_s": "start_time",
    "end_s": "end_time",
    "status": {"column": "state", "map": {"COMPLETED": "passed"}},
}
HELIOS_HEADER = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"


def helios(rows: int = 12) -> str:
    lines = [HELIOS_HEADER]
    for i in range(rows):
        lines.append(
            f"{i},ü{i % 3},vc{i % 2},{i % 4},6,1,COMPLETED,2020-04-01 10:{i:02d}:00,2020-04-01 10:{i:02d}:30,"
            f"2020-04-01 11:{i:02d}:30,3600,30"
        )
    return "\n".join(lines) + "\n"


def philly(rows: int = 8) -> str:
    jobs = []
    for i in range(rows):
        tried = [
            {
                "start_time": f"2017-10-02 10:{10 * k + i:02d}:00",
                "end_time": f"2017-10-02 10:{10 * k + i:02d}:40",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
            }
            for k in range(i % 3)
        ]
        jobs.append(
            {
                "status": "Pass",
                "vc": "v",
                "jobid": f"j{i}",
                "attempts": tried,
                "submitted_time": f"2017-10-02 10:{i:02d}:00",
                "user": "ü",
            }
        )
    return json.dumps(jobs, ensure_ascii=False, indent=1)


def pai_tasks(rows: int = 12) -> str:
    return "".join(f"j{i},worker,{i % 3 + 1},Terminated,{1000 + i},{2000 + i},600,29.3,50,V100\n" for i in range(rows))


PAI_JOBS = "".join(f"j{i},i{i},ü,Terminated,{900 + i},2000\n" for i in range(12))
BASES = {"csv": helios(), "helios": helios(), "philly": philly(), "alibaba2020": pai_tasks()}
FILES = {
    "csv": "own.csv",
    "helios": "Venus/cluster_log.csv",
    "philly": "cluster_job_log",
    "alibaba2020": "pai_task_table.csv",
}


def config(trace: Callable, name: str) -> TraceConfig:
    return trace(name, columns=COLUMNS) if name == "csv" else trace(name)


def clean(folder: Path, trace: Callable, name: str, content: bytes) -> CleanTrace:
    """Clean one main file of a format; PAI's job table lies beside it."""
    path = folder / name / FILES[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    (folder / name / "pai_job_table.csv").write_text(PAI_JOBS)
    return clean_trace("t", config(trace, name), path if name == "csv" else folder / name)


def sound(folder: Path, trace: Callable, name: str, content: bytes) -> CleanTrace | None:
    """The result, checked; None where the file was refused as it should be."""
    try:
        result = clean(folder, trace, name, content)
    except DataError as error:
        text = str(error)
        assert "\n" not in text and ("t" in text.split(":")[0] or FILES[name].split("/")[-1] in text), text
        assert str(folder) in text, text
        return None
    result.audit.check()
    assert len(result.jobs) == result.audit.rows_kept > 0
    return result


def clean_or_refused(clean: Callable[[Path, bytes], CleanTrace], path: Path, content: bytes) -> CleanTrace | None:
    """What a reader's own ``clean`` makes of a file, checked; None where it was refused by name."""
    try:
        result = clean(path, content)
    except DataError as error:
        assert path.name in str(error)
        return None
    result.audit.check()
    assert len(result.jobs) == result.audit.rows_kept and result.jobs["job_id"].is_unique
    return result
