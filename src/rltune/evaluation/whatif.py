"""What another order of the queue would have been worth on a cluster's own log: hours, shares with intervals, groups.

The frames of jobs have a row a scheduler × seed × job: ``scheduler``, ``seed``, ``kind`` (today | rule | qssf |
configuration | rltune), ``job_id``, ``block`` (int, of arrivals, in order of time), ``gpus``, ``wait_s``, ``bsld``. Every scheduler
has the same jobs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from rltune.evaluation.intervals import Improvement, Intervals, holm
from rltune.evaluation.recorded import Nearness, nearness

CURRENT = "current"
QSSF = "qssf"
CONFIGURATION = "configuration"
"""What an agent chose besides the order of the queue (rltune.agent.ways), with the order it started from in the place
of its network."""
RLTUNE = "rltune"
HEAVY, LIGHT = 0.9, 0.5
"""Of users by the GPU-hours they used before the measured part: heavy above the one quantile, light up to the other."""
USERS = ("heavy", "middle", "light")
MEASURES: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "wait": lambda jobs: jobs["wait_s"] / 3600,
    "gpu": lambda jobs: jobs["wait_s"] * jobs["gpus"] / 3600,
    "bsld": lambda jobs: jobs["bsld"],
}
"""Name → what it sums up over jobs: hours waited, GPU-hours waited for, bounded slowdown."""


def by_block(jobs: pd.DataFrame, scheduler: str, measure: str) -> np.ndarray:
    """[seeds, blocks] sums of a measure over the jobs of each block, in order of time."""
    mine = jobs[jobs["scheduler"] == scheduler]
    sums = MEASURES[measure](mine).groupby([mine["seed"], mine["block"]]).sum()
    return sums.unstack("block").sort_index(axis=1).to_numpy(float)


def less(jobs: pd.DataFrame, ours: str, theirs: str, measure: str, intervals: Intervals) -> Improvement:
    """How much less a scheduler has of a measure than another, over blocks of arrivals and the seeds of either."""
    x, y = by_block(jobs, ours, measure), by_block(jobs, theirs, measure)
    seeds = max(len(x), len(y))
    return intervals.less(*(np.repeat(side, seeds, axis=0) if len(side) == 1 else side for side in (x, y)))


def totals(jobs: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row a scheduler, in the order of ``jobs``: scheduler, kind, jobs, seeds, windows (blocks), ``wait_h`` and
    ``gpu_h`` (hours waited and GPU-hours waited for, in all), ``wait_mean_s``, ``wait_median_s``, ``wait_p95_s``,
    ``bsld`` (mean); and of wait, gpu and bsld how much less than today: ``less_wait``, ``…_low``, ``…_high``, ``…_p``
    (fractions; NaN of today).

    Of several seeds sums and means are the mean over them, quantiles those of all their jobs together.
    """
    rows = []
    for (scheduler, kind), mine in jobs.groupby(["scheduler", "kind"], sort=False):
        seeds = mine["seed"].nunique()
        row = {
            "scheduler": scheduler,
            "kind": kind,
            "jobs": len(mine) // seeds,
            "seeds": seeds,
            "windows": mine["block"].nunique(),
            "wait_h": by_block(jobs, scheduler, "wait").sum() / seeds,
            "gpu_h": by_block(jobs, scheduler, "gpu").sum() / seeds,
            "wait_mean_s": mine["wait_s"].mean(),
            "wait_median_s": mine["wait_s"].median(),
            "wait_p95_s": mine["wait_s"].quantile(0.95),
            "bsld": mine["bsld"].mean(),
        }
        for measure in MEASURES:
            found = less(jobs, scheduler, CURRENT, measure, intervals) if scheduler != CURRENT else Improvement()
            row |= {
                f"less_{measure}": found.gain,
                f"less_{measure}_low": found.low,
                f"less_{measure}_high": found.high,
                f"less_{measure}_p": found.p,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def steps(jobs: pd.DataFrame, intervals: Intervals, way: str = CONFIGURATION) -> pd.DataFrame:
    """Comparisons of hours waited that the recommendation goes by, all of which are one family to Holm: every scheduler
    against today, and what predicts or learns against what is simpler.

    ours, theirs, windows (blocks), ours_h, theirs_h, gain (fraction less), low, high, p, p_holm, ``shows`` (fewer |
    more, where the interval leaves zero out and Holm's p is below 1 − confidence; else open). What is simpler: for
    QSSF the rule that waits least of all on these jobs, in hindsight; for the agent's way that rule, and QSSF; for
    RLTune those, and ``way``, the scheduler that has its way without its network.
    """
    hours = {s: by_block(jobs, s, "wait").sum(axis=1).mean() for s in dict.fromkeys(jobs["scheduler"])}
    best = best_rule(jobs)
    pairs = [(name, CURRENT) for name in hours if name != CURRENT]
    steps = (best, QSSF, CONFIGURATION, RLTUNE)
    pairs += [(ours, theirs) for i, ours in enumerate(steps) for theirs in steps[:i]]
    pairs = [(ours, theirs) for ours, theirs in (*pairs, (RLTUNE, way)) if ours in hours and theirs in hours]
    rows = []
    for ours, theirs in dict.fromkeys(pairs):
        found = less(jobs, ours, theirs, "wait", intervals)
        rows.append((ours, theirs, jobs["block"].nunique(), hours[ours], hours[theirs], *found))
    frame = pd.DataFrame(rows, columns=["ours", "theirs", "windows", "ours_h", "theirs_h", "gain", "low", "high", "p"])
    corrected = holm(frame["p"])
    sure = corrected < round(1 - intervals.confidence, 9)
    shows = np.select([sure & (frame["low"] > 0), sure & (frame["high"] < 0)], ["fewer", "more"], "open")
    return frame.assign(p_holm=corrected, shows=shows)


def best_rule(jobs: pd.DataFrame) -> str:
    """The rule, of those that neither predict nor learn, with the fewest hours waited; the first of equals."""
    rules = jobs[jobs["kind"] == "rule"]
    return str(rules.groupby("scheduler", sort=False)["wait_s"].sum().idxmin())


def in_groups(jobs: pd.DataFrame, grouping: str, intervals: Intervals) -> pd.DataFrame:
    """One row a group × scheduler: group (of the column ``grouping``), scheduler, jobs, wait_s and bsld (means over its
    jobs and the seeds), of each how much less than today: ``less_wait``, ``less_bsld``, fractions (…_low, …_high; NaN of
    today, and where today has none); and ``more_s``, how many seconds longer its jobs wait in the mean than today
    (…_low, …_high, …_p), which is there where nobody waited today too.
    """
    blocks, rows = np.sort(jobs["block"].unique()), []
    for group in dict.fromkeys(jobs[grouping]):
        mine = jobs[jobs[grouping] == group]
        per = mine.groupby(["scheduler", "seed", "block"], sort=False)[["wait_s", "bsld"]].sum()
        today = mine[mine["scheduler"] == CURRENT]
        number = today.groupby("block").size().reindex(blocks, fill_value=0).to_numpy(float)
        sums = {
            (s, c): per.loc[s, c].unstack("block").reindex(columns=blocks).fillna(0.0).to_numpy(float)
            for s in dict.fromkeys(mine["scheduler"])
            for c in ("wait_s", "bsld")
        }
        for scheduler in dict.fromkeys(mine["scheduler"]):
            row = {"group": group, "scheduler": scheduler, "jobs": int(number.sum())}
            for column, name in (("wait_s", "less_wait"), ("bsld", "less_bsld")):
                ours = sums[scheduler, column]
                theirs = np.repeat(sums[CURRENT, column], len(ours), axis=0)
                row[column] = float(ours.sum() / len(ours) / number.sum())
                found = intervals.less(ours, theirs) if scheduler != CURRENT else Improvement()
                row |= {name: found.gain, f"{name}_low": found.low, f"{name}_high": found.high}
                if column == "wait_s":
                    each = np.repeat(number[None], len(ours), axis=0)
                    more = intervals.longer(ours, theirs, each) if scheduler != CURRENT else Improvement()
                    row |= {"more_s": more.gain, "more_s_low": more.low, "more_s_high": more.high, "more_s_p": more.p}
            rows.append(row)
    return pd.DataFrame(rows)


def with_longer(groups: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """The rows of all groupings with ``more_s_holm`` (the groups of one scheduler are one family) and ``shows``:
    longer | shorter, where the interval leaves zero out and Holm's p is below 1 − confidence; else open."""
    corrected = groups.groupby("scheduler")["more_s_p"].transform(lambda p: holm(p))
    sure = corrected < round(1 - intervals.confidence, 9)
    up, down = sure & (groups["more_s_low"] > 0), sure & (groups["more_s_high"] < 0)
    shows = np.select([up, down], ["longer", "shorter"], "open")
    return groups.assign(more_s_holm=corrected, shows=shows)


def user_groups(before: pd.DataFrame, of: pd.Series) -> pd.Series:
    """Group of each job by its user [J]: heavy, middle or light by the GPU-hours the user's jobs ran in ``before``
    (columns who, gpus, run_s); ``new`` where the user has none there, missing where the user is not known."""
    used = (before["gpus"] * before["run_s"]).groupby(before["who"]).sum()
    if not len(used):
        return pd.Series("new", of.index, dtype=object).where(of.notna())
    low, high = used.quantile([LIGHT, HEAVY])
    name = pd.Series(np.select([used > high, used > low], USERS[:2], USERS[2]), used.index, dtype=object)
    return of.map(name).where(of.isin(used.index), "new").where(of.notna()).astype(object)


def against_recorded(today: pd.DataFrame, recorded_s: pd.Series) -> Nearness:
    """How near the simulated today is to the waits that the log recorded.

    ``today``: its jobs by job_id; ``recorded_s``: by job_id, missing where not known.
    """
    simulated = today.set_index("job_id")["wait_s"]
    return nearness(simulated.to_numpy(float), recorded_s.reindex(simulated.index).to_numpy(float))
