"""Fairness: groups of jobs under several schedulers on the same windows, with intervals over windows."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from rltune.evaluation.intervals import NAN, SEED, Improvement, Intervals, around, picked_windows
from rltune.simulator.fairness import UNKNOWN, gini, jain_index

SIZES = {"1": 1, "2–4": 4, "5–8": 8}
"""Classes of job size by name: most GPUs of each; whatever is larger is in LARGE."""
LARGE = "over 8"
LOST = ["jobs", "base_wait_s", "wait_s", "base_bsld", "bsld", "more_h"]
LOSERS = 5
"""Groups to name, at most."""
MOST_RESAMPLES = 1000
"""Of an index; each takes a pass over all groups."""
INDICES: dict[str, tuple[str, Callable[[np.ndarray], float]]] = {
    "jain_bsld": ("bsld", jain_index),
    "gini_wait": ("wait_s", gini),
}
"""Index → what it is of: the groups' means of this column, each group once."""


def size_class(gpus: np.ndarray) -> np.ndarray:
    """Class of job size by name [J] of numbers of GPUs [J]."""
    return np.array([*SIZES, LARGE], object)[np.searchsorted(list(SIZES.values()), gpus)]


def by_group(jobs: pd.DataFrame, base: str, intervals: Intervals, longer: bool = False) -> pd.DataFrame:
    """One row per group × scheduler: group, scheduler, jobs, wait_s, bsld (means over its jobs and seeds), and of each how
    much less than under ``base``: ``less_wait``, ``less_bsld``, fractions with intervals (…_low, …_high; NaN for the base or
    if it has none).

    ``jobs``: a row per job × scheduler, and × seed where there are several, with scheduler, seed, window, group, wait_s,
    bsld; every scheduler has the same jobs. ``longer``: also ``more_s``, the seconds by which jobs wait longer in the mean
    (…_low, …_high, …_p), which exists also if nobody waited under ``base``.
    """
    jobs = jobs if "seed" in jobs else jobs.assign(seed=0)
    windows, rows = np.sort(jobs["window"].unique()), []
    for group, part in jobs.groupby("group", sort=False):
        per = part.groupby(["scheduler", "seed", "window"], sort=False)[["wait_s", "bsld"]].sum().sort_index()
        number = part[part["scheduler"] == base].groupby("window").size().reindex(windows, fill_value=0).to_numpy(float)

        def sums(scheduler: str, column: str) -> np.ndarray:
            return per.loc[scheduler, column].unstack("window").reindex(columns=windows).fillna(0.0).to_numpy(float)

        for scheduler in dict.fromkeys(part["scheduler"]):
            row, more = {"group": group, "scheduler": scheduler, "jobs": int(number.sum())}, Improvement()
            for column, name in (("wait_s", "less_wait"), ("bsld", "less_bsld")):
                ours, found = sums(scheduler, column), Improvement()
                theirs = np.repeat(sums(base, column), len(ours), axis=0)
                if scheduler != base:
                    found = intervals.less(ours, theirs)
                    if longer and column == "wait_s":
                        more = intervals.longer(ours, theirs, np.repeat(number[None], len(ours), axis=0))
                row |= {column: float(ours.sum() / len(ours) / number.sum()), **found.columns(name)}
            rows.append(row | (more.columns("more_s", p=True) if longer else {}))
    return pd.DataFrame(rows)


def in_order(frame: pd.DataFrame, groups: Sequence[str]) -> pd.DataFrame:
    """The rows by group, in this order of the groups."""
    return frame.sort_values("group", key=lambda group: group.map(groups.index), kind="stable")


def unequal(jobs: pd.DataFrame, base: str, intervals: Intervals) -> pd.DataFrame:
    """One row per scheduler: scheduler, groups, windows, and of each index of INDICES its value, the difference from that
    under ``base``, and intervals of both: ``jain_bsld``, ``…_low``, ``…_high``, ``more_jain_bsld``, ``…_low``, ….

    ``jobs`` as for :func:`by_group`. Values are those of rltune.simulator.fairness on all jobs together. For the
    intervals, blocks of consecutive windows are drawn with replacement, the same for all schedulers. A drawn set has
    fewer different windows than there are and so looks more unequal than the whole; therefore the spread of the drawn
    values is laid around the value itself, widened as in rltune.evaluation.intervals. NaN with fewer than two windows.
    """
    windows = sorted(jobs["window"].unique())
    resamples, rng = min(intervals.bootstrap, MOST_RESAMPLES), np.random.default_rng(SEED)
    picked = picked_windows(rng, (len(windows),), resamples)
    weights = np.stack([np.bincount(p, minlength=len(windows)) for p in picked]).astype(float)  # [resamples, windows]
    found = {}
    for scheduler, part in jobs.groupby("scheduler", sort=False):
        tables = {
            c: part.pivot_table(c, "window", "group", "sum", fill_value=0.0).to_numpy(float) for c in ("wait_s", "bsld")
        }
        number = pd.crosstab(part["window"], part["group"]).to_numpy(float)
        found[scheduler] = {
            name: (_index(f, tables[c], number, np.ones((1, len(windows))))[0], _index(f, tables[c], number, weights))
            for name, (c, f) in INDICES.items()
        }
    rows = []
    for scheduler, values in found.items():
        row = {"scheduler": scheduler, "groups": jobs["group"].nunique(), "windows": len(windows)}
        for name, (value, drawn) in values.items():
            zero, others = found[base][name]
            more, mores = (value - zero, drawn - others) if scheduler != base else (NAN, drawn * NAN)
            for column, middle, spread in ((name, value, drawn), (f"more_{name}", more, mores)):
                low, high = around(middle, spread, len(windows))
                row |= {column: middle, f"{column}_low": low, f"{column}_high": high}
            row |= {f"{name}_low": max(row[f"{name}_low"], 0.0), f"{name}_high": min(row[f"{name}_high"], 1.0)}
        rows.append(row)
    return pd.DataFrame(rows)


def losers(jobs: pd.DataFrame, base: str, ours: str) -> pd.DataFrame:
    """The LOSERS groups that wait most longer in all under ``ours`` than under ``base``, the largest first; only those
    that do wait longer.

    group, jobs, base_wait_s, wait_s, base_bsld, bsld (means), more_h: hours of waiting added, over all of its jobs.
    ``jobs`` as for :func:`by_group`. Jobs of no known group are no group here.
    """
    jobs = jobs[jobs["group"] != UNKNOWN]
    means = jobs.groupby(["scheduler", "group"])[["wait_s", "bsld"]].mean()
    if not len(means):
        return pd.DataFrame(columns=["group", *LOST])
    our_means, base_means = means.loc[ours], means.loc[base]
    number = jobs[jobs["scheduler"] == ours].groupby("group").size()
    more_h = (our_means["wait_s"] - base_means["wait_s"]) * number / 3600
    frame = our_means.join(base_means.add_prefix("base_")).assign(jobs=number, more_h=more_h)[LOST]
    return frame[frame["more_h"] > 0].nlargest(LOSERS, "more_h").reset_index(names="group")


def _index(f: Callable[[np.ndarray], float], sums: np.ndarray, number: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """An index of the groups' means in each resample [R]; ``sums`` and ``number`` [windows, groups]."""
    total, jobs = weights @ sums, weights @ number
    return np.array([f(total[r][jobs[r] > 0] / jobs[r][jobs[r] > 0]) for r in range(len(weights))])
