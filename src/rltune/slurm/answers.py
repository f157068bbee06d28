"""Read Slurm's answers in JSON, in the dialects of its versions.

JSON has plain numbers and texts (openapi v0.0.38 and before, Slurm 22.05), or numbers as ``{set, infinite, number}`` and
states as lists (v0.0.39 and later, Slurm 23.02 and later): each value is read by its own form, not by the claimed version.
"""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from typing import Any

from rltune.errors import SlurmError, SlurmUnavailable
from rltune.slurm.records import WAITING_STATES, Parsed, SlurmJob, SlurmNode
from rltune.slurm.resources import allocated_mb, base_state, gpus, only_type, requested_gpus, used_gpus
from rltune.slurm.values import Fault, Row, collect, expand, shown

SHARED = {"none": "NO", "shared": "YES", "oversubscribe": "YES", "user": "USER", "mcs": "MCS", "exclusive": "EXCLUSIVE"}
"""Words of the JSON for what squeue's ``%h`` calls otherwise."""
MOST = 1_000_000
"""GPUs, CPUs or nodes of a job; above it a record cannot be read."""
TASKS = re.compile(r"(\d{1,7}(?:-\d{1,7})?(?:,\d{1,7}(?:-\d{1,7})?)*)(?:%\d+)?", re.ASCII)
EVERY = re.compile(r"(\d{1,7})-(\d{1,7}):([1-9]\d{0,6})(?:%\d+)?", re.ASCII)
"""Tasks of an array, and those at regular intervals, each with how many of them may run at once."""


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
    each = collect(_rows(answer, "nodes", "sinfo --json"), _node, lambda item: f"node {_label(item, 'name')}")
    return Parsed(_merged(each.records), each.faults)


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


def _job(item: Any) -> SlurmJob:
    job = Row(item)
    states = job.words("job_state", "a state")
    state = base_state(frozenset(word.upper() for word in states), states[0].upper())
    waiting = state in WAITING_STATES
    minutes = job.number("time_limit")
    limit_s = None if minutes is None or math.isinf(minutes) else 60.0 * minutes
    nodes, tasks, cpus = (job.count(key, 1) for key in ("node_count", "tasks", "cpus"))
    names = () if waiting else expand(job.text("nodes"))
    detail = [] if waiting else _detail(job.item.get("gres_detail"))
    on_nodes, sockets = len(names) or nodes, job.count("sockets_per_node", 1, bits=16)
    requested = requested_gpus(job.text, on_nodes, tasks, on_nodes * sockets)
    allocated = "" if waiting else job.text("tres_alloc_str")
    by_type = dict(sum(map(Counter, detail), Counter())) or gpus(allocated, "tres_alloc_str") or requested
    of_node = None
    if names and len(detail) == len(names):
        of_node = {name: sum(amounts.values()) for name, amounts in zip(names, detail, strict=True)}
    elif len(names) == 1:
        of_node = {names[0]: sum(by_type.values())}
    if waiting:  # until it starts, Slurm counts one CPU for each task, also where the job asks for some with each GPU
        cpus = max(cpus, sum(by_type.values()) * sum(gpus(job.text("cpus_per_tres"), "cpus_per_tres").values()))
    for what, amount in (("GPUs", sum(by_type.values())), ("CPUs", cpus), ("nodes", nodes)):
        if amount > MOST:
            raise Fault(f"found {amount} {what}, expected at most {MOST}")
    spreads = waiting and bool(gpus(job.text("tres_per_job"), "tres_per_job")) and not job.count("max_nodes", 0)
    priority = job.count("priority", 0)
    return SlurmJob(
        id=job.required(job.count("job_id"), "job_id", "1 or more"),
        user=job.text("user_name") or str(job.count("user_id")),
        account=job.text("account"),
        partition=job.text("partition"),
        qos=job.text("qos"),
        state=state,
        reason=job.text("state_reason"),
        submit_s=job.required(job.moment("submit_time"), "submit_time", "seconds since 1970"),
        start_s=job.moment("start_time"),
        time_limit_s=limit_s,
        nodes=nodes,
        spreads=spreads,
        cpus=cpus,
        mem_mb=_memory(job, nodes, cpus, sum(by_type.values())),
        gpus=sum(by_type.values()),
        gpu_type=only_type(by_type),
        node_names=names,
        gpus_of_node=of_node,
        priority=priority,
        held=waiting and (priority == 0 or job.item.get("hold") is True),
        dependency=job.text("dependency"),
        array_id=job.count("array_job_id", 0) or None,
        tasks=_tasks(job),
        het_id=job.count("het_job_id", 0) or None,
        constraint=job.text("features"),
        excluded=frozenset(expand(job.text("excluded_nodes"), "excluded_nodes")),
        is_bound=bool(job.text("required_nodes") or job.text("resv_name")),
        asked_type=only_type(requested),
        comment=job.text("comment"),
        shared=_shared(job),
        gpus_by_type=by_type,
        eligible_s=job.moment("eligible_time"),
    )


def _tasks(job: Row) -> str:
    """The tasks that a record with the id of its array stands for: its waiting rest, or the one that was left last."""
    if job.number("job_id") != job.number("array_job_id"):
        return ""
    text, one = job.text("array_task_string"), job.count("array_task_id", -1)
    if every := EVERY.fullmatch(text):  # scontrol does not take these
        first, last, step = map(int, every.groups())
        return ",".join(map(str, range(first, last + 1, step)))
    found = TASKS.fullmatch(text)
    if text and found is None:
        raise Fault(f"array_task_string: found {shown(text)}, expected tasks of an array")
    return found[1] if found else str(one) if one >= 0 else ""


def _detail(value: Any) -> list[dict[str, int]]:
    """GPUs on each node, in the order of the nodes."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise Fault(f"gres_detail: found {shown(value)}, expected a list of texts")
    return [gpus(text, "gres_detail") for text in value]


def _memory(job: Row, nodes: int, cpus: int, amount: int) -> int | None:
    """Memory over all nodes, MB, that it has or requests; 0 is Slurm's value for all memory of its nodes."""
    if (allocated := allocated_mb(job.text("tres_alloc_str"))) is not None:
        return allocated
    if each := sum(gpus(job.text("memory_per_tres"), "memory_per_tres").values()):  # gres:gpu:61440, MB a GPU
        return each * amount
    for key, factor in (("memory_per_node", nodes), ("memory_per_cpu", cpus)):
        found = job.number(key, 64)
        if found and not math.isinf(found):
            return round(found * factor)
    return None


def _shared(job: Row) -> str:
    value = job.item.get("shared", "")
    if value is None or value == []:
        return "OK"  # neither requested nor refused
    if value in ("none", ["none"]):  # one of Slurm's words for nothing
        return "NO"
    word = next(iter(job.words("shared")), "")
    return SHARED.get(word.lower(), word.upper())


def _node(item: Any) -> SlurmNode:
    node = Row(item)
    has, name = node.text("gres"), node.text("name", "a node's name")
    if expand(name, "name") != (name,):
        raise Fault(f"name: found {shown(name)}, expected the name of one node")
    return SlurmNode(
        name=name,
        state=frozenset(word.upper() for word in (*node.words("state", "a state"), *node.words("state_flags"))),
        cpus=node.count("cpus", bits=16),
        cpus_alloc=node.count("alloc_cpus", 0, bits=16),
        mem_mb=node.count("real_memory", 0, bits=64),
        mem_alloc_mb=node.count("alloc_memory", 0, bits=64),
        gpus=gpus(has),
        gpus_alloc=used_gpus(has, node.text("gres_used")),
        partitions=node.words("partitions"),
        features=node.words("features"),
    )


def _nodes_of_row(item: Any) -> list[SlurmNode]:
    """Nodes of one row of ``sinfo --json`` as of Slurm 23.02: similar nodes together, amounts as totals."""
    row = Row(item).item
    names = Row(row.get("nodes")).words("nodes", "names under 'nodes'")
    cpus, mem, gres, state = (Row(row.get(key) or {}).item for key in ("cpus", "memory", "gres", "node"))
    partition, features = row.get("partition"), row.get("features")
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
            "features": features.get("total") if isinstance(features, dict) else features,
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
