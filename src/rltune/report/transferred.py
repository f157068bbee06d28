"""Agents on other traces, against other base policies and with other estimates: which, and paired comparisons."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.config.cells import AXES, parse_estimate
from rltune.config.run import RunConfig
from rltune.evaluation.intervals import Improvement, Intervals, improved
from rltune.report.common import proper

HOME = ["trace", "cluster"]
SAME_AGENT = [a for a in AXES if a != "seed"]
"""Agents that agree in these differ in their seed alone."""


def transferred_cells(config: RunConfig) -> pd.DataFrame:
    """Axes of the agents that are evaluated in transfer: RLTune proper, trained for wait, as far as the run has it."""
    cells = config.cells()
    frame = pd.DataFrame([{a: getattr(c, a) for a in AXES} for c in cells])
    return transferred(frame.assign(agent=[config.preset(c.preset).agent for c in cells]))


def transferred(cells: pd.DataFrame) -> pd.DataFrame:
    """Of these cells those of RLTune proper, trained for wait; where a run has none of a kind, the others."""
    for axis, value in (("agent", "rltune"), ("metric", "wait")):
        cells = cells[cells[axis] == value] if (cells[axis] == value).any() else cells
    return proper(cells)[0]


def has_transfer(config: RunConfig) -> bool:
    """Whether agents of the same rules were trained on more than one workload."""
    rules = ["backfill", "placement", "locality", "estimate"]
    return any(len(group[HOME].drop_duplicates()) > 1 for _, group in transferred_cells(config).groupby(rules))


def has_robustness(config: RunConfig) -> bool:
    """Whether some agent was trained on estimates that are the true run time, with noise or without."""
    return any(parse_estimate(e)[0] in ("lognormal", "exact") for e in transferred_cells(config)["estimate"])


def waits(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean wait, s, of each window, by its first job and in order of time: a column per ``cell``, so that seeds
    stay apart; one column for rows without."""
    who = rows["cell"] if "cell" in rows else pd.Series("", rows.index)
    return rows.groupby(["first_job", who])["wait_s"].mean().unstack().sort_index()


def less(ours: pd.DataFrame, theirs: pd.DataFrame, by: Intervals) -> Improvement:
    """1 − Σ ours / Σ theirs of :func:`waits`, paired by window, and over seeds where ours has several columns: theirs
    has as many, of the same seeds, or counts with its mean.

    NaN where either is empty or theirs is nothing. Raises ValueError for other windows.
    """
    if ours.empty or theirs.empty:
        return Improvement()
    if list(ours.index) != list(theirs.index):
        raise ValueError(f"different windows: from job {list(ours.index)[:3]} and {list(theirs.index)[:3]} on, …")
    mine, other = ours.to_numpy(float).T, theirs.to_numpy(float).T
    if len(mine) != len(other):
        other = np.broadcast_to(other.mean(axis=0), mine.shape)
    return improved(mine, other, by.bootstrap, by.confidence, by.seed)
