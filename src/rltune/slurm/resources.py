"""GPUs and memory that a job has or requests, and states of jobs and nodes, from Slurm's several fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from rltune.slurm.records import RUNNING_STATES, WAITING_STATES
from rltune.slurm.values import Fault, memory
from rltune.traces import gres
from rltune.traces.gres import PARENTHESES

STATE_MARKS = {
    "*": "NO_RESPOND",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINT",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
"""Suffixes of a node's state (sinfo(1), NODE STATE CODES)."""


def gpus(text: str, field: str = "gres") -> dict[str, int]:
    """GPUs by type, as :func:`rltune.traces.gres.gpus`. Raises Fault, with the field's name, where they cannot be read."""
    try:
        return gres.gpus(text)
    except ValueError as error:
        raise Fault(f"{field}: {error}") from None


def added(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    """GPUs by type, summed over several lists."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def only_type(found: dict[str, int]) -> str | None:
    """The one GPU type; None where there is none, or several."""
    kinds = [kind for kind, amount in found.items() if kind and amount]
    return kinds[0] if len(kinds) == 1 else None


def used_gpus(has: str, used: str) -> dict[str, int]:
    """GPUs in use by type; those that Slurm reports without a type have the node's only type."""
    found = gpus(used, "gres_used")
    kinds = set()
    for item in PARENTHESES.sub("", has.replace("(null)", "")).split(","):
        parts = re.split("[:=]", item.strip().removeprefix("gres/").removeprefix("gres:"))
        if parts[0] == "gpu" and len(parts) > 2 and parts[1]:
            kinds.add(parts[1])
    return {kinds.pop(): found[""]} if set(found) == {""} and len(kinds) == 1 else found


def requested_gpus(texts: Callable[[str], str], waiting: bool, nodes: int, tasks: int, sockets: int) -> dict[str, int]:
    """GPUs of a job by type, over all nodes, from the first of Slurm's fields that has some.

    ``texts``: the job's text of a field. ``tres_alloc_str`` and ``tres_req_str`` have GPUs only where Slurm accounts for
    them.
    """
    factors = {
        "tres_alloc_str": 0 if waiting else 1,
        "tres_per_job": 1,
        "tres_req_str": 1,
        "tres_per_node": nodes,
        "tres_per_socket": sockets,
        "tres_per_task": tasks,
    }
    for key, factor in factors.items():
        if factor and (found := gpus(texts(key), key)):
            return {kind: amount * factor for kind, amount in found.items()}
    return {}


def allocated_mb(tres: str) -> int | None:
    """Memory in a list of allocated resources, where it is."""
    for item in tres.split(","):
        name, _, amount = item.partition("=")
        if name.strip() == "mem" and (found := memory(amount.strip(), "tres_alloc_str")):
            return round(found[0])
    return None


def base_state(flags: frozenset[str], first: str) -> str:
    """The base state of a job with several state words: the one that tells whether it waits or holds nodes."""
    if first in WAITING_STATES or first in RUNNING_STATES or len(flags) == 1:
        return first
    return min(flags & (WAITING_STATES | RUNNING_STATES), default=first)


def node_flags(text: str) -> frozenset[str]:
    """Words of a node's state in sinfo's text: ``mixed+drain``, ``idle*``, ``draining@``."""
    flags = set()
    for word in text.replace(",", "+").split("+"):
        name = word.strip()
        while name and name[-1] in STATE_MARKS:
            flags.add(STATE_MARKS[name[-1]])
            name = name[:-1]
        if name:
            flags.add(name.upper())
    return frozenset(flags)
