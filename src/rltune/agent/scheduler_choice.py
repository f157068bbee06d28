"""The scheduler an agent runs in, chosen on the training part before it learns an order.

That is: the policy whose order it starts from, the jobs that nodes are reserved for, placement, locality, where GPU types
differ in speed the rule for the type and the price of GPU time, and whether it uses the given estimates or the calibrated ones
(rltune.traces.estimates.calibrated). All candidates are heuristics that the compiled
simulator runs without a network, so they can be compared on up to hundreds of windows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rltune import policies
from rltune.cluster.types import PRICES
from rltune.config.cells import PLANNED_TYPES
from rltune.files import write_json
from rltune.simulator.config import ASKED, SchedulerConfig

CHOSEN = ("policy", "backfill", "placement", "locality", "split_worth", "types", "gpu_price")
"""Fields of a SchedulerConfig that are chosen."""
POLICIES = ("fifo", "sjf", "saf", "smallest", "f1", "wfp3", "unicep", "multifactor")
RESERVATIONS = {
    "none": ("none",),
    "greedy": ("greedy", "easy", "conservative"),
    "easy": ("easy", "conservative"),
    "conservative": ("conservative",),
}
"""Backfill rule of a cell → those its agent may have: it may reserve for more jobs than the rule asks, not for fewer."""
PLACEMENTS = ("best_fit", "isolating_best_fit", "lookahead")
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
MAX_WINDOWS = 300
"""Windows of the training part that candidates are compared on, evenly spread: as many as training draws sequences, but at
most these (our choice)."""
ERRORS = 0.5
"""Standard errors by which a candidate has to be better to be taken: between none, which is best where all windows are
like those to come, and one or two, which would leave much of the gain."""
SWEEPS = 3
"""Times that every axis but reservations is gone through, at most."""
SILENCE_S = 15.0
"""Longest time without a line of progress, if single trials are shorter."""
TRIALS = "trials.json"
"""Where the scores of candidates are kept until the training has ended."""


@dataclass(frozen=True)
class AgentScheduler:
    """A scheduler, and whether the agent uses calibrated estimates in it."""

    config: SchedulerConfig
    uses_calibrated: bool = False

    def facts(self) -> dict[str, Any]:
        """What was chosen, as it is kept in the policy file."""
        return {name: getattr(self.config, name) for name in CHOSEN} | {"uses_calibrated": self.uses_calibrated}

    def but(self, **changes: Any) -> AgentScheduler:
        """The same with other fields of the configuration."""
        return replace(self, config=replace(self.config, **changes))


def type_plan(facts: dict[str, Any]) -> dict[str, Any]:
    """``types`` and ``gpu_price`` of a plan for all jobs: those that an agent of these facts chose, if any; else the joint search at
    the lowest price."""
    chosen = facts.get("scheduler", {})
    if chosen.get("types") in PLANNED_TYPES:
        return {name: chosen[name] for name in ("types", "gpu_price")}
    return {"types": "joint", "gpu_price": PRICES[0]}


Scores = Callable[[AgentScheduler], np.ndarray]
"""Score of each of the windows [S] under a scheduler, lower is better."""


def choose(
    start: AgentScheduler,
    tunes: str,
    has_calibrated: bool,
    has_price: Callable[[SchedulerConfig], bool],
    scores: Scores,
) -> tuple[AgentScheduler, list[dict[str, Any]]]:
    """(The scheduler chosen, a row per candidate: its fields, ``score``, ``gain``, ``error``, ``kept``).

    A greedy search: one axis after the other is varied, and a candidate is taken whose mean score is better than that of
    the best so far by more than ERRORS standard errors of the paired difference, until nothing changes. Then backfill
    is varied, and types ``joint`` with every price tried where jobs may then wait for a type (``has_price``). If backfill has
    changed, the other axes are varied once more; the policy only where jobs may wait for a type, since conservative
    backfilling takes long. Last comes the price. ``tunes`` is the preset's. ``gain`` is the difference from the best so far
    when the candidate was tried, ``error`` its standard error; ``kept``: whether it was the best for a while. The first row
    is ``start``.
    """
    best, known = start, {start: scores(start)}
    rows = [_row(best, known[best], known[best], True)]

    def vary(axis: Axis) -> None:
        nonlocal best
        tried = [candidate for candidate in dict.fromkeys(axis(best)) if candidate != best]
        fresh = [candidate for candidate in tried if candidate not in known]
        known.update({candidate: scores(candidate) for candidate in fresh})
        winner = min(tried, key=lambda candidate: known[candidate].mean(), default=best)
        gain, error = difference(known[best], known[winner])
        rows.extend(_row(candidate, known[candidate], known[best], False) for candidate in fresh)
        if gain > ERRORS * error:
            best = winner
            rows[list(known).index(best)]["kept"] = True

    def reserving(best: AgentScheduler) -> list[AgentScheduler]:
        return [best.but(backfill=backfill) for backfill in RESERVATIONS[start.config.backfill]]

    def planning(best: AgentScheduler) -> list[AgentScheduler]:
        plans = [rule for rule in reserving(best) if has_price(rule.config)]
        return [plan.but(types="joint", gpu_price=price) for plan in plans for price in (0.0, *PRICES)]

    policy, *rest = _axes(tunes, has_calibrated, start.config.policy)
    for _ in range(SWEEPS):
        before = best
        for axis in (policy, *rest):
            vary(axis)
        if best == before:
            break
    vary(reserving)
    vary(planning)
    if best.config.backfill != start.config.backfill:
        for axis in (policy, *rest) if has_price(best.config) else rest:
            vary(axis)
    if has_price(best.config):
        rules = (start.config.types, "joint")
        vary(lambda best: [best.but(types=rule, gpu_price=price) for rule in rules for price in (0.0, *PRICES)])
        if best.config.types == "auto":
            best = best.but(types="least")  # what it means here, and would not where another scheduler takes it over
    return best, rows


def difference(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Mean of ``ours`` − ``theirs`` over paired windows [S], and its standard error (infinite for one window)."""
    gap = ours - theirs
    return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else float("inf")


Axis = Callable[[AgentScheduler], list[AgentScheduler]]
"""The best so far → what one of its fields may be instead."""


def _axes(tunes: str, has_calibrated: bool, start: str) -> Iterator[Axis]:
    """What may be varied, one axis after the other, but for reservations."""
    score = policies.POLICIES[start].score  # the start's name stands for any policy of the same order
    orders = [start if policies.POLICIES[policy].score is score else policy for policy in POLICIES]
    yield lambda best: [best.but(policy=policy) for policy in orders]
    if tunes == "scheduler":
        yield lambda best: [best.but(locality=locality, split_worth=worth) for locality, worth in SPLITS]
        yield lambda best: [
            best.but(placement=placement)
            for placement in PLACEMENTS
            if best.config.types == "auto" or placement not in ASKED  # which ignores speeds
        ]
    if has_calibrated:
        yield lambda best: [replace(best, uses_calibrated=uses) for uses in (False, True)]


def _row(candidate: AgentScheduler, scores: np.ndarray, so_far: np.ndarray, kept: bool) -> dict[str, Any]:
    gain, error = difference(so_far, scores)
    return {**candidate.facts(), "score": float(scores.mean()), "gain": gain, "error": error, "kept": kept}


class Trials:
    """Scores of candidates, printed and kept on disk: an interruption loses one of them.

    ``scores`` finds those that are not known; ``identity`` is that of the training
    (rltune.agent.task.TrainingTask) and ``folder`` is where they are kept, None: nowhere. What another training left
    there, or what cannot be read, is not used.
    """

    def __init__(self, scores: Scores, identity: dict[str, Any], folder: Path | None = None) -> None:
        self._scores, self._identity = scores, json.loads(json.dumps(identity))
        self._path = folder / TRIALS if folder else None
        self._known = self._read()
        self._tried, self._best, self._printed = 0, np.inf, time.perf_counter()
        print(f"choosing a scheduler{f': {len(self._known)} known from before' if self._known else ''}", flush=True)

    def __call__(self, candidate: AgentScheduler) -> np.ndarray:
        """Scores of the windows [S]."""
        key = json.dumps(candidate.facts())
        if key not in self._known:
            self._known[key] = self._scores(candidate).tolist()
            if self._path is not None:
                write_json(self._path, {"of": self._identity, "known": self._known})
        found = np.array(self._known[key])
        self._tried, self._best = self._tried + 1, min(self._best, float(found.mean()))
        if time.perf_counter() - self._printed > SILENCE_S:
            self.report()
        return found

    def report(self) -> None:
        """Print how far it is."""
        self._printed = time.perf_counter()
        print(f"choosing a scheduler: {self._tried} tried, the best scores {self._best:.4g}", flush=True)

    def _read(self) -> dict[str, list[float]]:
        if self._path is None or not self._path.is_file():
            return {}
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            return dict(kept["known"]) if kept["of"] == self._identity else {}
        except (ValueError, KeyError, TypeError) as error:
            print(f"{self._path}: cannot be read ({error}); all candidates are tried again", flush=True)
            return {}
