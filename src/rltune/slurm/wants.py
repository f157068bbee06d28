"""What a job has or asks for, put together from what Slurm says in several places."""

from __future__ import annotations

from dataclasses import dataclass

from rltune.slurm.gres import gpus, times
from rltune.slurm.records import RUNNING_STATES, WAITING_STATES
from rltune.slurm.values import memory

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
"""Signs behind a node's state (sinfo(1), NODE STATE CODES)."""


@dataclass(frozen=True)
class Asked:
    """Resources of a job in Slurm's words."""

    per_job: str
    per_node: str
    per_socket: str
    per_task: str
    wanted: str
    """All of what it asks for (``tres_req_str``), GPUs in it only where Slurm accounts for them."""
    given: str
    """All of what it has (``tres_alloc_str``), the same."""

    def gpus(self, running: bool, nodes: int, tasks: int, sockets_per_node: int) -> dict[str, int]:
        """GPUs for each type, over all nodes."""
        if running and (found := gpus(self.given, "tres_alloc")):
            return found
        if found := gpus(self.per_job, "tres_per_job"):
            return found
        if found := gpus(self.wanted, "tres_req"):
            return found
        if found := gpus(self.per_node, "tres_per_node"):
            return times(found, nodes)
        if found := gpus(self.per_socket, "tres_per_socket"):
            return times(found, nodes * sockets_per_node)
        return times(gpus(self.per_task, "tres_per_task"), tasks)

    def mem_mb(self) -> int | None:
        """Memory of what it has, where Slurm says so."""
        for item in self.given.split(","):
            name, _, amount = item.partition("=")
            if name.strip() == "mem" and (found := memory(amount.strip(), "tres_alloc")):
                return round(found[0])
        return None


def base_state(flags: frozenset[str], first: str) -> str:
    """The one state of a job that has several words: whether it waits or holds nodes decides."""
    if first in WAITING_STATES or first in RUNNING_STATES or len(flags) == 1:
        return first
    return min(flags & (WAITING_STATES | RUNNING_STATES), default=first)


def flags_of_node(text: str) -> frozenset[str]:
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
