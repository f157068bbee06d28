"""The recorded answers of Slurm 22.05 in the form of 23.02 to 24.11, by the published schema of v0.0.39 to v0.0.41.

https://slurm.schedmd.com/rest_api.html (v0.0.41_job_info, sinfo): numbers that may be unset are objects, states are
lists, texts of interference_slowdown are lists, resources are nested otherwise, nodes are rows of sinfo.
"""

from __future__ import annotations

from typing import Any

OBJECTS = (
    "accrue_time",
    "array_job_id",
    "array_task_id",
    "array_max_tasks",
    "billable_tres",
    "cores_per_socket",
    "cpus",
    "cpus_per_task",
    "deadline",
    "delay_boot",
    "eligible_time",
    "end_time",
    "het_job_id",
    "het_job_offset",
    "last_sched_evaluation",
    "max_cpus",
    "max_nodes",
    "memory_per_cpu",
    "memory_per_node",
    "minimum_cpus_per_node",
    "minimum_tmp_disk_per_node",
    "node_count",
    "pre_sus_time",
    "preempt_time",
    "priority",
    "resize_time",
    "sockets_per_node",
    "start_time",
    "submit_time",
    "suspend_time",
    "tasks",
    "tasks_per_core",
    "tasks_per_node",
    "tasks_per_socket",
    "tasks_per_board",
    "threads_per_core",
    "time_limit",
    "time_minimum",
)


def number(value: float | None, infinite: bool = False) -> dict[str, Any]:
    """A number as an object."""
    return {"set": value is not None, "infinite": infinite and value is None, "number": value or 0}


def newer_jobs(answer: dict[str, Any], states_as_lists: bool = True) -> dict[str, Any]:
    """squeue's answer; ``states_as_lists``: as of v0.0.40."""
    return {
        **envelope("v0.0.41" if states_as_lists else "v0.0.39"),
        "jobs": [newer_job(job, states_as_lists) for job in answer["jobs"]],
    }


def newer_job(old: dict[str, Any], states_as_lists: bool) -> dict[str, Any]:
    job = {key: value for key, value in old.items() if key != "job_resources"}
    job |= {key: number(old[key], key in ("time_limit", "tasks_per_core")) for key in OBJECTS}
    none = old["array_task_id"] is None or not old["array_job_id"]
    job["array_task_id"] = number(None if none else old["array_task_id"])
    job["hold"] = old["priority"] == 0
    job["shared"] = [{"shared": "oversubscribe"}.get(old["shared"], old["shared"])] if old["shared"] else []
    job["exclusive"] = ["true"] if old["shared"] == "none" else []
    job["oversubscribe"] = old["shared"] != "none"
    for key in ("per_job", "per_node", "per_socket", "per_task"):
        job[f"tres_{key}"] = old[f"tres_{key}"].replace("gres:gpu", "gres/gpu")
    if states_as_lists:
        job["job_state"] = [old["job_state"]]
    if old["nodes"]:
        names = [node["nodename"] for node in old["job_resources"]["allocated_nodes"]]
        job["job_resources"] = {
            "select_type": ["CORE"],
            "nodes": {
                "count": len(names),
                "list": old["nodes"],
                "whole": False,
                "allocation": [{"index": k, "name": name} for k, name in enumerate(names)],
            },
        }
    return job


def newer_nodes(answer: dict[str, Any]) -> dict[str, Any]:
    """sinfo's answer with a row a node and partition."""
    return {
        **envelope("v0.0.41"),
        "sinfo": [newer_row(node, name) for node in answer["nodes"] for name in (*node["partitions"], "another")],
    }


def newer_row(node: dict[str, Any], partition: str) -> dict[str, Any]:
    return {
        "port": node["port"],
        "cluster": "emulated",
        "partition": {"name": partition, "nodes": {"total": 5}},
        "node": {"state": [node["state"].upper(), *node["state_flags"]]},
        "nodes": {
            "allocated": 0,
            "idle": 0,
            "other": 1,
            "total": 1,
            "hostnames": [],
            "addresses": [],
            "nodes": [node["name"]],
        },
        "cpus": {
            "allocated": node["alloc_cpus"],
            "idle": node["idle_cpus"],
            "other": 0,
            "total": node["cpus"],
            "minimum": node["cpus"],
            "maximum": node["cpus"],
            "per_node": {"max": number(None, True)},
        },
        "memory": {
            "minimum": node["real_memory"],
            "maximum": node["real_memory"],
            "allocated": node["alloc_memory"],
            "free": {"minimum": number(node["free_memory"]), "maximum": number(node["free_memory"])},
        },
        "gres": {"total": node["gres"], "used": node["gres_used"]},
        "features": {"total": node["features"], "active": node["active_features"]},
        "reason": node["reason"],
        "reservation": "",
        "weight": {"minimum": 1, "maximum": 1},
    }


def envelope(parser: str) -> dict[str, Any]:
    return {
        "errors": [],
        "warnings": [],
        "last_update": number(1),
        "meta": {
            "plugin": {"type": "", "name": "", "data_parser": f"data_parser/{parser}"},
            "command": ["squeue"],
            "slurm": {
                "cluster": "emulated",
                "release": "24.05.3",
                "version": {"major": "24", "minor": "05", "micro": "3"},
            },
        },
    }
