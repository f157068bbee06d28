"""Maximum waits of jobs by their size, in hours: what keeps an order of the queue from starving anybody."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

MaxWait = Annotated[
    dict[Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0)]],
    AfterValidator(lambda hours: dict(sorted(hours.items()))),
]
"""Most GPUs of a job → hours, by size."""
DEFAULT: dict[int, float] = {1: 24.0, 8: 72.0, 1024: 168.0}
"""They end at 168 h, the wait (PriorityMaxAge) from which a job's age counts fully in Slurm's own priority; small jobs, which
any order can start soon, get less."""


def size_of(max_wait_h: Mapping[int, float], gpus: int) -> int:
    """The size class of a job: the least size that it does not exceed, or the largest."""
    sizes = sorted(max_wait_h)
    return next((size for size in sizes if gpus <= size), sizes[-1])


def bound_of(max_wait_h: Mapping[int, float], gpus: int) -> float:
    """The hours that a job of so many GPUs may wait; infinite where there are no bounds."""
    return max_wait_h[size_of(max_wait_h, gpus)] if max_wait_h else float("inf")
