"""How a placement model's solve ended, and what it chose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    LIMIT = "limit"
    FAILURE = "failure"


@dataclass(frozen=True)
class Solution:
    """What the model chose: the chosen job's chunks as (place in the instance's ``member``, GPUs), full ones first;
    none: it waits."""

    outcome: Outcome
    objective: float
    chunks: tuple[tuple[int, int], ...] = ()
