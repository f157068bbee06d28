"""Slurm's answers in text, for builds without JSON: columns of fixed width, so that no text of a user's shifts them.

``squeue -O`` and ``sinfo -O`` pad every column, counted in bytes, to the width asked for. Names of jobs and comments,
the free texts, are not asked for. A column that its value fills may be cut off, and its record is a fault. Times come
as seconds since 1970 with ``SLURM_TIME_FORMAT=%s``.
"""

from __future__ import annotations

from rltune.errors import SlurmError
from rltune.slurm.as_json import merged, used_gpus
from rltune.slurm.gres import gpus, only_type
from rltune.slurm.records import WAITING_STATES, Parsed, SlurmJob, SlurmNode
from rltune.slurm.values import (
    EMPTY,
    Fault,
    array_tasks,
    collect,
    count,
    duration,
    expand,
    memory,
    moment,
    shown,
    text_of,
    words,
)
from rltune.slurm.wants import Asked, base_state, flags_of_node

JOB_COLUMNS = {
    "JobID": 24,
    "ArrayJobID": 24,
    "ArrayTaskID": 512,
    "HetJobID": 24,
    "UserName": 96,
    "Account": 96,
    "Partition": 256,
    "QOS": 96,
    "State": 32,
    "Reason": 64,
    "SubmitTime": 24,
    "StartTime": 24,
    "EndTime": 24,
    "EligibleTime": 24,
    "TimeLimit": 24,
    "NumNodes": 24,
    "NumTasks": 24,
    "NumCPUs": 24,
    "MinMemory": 24,
    "tres-alloc": 256,
    "tres-per-job": 128,
    "tres-per-node": 128,
    "tres-per-socket": 128,
    "tres-per-task": 128,
    "NodeList": 1024,
    "PriorityLong": 24,
    "OverSubscribe": 16,
    "Feature": 256,
    "Dependency": 256,
}
"""Columns of ``squeue -O`` and their widths in bytes."""
NODE_COLUMNS = {
    "NodeList": 128,
    "StateComplete": 128,
    "CPUsState": 48,
    "Memory": 24,
    "AllocMem": 24,
    "Gres": 256,
    "GresUsed": 256,
    "PartitionName": 96,
    "Features": 512,
    "Reason": 128,
}
"""Columns of ``sinfo -N -O`` and their widths in bytes."""
MAY_BE_CUT = frozenset({"Dependency", "Feature", "Features", "Reason", "ArrayTaskID"})
"""Columns of which the beginning is enough."""


def column_option(columns: dict[str, int]) -> str:
    """The value of option -O that asks for these columns."""
    return ",".join(f"{name}:{width}" for name, width in columns.items())


def jobs_from_text(text: str) -> Parsed[SlurmJob]:
    """Jobs of ``squeue --noheader -O`` with :data:`JOB_COLUMNS`. Raises SlurmError where no line is of that form."""
    return collect(_lines(text, JOB_COLUMNS, "squeue"), _job, lambda line: f"job {_label(line)}")


def nodes_from_text(text: str) -> Parsed[SlurmNode]:
    """Nodes of ``sinfo --noheader -N -O`` with :data:`NODE_COLUMNS`. Raises SlurmError as :func:`jobs_from_text`."""
    read = collect(_lines(text, NODE_COLUMNS, "sinfo"), _node, lambda line: f"node {_label(line)}")
    return Parsed(merged(list(read.records)), read.faults)


def _lines(text: str, columns: dict[str, int], command: str) -> list[bytes]:
    """Lines as bytes, in which the columns are counted."""
    lines = [line for line in text.encode("utf-8", "replace").split(b"\n") if line.strip()]
    if lines and not any(len(line) == sum(columns.values()) for line in lines):
        raise SlurmError(
            f"{command} -O: the answer begins {shown(text[:60])}; expected lines of {sum(columns.values())} bytes in "
            f"{len(columns)} columns, as this version of Slurm may not give"
        )
    return lines


def _label(line: bytes) -> str:
    return shown(line[:24].decode("utf-8", "replace").strip())


def _cells(line: bytes, columns: dict[str, int]) -> dict[str, str]:
    if len(line) != sum(columns.values()):
        raise Fault(f"found a line of {len(line)} bytes, expected {sum(columns.values())}")
    cells, at = {}, 0
    for name, width in columns.items():
        raw = line[at : at + width]
        at += width
        if not raw.endswith(b" ") and name not in MAY_BE_CUT:
            raise Fault(f"{name}: fills its {width} bytes, {shown(raw.decode('utf-8', 'replace'))}, and may be cut off")
        cells[name] = raw.decode("utf-8", "replace").strip()
    return cells


def _job(line: bytes) -> SlurmJob:
    cells = _cells(line, JOB_COLUMNS)
    state = text_of(cells["State"], "State").upper()
    if not state:
        raise Fault("State: found nothing, expected a state")
    flags = frozenset(state.split("+"))
    state = base_state(flags, state.split("+")[0])
    waiting = state in WAITING_STATES
    submit_s = moment(cells["SubmitTime"], "SubmitTime")
    if submit_s is None:
        raise Fault(f"SubmitTime: found {shown(cells['SubmitTime'])}, expected seconds since 1970")
    identity = count(cells["JobID"], "JobID")
    if identity < 1:
        raise Fault(f"JobID: found {identity}, expected 1 or more")
    limit_s = duration(cells["TimeLimit"], "TimeLimit")
    nodes, tasks, cpus = (count(cells[key].split("-")[0], key, 1) for key in ("NumNodes", "NumTasks", "NumCPUs"))
    names = () if waiting else expand(cells["NodeList"], "NodeList")
    given = text_of(cells["tres-alloc"], "tres-alloc")  # of a waiting job what it asks for
    asked = Asked(*(text_of(cells[f"tres-per-{k}"], k) for k in ("job", "node", "socket", "task")), given, given)
    by_type = asked.gpus(not waiting, len(names) or nodes, tasks, 1)
    array_id = count(cells["ArrayJobID"], "ArrayJobID", 0)
    tasks_of_array = cells["ArrayTaskID"]
    priority = count(cells["PriorityLong"], "PriorityLong", 0)
    return SlurmJob(
        id=identity,
        user=text_of(cells["UserName"], "UserName"),
        account=text_of(cells["Account"], "Account"),
        partition=text_of(cells["Partition"], "Partition"),
        qos=text_of(cells["QOS"], "QOS"),
        state=state,
        reason=text_of(cells["Reason"], "Reason"),
        submit_s=submit_s,
        start_s=moment(cells["StartTime"], "StartTime"),
        end_limit_s=None if waiting or limit_s is None else moment(cells["EndTime"], "EndTime"),
        time_limit_s=limit_s,
        nodes=nodes,
        tasks=tasks,
        cpus=cpus,
        mem_mb=_memory(cells["MinMemory"], asked, waiting, nodes, cpus),
        gpus=sum(by_type.values()),
        gpu_type=only_type(by_type),
        node_names=names,
        gpus_of_node={names[0]: sum(by_type.values())} if len(names) == 1 else None,
        priority=priority,
        held=waiting and priority == 0,
        dependency=text_of(cells["Dependency"], "Dependency"),
        array_id=array_id if tasks_of_array not in EMPTY else None,
        het_id=count(cells["HetJobID"], "HetJobID", 0) or None,
        constraint=text_of(cells["Feature"], "Feature"),
        shared=text_of(cells["OverSubscribe"], "OverSubscribe").upper(),
        gpus_by_type=by_type,
        array_tasks=array_tasks(_whole(tasks_of_array)) if waiting else 1,
        eligible_s=moment(cells["EligibleTime"], "EligibleTime"),
        flags=flags,
    )


def _whole(tasks: str) -> str:
    """Tasks of an array up to the last that is surely whole, where the column may be cut off."""
    return tasks if len(tasks) < JOB_COLUMNS["ArrayTaskID"] else tasks.rpartition(",")[0]


def _memory(text: str, asked: Asked, waiting: bool, nodes: int, cpus: int) -> int | None:
    """Memory over all nodes, MB; the memory of a running job is for each node where Slurm says no more than that."""
    found = memory(text, "MinMemory")
    total = asked.mem_mb()
    if total is not None and (found or not waiting):  # of a waiting job that asks for none it is that of whole nodes
        return total
    if found is None:
        return None
    amount, each = found
    return round(amount * (cpus if each == "c" else nodes))


def _node(line: bytes) -> SlurmNode:
    cells = _cells(line, NODE_COLUMNS)
    name, state = text_of(cells["NodeList"], "NodeList"), flags_of_node(cells["StateComplete"])
    if not name or not state:
        raise Fault(f"found name {shown(name)} and state {shown(cells['StateComplete'])}, expected both")
    four = cells["CPUsState"].split("/")
    if len(four) != 4:
        raise Fault(f"CPUsState: found {shown(cells['CPUsState'])}, expected allocated/idle/other/total")
    allocated, _, _, total = (count(part, "CPUsState") for part in four)
    has = text_of(cells["Gres"], "Gres")
    return SlurmNode(
        name=name,
        state=state,
        cpus=total,
        cpus_alloc=allocated,
        gpus=gpus(has),
        mem_mb=count(cells["Memory"], "Memory", 0, bits=64),
        mem_alloc_mb=count(cells["AllocMem"], "AllocMem", 0, bits=64),
        gpus_alloc=used_gpus(has, text_of(cells["GresUsed"], "GresUsed")),
        partitions=words(cells["PartitionName"], "PartitionName"),
        features=words(cells["Features"], "Features"),
        reason=text_of(cells["Reason"], "Reason"),
    )
