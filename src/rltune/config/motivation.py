"""The block ``motivation`` of a run: why the order of a queue matters, on real Slurm daemons (paper §2)."""

from __future__ import annotations

from pydantic import Field

from rltune.config.base import Block


class Motivation(Block):
    """Figures 1 to 4 on an emulated Slurm cluster of two nodes, each for some 2.5 hours of its clock.

    Where Slurm's packages are absent they are simulated, and the report says so.
    """

    speed: float = Field(600.0, ge=1, le=1000)
    """How fast the cluster's clock runs. What starting a job takes, some 10 ms, is 6 s of the cluster at 600."""
