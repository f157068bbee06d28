"""The deployment in words: schedulers' names, and what one changes against another."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from rltune.report.format import NBSP, show
from rltune.report.style import POLICY_TITLE

HOUR_S = 3600.0


def who(scheduler: str) -> str:
    """`Slurm`, `RLTune`, `SAF, same controller`."""
    named = {"slurm": "Slurm", "rltune": "RLTune"}
    return named.get(scheduler) or f"{POLICY_TITLE.get(scheduler, scheduler)}, same controller"


def short(scheduler: str) -> str:
    """`Slurm`, `RLTune`, `SAF`."""
    return who(scheduler).partition(",")[0]


def sizes_in(runs: pd.DataFrame) -> dict[int, str]:
    """GPUs of a job → column with the mean wait of such jobs, of those that a frame of per_run has."""
    found = {name.split("_")[1]: name for name in runs.columns if name.startswith("wait_") and name.endswith("_gpus_s")}
    return {int(gpus): name for gpus, name in found.items()}


def times(number: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def in_words(paired: pd.DataFrame) -> list[str]:
    """A sentence a pair of schedulers, of the means of the repetitions that both have: who waits less and who longer, the
    longest wait, makespan and utilisation. ``paired``: of rltune.evaluation.studies.deployment.paired_runs."""
    return [_pair(runs, ours, theirs) for (ours, theirs), runs in paired.groupby(["ours", "theirs"], sort=False)]


def _pair(runs: pd.DataFrame, ours: str, theirs: str) -> str:
    x, y = (runs[runs["side"] == side].mean(numeric_only=True) for side in ("ours", "theirs"))
    shared = set(runs["repetition"])
    by_size = "; ".join(
        f"of {gpus} GPU{'s' if gpus > 1 else ''} {_change(x[column], y[column])}"
        for gpus, column in sizes_in(runs).items()
    )
    longest = [f"{show(side['wait_max_s'] / HOUR_S, 'number')}{NBSP}h" for side in (x, y)]
    count = f"{len(shared)} repetition{'s' if len(shared) > 1 else ''}"
    return (
        f"{short(ours)} against {short(theirs)}, {count}: the mean wait is {_change(x['wait_s'], y['wait_s'])} "
        f"(jobs {by_size}), the longest {longest[0]} against {longest[1]}; the makespan is "
        f"{_change(x['makespan_s'], y['makespan_s'])}, utilisation "
        f"{_change(x['utilisation'], y['utilisation'], ('lower', 'higher'))}."
    )


def _change(ours: float, theirs: float, words: tuple[str, str] = ("shorter", "longer")) -> str:
    """`12.3 % shorter`, or hours where there is nothing to divide by."""
    if pd.isna(ours) or pd.isna(theirs):
        return "unknown"
    if not theirs > 0:
        return f"{show(ours / HOUR_S, 'number')}{NBSP}h against none" if ours > 0 else "the same"
    change = ours / theirs - 1
    return f"{show(abs(change), 'percent')} {words[int(change > 0)]}" if change else "the same"


def listed(things: Iterable[object]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *rest, last = map(str, things)
    return f"{', '.join(rest)} and {last}" if rest else last
