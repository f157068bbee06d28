"""How placement questions were answered, and how long the solver took."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from rltune.simulator.batch import Placer


@dataclass
class Counts:
    """How placement questions were answered."""

    asked: int = 0
    """Questions: the chosen job has several candidate placements and others are queued."""
    presolved: int = 0
    """Answered with a certificate of optimality, without a solver."""
    cached: int = 0
    """Answered from an equal problem solved before."""
    optimal: int = 0
    """Solved to optimality."""
    infeasible: int = 0
    """Said to be infeasible; placed by best_fit."""
    limit: int = 0
    """Stopped by the safety net of wall-clock time; placed by best_fit, and the run is not reproducible."""
    failure: int = 0
    """The solver failed; placed by best_fit."""
    times_s: array = field(default_factory=lambda: array("d"))
    """Seconds of each solve, building the problem included, in order."""

    def add(self, outcome: str, took_ms: float) -> None:
        """Count a solve that ended so."""
        setattr(self, outcome, getattr(self, outcome) + 1)
        self.times_s.append(took_ms / 1000)

    @property
    def calls(self) -> int:
        """Questions neither presolved nor cached: answered by the solver, or by Algorithm 1's closed form."""
        return self.optimal + self.infeasible + self.limit + self.failure

    @property
    def seconds(self) -> float:
        """Time in the solver."""
        return sum(self.times_s)

    def latency_ms(self) -> dict[str, float]:
        """``p50``, ``p95``, ``p99`` and ``max`` of a solve in ms; NaN where the solver did not run."""
        times = np.array(self.times_s) * 1000
        at = np.percentile(times, (50, 95, 99, 100)) if len(times) else np.full(4, np.nan)
        return dict(zip(("p50", "p95", "p99", "max"), at.tolist(), strict=True))

    def since(self, before: Counts) -> Counts:
        """What was added since ``before``, an earlier :meth:`copy`."""
        parts = {f.name: getattr(self, f.name) - getattr(before, f.name) for f in fields(self) if f.type == "int"}
        return Counts(**parts, times_s=self.times_s[len(before.times_s) :])

    def copy(self) -> Counts:
        """As they are now."""
        return replace(self, times_s=self.times_s[:])


Given = TypeVar("Given")


def timed(call: Callable[..., Given], *arguments: Any) -> tuple[Given, float]:
    """(What the call returns, how long it took in ms)."""
    began = time.perf_counter()
    return call(*arguments), 1000 * (time.perf_counter() - began)


class CountingPlacer(Placer, Protocol):
    """A placer that counts."""

    counts: Counts
