"""Read Slurm's answers in JSON, in the dialects of its versions.

JSON has plain numbers and texts (openapi v0.0.38 and before, Slurm 22.05), or numbers as ``{set, infinite, number}`` and
states as lists (v0.0.39 and later, Slurm 23.02 and later): each value is read by its own form, not by the claimed version.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any

from rltune.errors import SlurmError, SlurmUnavailable
from rltune.slurm.records import WAITING_STATES, Parsed, SlurmJob, SlurmNode
from rltune.slurm.resources import allocated_mb, base_state, gpus, only_type, requested_gpus, used_gpus
from rltune.slurm.values import Fault, collect, count, expand, moment, number, shown, text_of, words

SHARED = {"none": "NO", "shared": "YES", "oversubscribe": "YES", "user": "USER", "mcs": "MCS", "exclusive": "EXCLUSIVE"}
"""Words of the JSON for what squeue's ``%h`` calls otherwise."""


def jobs_from_json(text: str) -> Parsed[SlurmJob]:
    """Jobs of ``squeue --json``, including jobs that ended recently.

    A record that cannot be read is a fault and the others stand. Raises SlurmError where this is not such an answer at
    all, SlurmUnavailable where it says that Slurm could not answer.
    """
    rows = _rows(_answer(text, "squeue --json"), "jobs", "squeue --json")
    return collect(rows, _job, lambda item: f"job {_label(item, 'job_id')}")


def nodes_from_json(text: str) -> Parsed[SlurmNode]:
    """Nodes of ``sinfo -N --json``. Faults and errors as for jobs."""
    answer = _answer(text, "sinfo --json")
    if "nodes" not in answer and "sinfo" in answer:
        read = collect(_rows(answer, "sinfo", "sinfo --json"), _nodes_of_row, lambda item: "row of sinfo")
        return Parsed(_merged(node for nodes in read.records for node in nodes), read.faults)
    return collect(_rows(answer, "nodes", "sinfo --json"), _node, lambda item: f"node {_label(item, 'name')}")


def _answer(text: str, command: str) -> dict[str, Any]:
    """The whole answer in JSON. Raises as :func:`jobs_from_json`."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SlurmError(f"{command}: the answer is not JSON ({shown(str(error))}); it begins {shown(text)}") from None
    if not isinstance(answer, dict):
        raise SlurmError(f"{command}: found {shown(answer)}, expected an object with jobs or nodes")
    if errors := answer.get("errors"):
        items = errors if isinstance(errors, list) else [errors]
        reasons = "; ".join(_reason(e) for e in items[:3])
        raise SlurmUnavailable(f"{command}: Slurm could not answer: {reasons}")
    return answer


def _reason(error: Any) -> str:
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


def _required(found: Any, value: Any, key: str, expected: str) -> Any:
    if not found:
        raise Fault(f"{key}: found {shown(value)}, expected {expected}")
    return found


def _job(item: Any) -> SlurmJob:
    job = _object(item)

    def texts(key: str) -> str:
        return text_of(job.get(key), key)

    def counts(key: str, default: int, bits: int = 32) -> int:
        return count(job.get(key), key, default, bits)

    states = _required(words(job.get("job_state"), "job_state"), job.get("job_state"), "job_state", "a state")
    flags = frozenset(word.upper() for word in states)
    state = base_state(flags, states[0].upper())
    waiting = state in WAITING_STATES
    submit_s = _required(
        moment(job.get("submit_time"), "submit_time"), job.get("submit_time"), "submit_time", "seconds since 1970"
    )
    minutes = number(job.get("time_limit"), "time_limit")
    limit_s = None if minutes is None or math.isinf(minutes) else 60.0 * minutes
    nodes, tasks, cpus = (counts(key, 1) for key in ("node_count", "tasks", "cpus"))
    names = () if waiting else expand(texts("nodes"))
    detail = [] if waiting else _detail(job.get("gres_detail"))
    held_nodes, sockets = len(names) or nodes, counts("sockets_per_node", 1, bits=16)
    by_type = dict(sum(map(Counter, detail), Counter())) or requested_gpus(
        texts, waiting, held_nodes, tasks, held_nodes * sockets
    )
    of_node = None
    if names and len(detail) == len(names):
        of_node = {name: sum(own.values()) for name, own in zip(names, detail, strict=True)}
    elif len(names) == 1:
        of_node = {names[0]: sum(by_type.values())}
    priority = counts("priority", 0)
    return SlurmJob(
        id=_required(count(job.get("job_id"), "job_id"), job.get("job_id"), "job_id", "1 or more"),
        user=texts("user_name") or str(count(job.get("user_id"), "user_name and user_id")),
        account=texts("account"),
        partition=texts("partition"),
        qos=texts("qos"),
        state=state,
        reason=texts("state_reason"),
        submit_s=submit_s,
        start_s=moment(job.get("start_time"), "start_time"),
        time_limit_s=limit_s,
        nodes=nodes,
        cpus=cpus,
        mem_mb=_memory(job, texts("tres_alloc_str"), nodes, cpus),
        gpus=sum(by_type.values()),
        gpu_type=only_type(by_type),
        node_names=names,
        gpus_of_node=of_node,
        priority=priority,
        held=waiting and (priority == 0 or job.get("hold") is True),
        dependency=texts("dependency"),
        array_id=counts("array_job_id", 0) or None,
        het_id=counts("het_job_id", 0) or None,
        constraint=texts("features"),
        shared=_shared(job),
        gpus_by_type=by_type,
        eligible_s=moment(job.get("eligible_time"), "eligible_time"),
    )


def _detail(value: Any) -> list[dict[str, int]]:
    """GPUs on each node, in the order of the nodes."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise Fault(f"gres_detail: found {shown(value)}, expected a list of texts")
    return [gpus(text, "gres_detail") for text in value]


def _memory(job: dict[str, Any], tres: str, nodes: int, cpus: int) -> int | None:
    """Memory over all nodes, MB, that it has or requests; 0 is Slurm's value for all memory of its nodes."""
    if (allocated := allocated_mb(tres)) is not None:
        return allocated
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
        return "OK"  # neither requested nor refused
    found = words(value, "shared")
    return SHARED.get(found[0].lower(), found[0].upper()) if found else "NO"  # "none" is one of Slurm's empty words


def _node(item: Any) -> SlurmNode:
    node = _object(item)
    has = text_of(node.get("gres"), "gres")
    state = _required(words(node.get("state"), "state"), node.get("state"), "state", "a state")
    flags = words(node.get("state_flags"), "state_flags")
    return SlurmNode(
        name=_required(text_of(node.get("name"), "name"), node.get("name"), "name", "a node's name"),
        state=frozenset(word.upper() for word in (*state, *flags)),
        cpus=count(node.get("cpus"), "cpus", bits=16),
        cpus_alloc=count(node.get("alloc_cpus"), "alloc_cpus", 0, bits=16),
        mem_mb=count(node.get("real_memory"), "real_memory", 0, bits=64),
        mem_alloc_mb=count(node.get("alloc_memory"), "alloc_memory", 0, bits=64),
        gpus=gpus(has),
        gpus_alloc=used_gpus(has, text_of(node.get("gres_used"), "gres_used")),
        partitions=words(node.get("partitions"), "partitions"),
    )


def _nodes_of_row(item: Any) -> list[SlurmNode]:
    """Nodes of one row of ``sinfo --json`` as of Slurm 23.02: similar nodes together, amounts as totals."""
    row = _object(item)
    listed = _object(row.get("nodes")).get("nodes")
    names = _required(words(listed, "nodes"), row.get("nodes"), "nodes", "names under 'nodes'")
    cpus, mem, gres, state = (_object(row.get(key) or {}) for key in ("cpus", "memory", "gres", "node"))
    partition = row.get("partition")
    node = _node(
        {
            "name": names[0],
            "state": state.get("state"),
            "state_flags": state.get("state_flags"),
            "cpus": cpus.get("minimum"),
            "alloc_cpus": cpus.get("allocated"),
            "real_memory": mem.get("minimum"),
            "alloc_memory": mem.get("allocated"),
            "gres": gres.get("total"),
            "gres_used": gres.get("used"),
            "partitions": partition.get("name") if isinstance(partition, dict) else partition,
        }
    )
    if len(names) > 1 and (node.cpus_alloc or node.mem_alloc_mb or any(node.gpus_alloc.values())):
        raise Fault(
            f"{len(names)} nodes in one row share {node.cpus_alloc} allocated CPUs; expected a row a node (sinfo -N)"
        )
    return [replace(node, name=name) for name in names]


def _merged(nodes: Any) -> tuple[SlurmNode, ...]:
    """One record a node, with all its partitions: sinfo gives a row for each."""
    found: dict[str, SlurmNode] = {}
    for node in nodes:
        before = found[node.name].partitions if node.name in found else ()
        found[node.name] = replace(node, partitions=tuple(dict.fromkeys((*before, *node.partitions))))
    return tuple(found.values())
