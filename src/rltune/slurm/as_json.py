"""Slurm's answers in JSON, in the dialects of its versions.

Plain numbers and texts (openapi v0.0.38 and before, Slurm 22.05), or numbers as ``{set, infinite, number}`` and states
as lists (v0.0.39 and later, Slurm 23.02 and later): each value is read by what it is, not by the version it claims.
"""

from __future__ import annotations

import json
import math
from typing import Any

from rltune.errors import SlurmError, SlurmUnavailable
from rltune.slurm.gres import added, gpus, only_type, types_of
from rltune.slurm.records import WAITING_STATES, Parsed, SlurmJob, SlurmNode
from rltune.slurm.values import Fault, array_tasks, collect, count, expand, moment, number, shown, text_of, words
from rltune.slurm.wants import Asked, base_state, flags_of_node

SHARED = {"none": "NO", "shared": "YES", "oversubscribe": "YES", "user": "USER", "mcs": "MCS", "exclusive": "EXCLUSIVE"}
"""Words of the JSON for what squeue's ``%h`` calls otherwise."""


def jobs_from_json(text: str) -> Parsed[SlurmJob]:
    """Jobs of ``squeue --json``, those that ended lately among them.

    A record that cannot be read is a fault and the others stand. Raises SlurmError where this is not such an answer at
    all, SlurmUnavailable where it says that Slurm could not answer.
    """
    return collect(_items(text, "jobs", "squeue --json"), _job, lambda item: f"job {_label(item, 'job_id')}")


def nodes_from_json(text: str) -> Parsed[SlurmNode]:
    """Nodes of ``sinfo -N --json``. Faults and errors as of jobs."""
    answer = _answer(text, "sinfo --json")
    if "nodes" not in answer and "sinfo" in answer:
        rows = _rows(answer, "sinfo", "sinfo --json")
        read = collect(rows, _row, lambda item: "row of sinfo")
        return Parsed(merged([node for nodes in read.records for node in nodes]), read.faults)
    return collect(_rows(answer, "nodes", "sinfo --json"), _node, lambda item: f"node {_label(item, 'name')}")


def _items(text: str, key: str, command: str) -> list[Any]:
    return _rows(_answer(text, command), key, command)


def _answer(text: str, command: str) -> dict[str, Any]:
    """The whole answer. Raises as :func:`jobs_from_json`."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SlurmError(f"{command}: the answer is not JSON ({shown(str(error))}); it begins {shown(text)}") from None
    if not isinstance(answer, dict):
        raise SlurmError(f"{command}: found {shown(answer)}, expected an object with jobs or nodes")
    errors = answer.get("errors")
    if errors:
        items = errors if isinstance(errors, list) else [errors]
        said = "; ".join(_said(e) for e in items[:3])
        raise SlurmUnavailable(f"{command}: Slurm could not answer: {said}")
    return answer


def _said(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)[:200]
    parts = [str(error[k]) for k in ("source", "description", "error") if error.get(k)]
    return ", ".join(dict.fromkeys(parts))[:200] or "no reason given"


def _rows(answer: dict[str, Any], key: str, command: str) -> list[Any]:
    rows = answer.get(key)
    if not isinstance(rows, list):
        raise SlurmError(f"{command}: found {shown(rows)} as {key!r}, expected a list; keys: {shown(list(answer))}")
    return rows


def _label(item: Any, key: str) -> str:
    return shown(item.get(key)) if isinstance(item, dict) else shown(item)


def _object(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise Fault(f"found {shown(item)}, expected an object")
    return item


def _job(item: Any) -> SlurmJob:
    job = _object(item)

    def texts(key: str) -> str:
        return text_of(job.get(key), key)

    states = [word.upper() for word in words(job.get("job_state"), "job_state")]
    if not states:
        raise Fault(f"job_state: found {shown(job.get('job_state'))}, expected a state")
    flags = frozenset(states)
    state = base_state(flags, states[0])
    waiting = state in WAITING_STATES
    submit_s = moment(job.get("submit_time"), "submit_time")
    if submit_s is None:
        raise Fault(f"submit_time: found {shown(job.get('submit_time'))}, expected a time")
    minutes = number(job.get("time_limit"), "time_limit")
    limit_s = None if minutes is None or math.isinf(minutes) else 60.0 * minutes
    nodes, cpus = count(job.get("node_count"), "node_count", 1), count(job.get("cpus"), "cpus", 1)
    tasks = count(job.get("tasks"), "tasks", 1)
    names = () if waiting else expand(texts("nodes"))
    asked = Asked(
        *(texts(f"tres_per_{k}") for k in ("job", "node", "socket", "task")),
        texts("tres_req_str"),
        texts("tres_alloc_str"),
    )
    detail = [] if waiting else _detail(job.get("gres_detail"))
    by_type = added(detail) or asked.gpus(not waiting, nodes, tasks, _sockets(job))
    of_node = None
    if names and len(detail) == len(names):
        of_node = {name: sum(own.values()) for name, own in zip(names, detail, strict=True)}
    elif len(names) == 1:
        of_node = {names[0]: sum(by_type.values())}
    array_id, het_id = count(job.get("array_job_id"), "array_job_id", 0), count(job.get("het_job_id"), "het_job_id", 0)
    priority = count(job.get("priority"), "priority", 0)
    return SlurmJob(
        id=_id(job),
        user=texts("user_name") or _user_id(job),
        account=texts("account"),
        partition=texts("partition"),
        qos=texts("qos"),
        state=state,
        reason=texts("state_reason"),
        submit_s=submit_s,
        start_s=moment(job.get("start_time"), "start_time"),
        end_limit_s=None if waiting or limit_s is None else moment(job.get("end_time"), "end_time"),
        time_limit_s=limit_s,
        nodes=nodes,
        tasks=tasks,
        cpus=cpus,
        mem_mb=_memory(job, asked, nodes, cpus),
        gpus=sum(by_type.values()),
        gpu_type=only_type(by_type),
        node_names=names,
        gpus_of_node=of_node,
        priority=priority,
        held=waiting and (priority == 0 or job.get("hold") is True),
        dependency=texts("dependency"),
        array_id=array_id or None,
        het_id=het_id or None,
        constraint=texts("features"),
        shared=_shared(job),
        gpus_by_type=by_type,
        array_tasks=array_tasks(texts("array_task_string")) if waiting else 1,
        eligible_s=moment(job.get("eligible_time"), "eligible_time"),
        name=texts("name"),
        flags=flags,
    )


def _id(job: dict[str, Any]) -> int:
    found = count(job.get("job_id"), "job_id")
    if found < 1:
        raise Fault(f"job_id: found {found}, expected 1 or more")
    return found


def _sockets(job: dict[str, Any]) -> int:
    return count(job.get("sockets_per_node"), "sockets_per_node", 1, bits=16)


def _user_id(job: dict[str, Any]) -> str:
    return str(count(job.get("user_id"), "user_name and user_id"))


def _detail(value: Any) -> list[dict[str, int]]:
    """GPUs on each node, in the order of the nodes."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise Fault(f"gres_detail: found {shown(value)}, expected a list of texts")
    return [gpus(text, "gres_detail") for text in value]


def _memory(job: dict[str, Any], asked: Asked, nodes: int, cpus: int) -> int | None:
    """Memory over all nodes, MB: what it has, or asks for; 0 is Slurm's word for all of its nodes'."""
    if (given := asked.mem_mb()) is not None:
        return given
    for key, factor in (("memory_per_node", nodes), ("memory_per_cpu", cpus)):
        found = number(job.get(key), key, 64)
        if found and not math.isinf(found):
            return round(found * factor)
    return None


def _shared(job: dict[str, Any]) -> str:
    if "shared" not in job:
        return ""
    value = job["shared"]
    if value is None or value == []:
        return "OK"  # neither asked for nor against
    found = words(value, "shared")
    return SHARED.get(found[0].lower(), found[0].upper()) if found else "NO"  # "none" is one of Slurm's empty words


def _node(item: Any) -> SlurmNode:
    node = _object(item)
    cpus, taken = count(node.get("cpus"), "cpus", bits=16), count(node.get("alloc_cpus"), "alloc_cpus", 0, bits=16)
    has = text_of(node.get("gres"), "gres")
    return SlurmNode(
        name=_node_name(node.get("name")),
        state=_node_state(node),
        cpus=cpus,
        cpus_alloc=taken,
        mem_mb=count(node.get("real_memory"), "real_memory", 0, bits=64),
        mem_alloc_mb=count(node.get("alloc_memory"), "alloc_memory", 0, bits=64),
        gpus=gpus(has),
        gpus_alloc=used_gpus(has, text_of(node.get("gres_used"), "gres_used")),
        partitions=words(node.get("partitions"), "partitions"),
        features=words(node.get("active_features") or node.get("features"), "features"),
        reason=text_of(node.get("reason"), "reason"),
    )


def used_gpus(has: str, used: str) -> dict[str, int]:
    """GPUs in use for each type; those that Slurm tells without type are of the node's only type."""
    found = gpus(used, "gres_used")
    kinds = types_of(has)
    if set(found) == {""} and len(set(kinds)) == 1:
        return {kinds[0]: found[""]}
    return found


def _node_name(value: Any) -> str:
    found = text_of(value, "name")
    if not found:
        raise Fault(f"name: found {shown(value)}, expected a node's name")
    return found


def _node_state(node: dict[str, Any]) -> frozenset[str]:
    state = [word for text in words(node.get("state"), "state") for word in flags_of_node(text)]
    if not state:
        raise Fault(f"state: found {shown(node.get('state'))}, expected a state")
    return frozenset(state) | {word.upper() for word in words(node.get("state_flags"), "state_flags")}


def _row(item: Any) -> list[SlurmNode]:
    """Nodes of one row of ``sinfo --json`` as of Slurm 23.02: alike nodes together, amounts as totals."""
    row = _object(item)
    names = words(_object(row.get("nodes")).get("nodes"), "nodes")
    if not names:
        raise Fault(f"nodes: found {shown(row.get('nodes'))}, expected names under 'nodes'")
    cpus, memory, gres = (_object(row.get(key) or {}) for key in ("cpus", "memory", "gres"))
    has, used = text_of(gres.get("total"), "gres.total"), text_of(gres.get("used"), "gres.used")
    all_cpus, taken = count(cpus.get("minimum"), "cpus.minimum"), count(cpus.get("allocated"), "cpus.allocated", 0)
    taken_mb = count(memory.get("allocated"), "memory.allocated", 0, bits=64)
    if len(names) > 1 and (taken or taken_mb or gpus(used)):
        raise Fault(f"{len(names)} nodes in one row share {taken} allocated CPUs; expected a row a node (sinfo -N)")
    partition = row.get("partition")
    named = partition.get("name") if isinstance(partition, dict) else partition
    features = row.get("features")
    reason = row.get("reason")
    state = _object(row.get("node") or {})
    return [
        SlurmNode(
            name=name,
            state=_node_state(state),
            cpus=all_cpus,
            cpus_alloc=taken,
            mem_mb=count(memory.get("minimum"), "memory.minimum", 0, bits=64),
            mem_alloc_mb=taken_mb,
            gpus=gpus(has),
            gpus_alloc=used_gpus(has, used),
            partitions=words(named, "partition"),
            features=words(features.get("active") if isinstance(features, dict) else features, "features"),
            reason=text_of(reason.get("description") if isinstance(reason, dict) else reason, "reason"),
        )
        for name in names
    ]


def merged(nodes: list[SlurmNode]) -> tuple[SlurmNode, ...]:
    """A node a name, with all its partitions: sinfo gives a row for each."""
    found: dict[str, SlurmNode] = {}
    for node in nodes:
        before = found.get(node.name)
        partitions = tuple(dict.fromkeys((*before.partitions, *node.partitions))) if before else node.partitions
        found[node.name] = SlurmNode(**{**vars(node), "partitions": partitions})
    return tuple(found.values())
