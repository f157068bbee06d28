"""What an agent decides besides the order of the queue, chosen on the training part before it learns an order.

A *way* is whose order the agent starts from, for whom nodes are reserved, where jobs go, when they are split, and
whether it goes by the estimates it is given or by its beliefs about them (rltune.traces.calibrated). All candidates are
heuristics that the compiled simulator runs without a network, so that hundreds of windows tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.errors import DataError
from rltune.simulator.config import SchedulerConfig

POLICIES = ("fifo", "sjf", "saf", "smallest", "f1", "wfp3", "unicep", "multifactor")
RESERVATIONS = {
    "none": ("none",),
    "greedy": ("greedy", "easy", "conservative"),
    "easy": ("easy", "conservative"),
    "conservative": ("conservative",),
}
"""Backfill rule of a cell → those its agent may have: it may reserve for more jobs than the rule asks, not for fewer."""
PLACES = ("best_fit", "isolating_best_fit", "lookahead")
SPLITS = (
    ("strict", 1.0),
    ("plus_one", 1.0),
    ("any", 1.0),
    ("worth_it", 1.0),
    ("soonest_end", 1.0),
    ("worth_it", 0.3),
    ("worth_it", 0.1),
)
"""(Locality, split_worth)."""
ERRORS = 0.5
"""Standard errors by which a candidate has to be better to be taken: between none, which is best where all windows are
like those to come, and one or two, with which much that is worth something is left."""
SWEEPS = 3
"""Times that every axis but reservations is gone through, at most."""


@dataclass(frozen=True)
class Way:
    """Fields of rltune.simulator.config.SchedulerConfig, and whether the agent goes by its beliefs."""

    policy: str
    backfill: str
    placement: str
    locality: str
    split_worth: float
    uses_calibrated: bool

    def of(self, scheduler: SchedulerConfig) -> SchedulerConfig:
        """A setting with these in the place of its own."""
        return SchedulerConfig.of(scheduler, self)


def way_of(scheduler: SchedulerConfig, uses_calibrated: bool = False) -> Way:
    """The way of a setting."""
    fields = ("policy", "backfill", "placement", "locality", "split_worth")
    return Way(**{name: getattr(scheduler, name) for name in fields}, uses_calibrated=uses_calibrated)


def taken(
    facts: dict[str, Any], scheduler: SchedulerConfig, jobs: Jobs, calibrated: Jobs | None, who: str = "trained policy"
) -> tuple[SchedulerConfig, Jobs]:
    """(The setting, the jobs with the estimates) that a policy of these facts goes by: its own way where it chose one.

    ``calibrated``: the jobs with beliefs in the place of their estimates. Raises DataError, naming ``who``, for a policy
    that goes by beliefs where there are none.
    """
    if "way" not in facts:
        return scheduler, jobs
    way = Way(**facts["way"])
    if not way.uses_calibrated:
        return way.of(scheduler), jobs
    if calibrated is None:
        raise DataError(f"{who}: goes by beliefs about run times, found a workload without any")
    return way.of(scheduler), calibrated


Scores = Callable[[Way], np.ndarray]
"""Score of each of the windows [S] under a way, lower is better."""


def choose(start: Way, chooses: str, beliefs: bool, scores: Scores) -> tuple[Way, list[dict[str, Any]]]:
    """(The way chosen, a row a candidate tried: its fields, ``score``, ``gain``, ``error``, ``kept``).

    One axis after the other is varied, and a candidate kept whose mean score on the windows is below that of the way so
    far by more than ERRORS standard errors of the paired difference; until nothing changes. Then reservations are, and
    the other axes once more but for whose order it is: to plan every reservation takes long. ``chooses`` is the preset's,
    ``beliefs`` whether there are any; ``gain`` is the difference from the way so far when it was tried, and ``error`` its
    standard error; ``kept``: whether it was the way for a while. The first row is ``start``.
    """
    best, known = start, {start: scores(start)}
    rows = [_row(best, known[best], known[best], True)]

    def vary(axis: Axis) -> None:
        nonlocal best
        tried = [way for way in axis(best) if way != best]
        fresh = [way for way in tried if way not in known]
        known.update({way: scores(way) for way in fresh})
        winner = min(tried, key=lambda way: known[way].mean(), default=best)
        gain, error = difference(known[best], known[winner])
        rows.extend(_row(way, known[way], known[best], False) for way in fresh)
        if gain > ERRORS * error:
            best = winner
            rows[list(known).index(best)]["kept"] = True

    whose, *rest = _axes(chooses, beliefs)
    for _ in range(SWEEPS):
        before = best
        for axis in (whose, *rest):
            vary(axis)
        if best == before:
            break
    vary(lambda way: [replace(way, backfill=backfill) for backfill in RESERVATIONS[start.backfill]])
    if best.backfill != start.backfill:
        for axis in rest:
            vary(axis)
    return best, rows


def difference(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Mean of ``ours`` − ``theirs`` over paired windows [S], and its standard error (infinite for one window)."""
    gap = ours - theirs
    return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else float("inf")


Axis = Callable[[Way], list[Way]]
"""The way so far → what one of its fields may be instead."""


def _axes(chooses: str, beliefs: bool) -> Iterator[Axis]:
    """What may be varied, one axis after the other, but for reservations."""
    yield lambda way: [replace(way, policy=policy) for policy in POLICIES]
    if chooses == "ways":
        yield lambda way: [replace(way, locality=locality, split_worth=worth) for locality, worth in SPLITS]
        yield lambda way: [replace(way, placement=placement) for placement in PLACES]
    if beliefs:
        yield lambda way: [replace(way, uses_calibrated=uses_calibrated) for uses_calibrated in (False, True)]


def _row(way: Way, scores: np.ndarray, so_far: np.ndarray, kept: bool) -> dict[str, Any]:
    gain, error = difference(so_far, scores)
    return {**asdict(way), "score": float(scores.mean()), "gain": gain, "error": error, "kept": kept}
