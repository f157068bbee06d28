"""GPUs and memory that a job has or requests, and states of jobs and nodes, from Slurm's several fields."""

import re
from collections import Counter
from collections.abc import Callable

from rltune.slurm.records import UNFINISHED_STATES
from rltune.slurm.values import Fault, shown
from rltune.traces import gres
from rltune.traces.raw.slurm_fields import MIB

SHARED_GPUS = re.compile(r"(?:shard|mps):(?:([^:,()]+):)?\d+\(([\d/,]+)\)")
"""Shards of GPUs, of a type, and on each GPU how many are in use of how many: ``shard:p100:3(1/4,2/4)``."""
MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)", re.ASCII)


def gpus(text: str, field: str = "gres") -> dict[str, int]:
    """GPUs by type, as :func:`rltune.traces.gres.gpus`. Raises Fault, with the field's name, where they cannot be read."""
    try:
        return gres.gpus(text)
    except ValueError as error:
        raise Fault(f"{field}: {error}") from None


def only_type(found: dict[str, int]) -> str | None:
    """The one GPU type; None where there is none, or several."""
    kinds = [kind for kind, amount in found.items() if kind and amount]
    return kinds[0] if len(kinds) == 1 else None


def used_gpus(has: str, used: str) -> dict[str, int]:
    """GPUs in use by type, those of which shards are in use too; those that Slurm reports without a type have the node's only
    type."""
    found, kind = Counter(gpus(used, "gres_used")), only_type(gpus(has))
    for of, each in SHARED_GPUS.findall(used):
        found[of] += sum(not one.startswith("0/") for one in each.split(","))
    if kind:
        found[kind] += found.pop("", 0)
    return dict(+found)


def requested_gpus(texts: Callable[[str], str], nodes: int, tasks: int, sockets: int) -> dict[str, int]:
    """GPUs that a job requests by type, over all nodes: as many as the first of Slurm's fields that has some, of the types in
    the first that has them.

    ``texts``: the job's text of a field. ``tres_req_str`` has GPUs, and types, only where Slurm accounts for them.
    """
    factors = {
        "tres_per_job": 1,
        "tres_req_str": 1,
        "tres_per_node": nodes,
        "tres_per_socket": sockets,
        "tres_per_task": tasks,
    }
    found = [
        {kind: amount * factor for kind, amount in gpus(texts(key), key).items()}
        for key, factor in factors.items()
        if factor
    ]
    first = next(filter(None, found), {})
    typed = next((some for some in found if some and "" not in some), first)
    kind = only_type(typed)
    return {kind: sum(first.values())} if kind else typed


def allocated_mb(tres: str) -> int | None:
    """Memory in a list of allocated resources, where it is. Raises Fault where it cannot be read."""
    amounts = dict(item.partition("=")[::2] for item in tres.split(","))
    if "mem" not in amounts:
        return None
    found = MEMORY.fullmatch(amounts["mem"])
    if found is None:
        raise Fault(f"tres_alloc_str: found mem={shown(amounts['mem'])}, expected memory such as mem=64G")
    return round(float(found[1]) * MIB[found[2]]) or None


def base_state(flags: frozenset[str], first: str) -> str:
    """The base state of a job with several state words: the one that tells whether it waits or holds nodes, or that another
    cluster of a federation has started it."""
    if "REVOKED" in flags:
        return "REVOKED"
    if first in UNFINISHED_STATES or len(flags) == 1:
        return first
    return min(flags & UNFINISHED_STATES, default=first)
