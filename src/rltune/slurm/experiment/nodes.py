"""Nodes that Slurm takes out of service because a job's last process did not end, which happens on a fast clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rltune.slurm.emulate import Emulation

REASON = "Kill task failed"
"""Slurm's reason for such a node."""
UNKILLABLE_S = 5.0
"""Real seconds after which Slurm gives up on a step; until then other jobs cannot use its nodes."""
EVERY_S = 5.0
"""Real seconds between two looks at the nodes."""


@dataclass
class Nodes:
    """Resumes such nodes and counts them; Slurm would wait for an administrator."""

    slurm: Emulation
    say: Callable[[str], None]
    resumed: list[str] = field(default_factory=list)
    """Names, once per time."""
    _looked: float = field(default_factory=time.monotonic)

    def look(self) -> None:
        """Look at the nodes if the last look is EVERY_S ago."""
        if time.monotonic() - self._looked < EVERY_S:
            return
        self._looked = time.monotonic()
        lines = self.slurm.run("sinfo", "--Node", "--noheader", "--format=%N|%T|%E").splitlines()
        for line in sorted(set(lines)):
            name, state, reason = line.split("|", 2)
            if reason.strip() == REASON and state.startswith("drain"):
                self.slurm.set_node(name, "RESUME")
                self.resumed.append(name)
                self.say(f"a process of a job on {name} did not end, and Slurm took the node out of service: resumed")
