"""Agents on other traces, against other base policies and with other estimates: which ones, and paired comparisons."""

import numpy as np
import pandas as pd

from rltune.config.cells import AXES, parse_estimate
from rltune.config.comparisons import HOME, RULES
from rltune.config.run import RunConfig
from rltune.evaluation.intervals import Improvement, Intervals, improved
from rltune.report.common import planned_cells, without_variants

SAME_AGENT = [a for a in AXES if a != "seed"]
"""Agents that agree in these differ in their seed alone."""


def transferred(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of RLTune proper, trained for wait; of other learners or other metrics where there are no such cells."""
    for axis, value in (("agent", "rltune"), ("metric", "wait")):
        cells = cells[cells[axis] == value] if (cells[axis] == value).any() else cells
    return without_variants(cells)[0]


def has_transfer(config: RunConfig) -> bool:
    """Whether agents of the same rules were trained on more than one workload."""
    cells = transferred(planned_cells(config))
    return any(len(group[HOME].drop_duplicates()) > 1 for _, group in cells.groupby(RULES))


def has_robustness(config: RunConfig) -> bool:
    """Whether some agent was trained on estimates that are the true run time, with noise or without."""
    return any(parse_estimate(e)[0] in ("lognormal", "exact") for e in transferred(planned_cells(config))["estimate"])


def waits(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean wait, s, of each window, by its first job and in order of time: a column per ``cell``, so that seeds
    stay apart."""
    return rows.groupby(["first_job", "cell"])["wait_s"].mean().unstack().sort_index()


def less(ours: pd.DataFrame, theirs: pd.DataFrame, by: Intervals) -> Improvement:
    """1 − Σ ours / Σ theirs of :func:`waits`, paired by window, and by seed where both have the same number of columns;
    otherwise the mean of theirs is used for every seed of ours.

    NaN where either is empty or theirs is zero. Raises ValueError for different windows.
    """
    if ours.empty or theirs.empty:
        return Improvement()
    if list(ours.index) != list(theirs.index):
        raise ValueError(f"different windows: from job {list(ours.index)[:3]} and {list(theirs.index)[:3]} on, …")
    x, y = ours.to_numpy(float).T, theirs.to_numpy(float).T
    if len(x) != len(y):
        y = np.broadcast_to(y.mean(axis=0), x.shape)
    return improved(x, y, by.bootstrap)
