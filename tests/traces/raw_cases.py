"""A small whole file of each format to damage or pack, and what cleaning it must then come to."""

import json
import zipfile
from pathlib import Path
from typing import Any

from random_cases import times

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces import inspect
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.table import validate

ZONES = inspect.ZONES | dict.fromkeys(("csv", "alibaba2023", "authors"), "UTC")
FUZZ = times(0.4)
COLUMNS = {name: name for name in ("job_id", "user", "vc")} | {"gpus": "gpu_num", "submit_s": "submit_time"}
COLUMNS |= {"start_s": "start_time", "end_s": "end_time"}
COLUMNS |= {"status": {"column": "state", "map": {"COMPLETED": "passed"}}}
HELIOS_HEADER = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"


def write_zip(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def helios(rows: int = 12) -> str:
    times = "2020-04-01 10:{0:02d}:00,2020-04-01 10:{0:02d}:30,2020-04-01 11:{0:02d}:30".format
    lines = [f"{i},ü{i % 3},vc{i % 2},{i % 4},6,1,COMPLETED,{times(i)},3600,30" for i in range(rows)]
    return "\n".join([HELIOS_HEADER, *lines]) + "\n"


def philly(rows: int = 8) -> str:
    jobs = []
    for i in range(rows):
        times = [f"2017-10-02 10:{10 * k + i:02d}" for k in range(i % 3)]
        detail = [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]
        tried = [{"start_time": f"{time}:00", "end_time": f"{time}:40", "detail": detail} for time in times]
        named = {"status": "Pass", "vc": "v", "jobid": f"j{i}", "user": "ü"}
        jobs.append({"attempts": tried, **named, "submitted_time": f"2017-10-02 10:{i:02d}:00"})
    return json.dumps(jobs, ensure_ascii=False, indent=1)


def pai_tasks(rows: int = 12) -> str:
    return "".join(f"j{i},worker,{i % 3 + 1},Terminated,{1000 + i},{2000 + i},600,29.3,50,V100\n" for i in range(rows))


PAI_JOBS = "".join(f"j{i},i{i},ü,Terminated,{900 + i},2000\n" for i in range(12))
SWF_HEAD = "; UnixStartTime: 1027839845\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 64\n"
SACCT_HEAD = "JobID|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|ReqMem|ReqTRES|AllocTRES"
SACCT_ROW = (
    "N|ü|gpu|2024-03-01T10:N:00|2024-03-01T11:N:00|2024-03-01T12:N:00|3600|120|COMPLETED|2|64G|cpu=8,gres/gpu=4,mem=64G"
    "|cpu=8,gres/gpu=4,mem=64G"
)
POD_HEAD = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
)


def lines(row: str, head: str = "", rows: int = 12) -> str:
    """A text of a row repeated, with its number in the place of N."""
    return head + "\n" * bool(head) + "".join(row.replace("N", str(i)) + "\n" for i in range(10, 10 + rows))


RAW = {
    "csv": ("own.csv", helios()),
    "helios": ("Venus/cluster_log.csv", helios()),
    "philly": ("cluster_job_log", philly()),
    "alibaba2020": ("pai_task_table.csv", pai_tasks()),
    "alibaba2023": ("openb_pod_list_default.csv", lines("pN,12000,16384,1,460,T4,LS,Succeeded,1N,4N,2N", POD_HEAD)),
    "authors": ("Philly_Formatted_withGPUType.csv", lines("aN,1N,5,60,2,-1,-1,12,90,29.25,1,7,-1,-1,0,-1,-1,4,0")),
    "swf": ("a.swf", lines("N 1N 10 60 8 -1 512 4 120 -1 1 7 1 -1 2 -1 -1 -1", SWF_HEAD.rstrip("\n"))),
    "sacct": ("jobs.txt", lines(SACCT_ROW, SACCT_HEAD)),
}
FILES, BASES = ({name: raw[i] for name, raw in RAW.items()} for i in (0, 1))
"""Format → its main file, and the text of that."""
FEW = ("csv", "helios", "philly", "alibaba2020")
"""Of each kind of archive one."""


def trace_config(format: str, **fields: Any) -> TraceConfig:
    """A trace configuration of a format, with any field replaced; None leaves it out."""
    values: dict[str, Any] = {"title": "T", "data": "own", "format": format, "path": "x"}
    values |= {"time_zone": ZONES.get(format, "Europe/Berlin"), "part": "Venus" if format == "helios" else None}
    values |= {"columns": COLUMNS if format == "csv" else None}
    if "synthetic" in fields or "downloads" in fields:
        del values["path"]
    return TraceConfig(**{name: value for name, value in {**values, **fields}.items() if value is not None})


def cleaned(path: Path, content: str | bytes, format: str, **fields: Any) -> CleanTrace:
    """Clean a file with this content; PAI's job table lies next to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if format == "alibaba2020":
        (path.parent / "pai_job_table.csv").write_text(PAI_JOBS)
    return clean_trace("t", trace_config(format, **fields), path)


def rows(clean: CleanTrace, columns: str) -> list[list[Any]]:
    """The job id and the named columns of each job; numbers to 6 places, null as None."""
    jobs = clean.jobs[["job_id", *columns.split()]].round(6).astype(object)
    return jobs.where(jobs.notna(), None).values.tolist()


def clean(folder: Path, name: str, content: bytes) -> CleanTrace:
    """Clean the main file of a format."""
    return cleaned(folder / FILES[name], content, name)


def sound(folder: Path, name: str, content: bytes) -> CleanTrace | None:
    """The result, checked; None where the file was refused as it should be."""
    try:
        result = clean(folder, name, content)
    except DataError as error:
        text = str(error)
        assert "\n" not in text and ("t" in text.split(":")[0] or FILES[name].split("/")[-1] in text), text
        assert str(folder) in text, text
        return None
    validate(result.jobs)
    assert len(result.jobs) == result.audit.rows_kept > 0
    return result
