"""Nodes that Slurm takes out of service since a job's last process did not end: on a fast clock one now and then hangs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rltune.slurm.emulate import Emulation

REASON = "Kill task failed"
"""What Slurm says of such a node."""
UNKILLABLE_S = 5.0
"""True seconds after which Slurm gives up on a step: so long at most the job's nodes are kept from others."""
EVERY_S = 5.0
"""True seconds between two looks at the nodes."""


@dataclass
class Nodes:
    """Sets such nodes to work again, and keeps count: Slurm would wait for an administrator."""

    slurm: Emulation
    say: Callable[[str], None]
    resumed: list[str] = field(default_factory=list)
    """Names, one for each time."""
    _looked: float = field(default_factory=time.monotonic)

    def look(self) -> None:
        """Look at the nodes, where the last look is EVERY_S ago."""
        if time.monotonic() - self._looked < EVERY_S:
            return
        self._looked = time.monotonic()
        told = self.slurm.run("sinfo", "--Node", "--noheader", "--format=%N|%T|%E").splitlines()
        for line in sorted(set(told)):
            name, state, reason = line.split("|", 2)
            if reason.strip() == REASON and state.startswith("drain"):
                self.slurm.set_node(name, "RESUME")
                self.resumed.append(name)
                self.say(f"a process of a job on {name} did not end, and Slurm took the node out of service: resumed")
