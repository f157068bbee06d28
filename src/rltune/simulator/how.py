"""How a run is scheduled: the numbers the compiled engine goes by."""

from __future__ import annotations

from typing import NamedTuple

EXTERNAL = -1  # the order is asked of the driver

NONE, GREEDY, EASY, CONSERVATIVE = range(4)
BACKFILLS = {"none": NONE, "greedy": GREEDY, "easy": EASY, "conservative": CONSERVATIVE}
DOUBLE, NOW = range(2)
OVERRUNS = {"double": DOUBLE, "now": NOW}
COMMITS = {"decision": False, "head": True}
NEVER, AMONG_OTHERS, ALWAYS = range(3)


class How(NamedTuple):
    """Numbers of rltune.simulator.setting.Setting."""

    order: int
    """Number of a compiled policy, or EXTERNAL."""
    base: int
    """Policy that orders what an external ranking does not cover."""
    visible: int
    """Jobs an external ranking covers at most; 0: all."""
    backfill: int
    rule: int
    locality: int
    extra: int
    """Nodes more than strict that any job may have."""
    overrun: int
    commit: bool
    asks_place: int
    """Ask PLACE where the chosen job has more than one way: NEVER, AMONG_OTHERS (others are queued), ALWAYS."""
    multi_node_slowdown: float
    """Run time of a job on more nodes than strict, over its run time."""
    interference_slowdown: float
    """Run time of a job of several GPUs while another is on one of its nodes, over its run time."""
    worth: float
    """Seconds of waiting that a split has to save for every second it makes the job run longer."""
    company: bool
    """Count the jobs of several GPUs on every node."""
    splits: bool
    """Whether a job may have more nodes than strict."""
    tracks: bool
    """Keep running jobs in order of their expected ends: reservations need it, and observations."""
    check: bool
    """Assert the invariants at every instant."""
    alone: bool
    """Ask for the ranking of a single job too, which may be held back."""

    @property
    def asks(self) -> bool:
        """Whether rankings are asked of the driver."""
        return self.order == EXTERNAL
