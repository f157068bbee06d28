"""Hours waited under several schedulers on a cluster's own log: shares with intervals, groups, and a recommendation.

The frames of jobs have one row per scheduler × seed × job: ``scheduler``, ``seed``, ``kind`` (current | rule | qssf |
configuration | rltune | bounded), ``job_id``, ``block`` (of arrivals, numbered in order of time), ``gpus``, ``wait_s``, ``bsld``. Every
scheduler has the same jobs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from rltune.config.whatif import MIN_WAIT_S
from rltune.evaluation.intervals import CONFIDENCE, FEWEST, Improvement, Intervals, holm
from rltune.evaluation.recorded import Nearness, nearness

CURRENT = "current"
QSSF = "qssf"
CONFIGURATION = "configuration"
"""What an agent chose besides the order of the queue (rltune.agent.scheduler_choice), with its base policy instead of its network."""
RLTUNE = "rltune"
BOUNDED = "bounded"
"""RLTune with the maximum waits that the controller of a live cluster keeps to."""
HEAVY, LIGHT = 0.9, 0.5
"""Quantiles of the GPU-hours that users used before the measured part: heavy users above the one, light up to the other."""
USERS = ("heavy", "middle", "light")
MEASURES: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "wait": lambda jobs: jobs["wait_s"] / 3600,
    "gpu": lambda jobs: jobs["wait_s"] * jobs["gpus"] / 3600,
    "bsld": lambda jobs: jobs["bsld"],
}
"""Name → what it sums over jobs: hours waited, GPU-hours waited for, bounded slowdown."""
TOO_FEW = 1.05
"""GPUs that a log used over those of the list of nodes, above which the log cannot have run there."""
Outcome = Literal[
    "too few nodes", "too few days", "no waits", "keep", "open", "rule", "qssf", "configuration", "rltune"
]


def by_block(jobs: pd.DataFrame, scheduler: str, measure: str) -> np.ndarray:
    """[seeds, blocks] sums of a measure over the jobs of each block, in order of time."""
    rows = jobs[jobs["scheduler"] == scheduler]
    sums = MEASURES[measure](rows).groupby([rows["seed"], rows["block"]]).sum()
    return sums.unstack("block").sort_index(axis=1).to_numpy(float)


def waited_h(jobs: pd.DataFrame, scheduler: str) -> float:
    """Hours that all jobs waited, the mean over the seeds."""
    return float(by_block(jobs, scheduler, "wait").sum(axis=1).mean())


def less(jobs: pd.DataFrame, ours: str, theirs: str, measure: str, intervals: Intervals) -> Improvement:
    """How much less of a measure one scheduler has than another, over blocks of arrivals and the seeds of either."""
    x, y = by_block(jobs, ours, measure), by_block(jobs, theirs, measure)
    seeds = max(len(x), len(y))
    return intervals.less(*(np.repeat(side, seeds, axis=0) if len(side) == 1 else side for side in (x, y)))


def totals(jobs: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row per scheduler: scheduler, kind, jobs, seeds, windows (blocks), total ``wait_h`` and ``gpu_h`` (GPU-hours waited
    for), ``wait_mean_s``, ``wait_median_s``, ``wait_p95_s``, ``wait_max_s``, ``bsld`` (mean); and for wait, gpu and bsld the reduction from
    the current rule: ``less_wait``, ``…_low``, ``…_high``, ``…_p`` (fractions; NaN for the current rule).

    Sums, means and the largest waits are averages over the seeds; quantiles are those of the jobs of all seeds.
    """
    rows = []
    for (scheduler, kind), part in jobs.groupby(["scheduler", "kind"], sort=False):
        seeds, wait = part["seed"].nunique(), part["wait_s"]
        row = {
            "scheduler": scheduler,
            "kind": kind,
            "jobs": len(part) // seeds,
            "seeds": seeds,
            "windows": part["block"].nunique(),
            "wait_h": waited_h(jobs, scheduler),
            "gpu_h": by_block(jobs, scheduler, "gpu").sum() / seeds,
            "wait_mean_s": wait.mean(),
            "wait_median_s": wait.median(),
            "wait_p95_s": wait.quantile(0.95),
            "wait_max_s": part.groupby("seed")["wait_s"].max().mean(),
            "bsld": part["bsld"].mean(),
        }
        for measure in MEASURES:
            found = less(jobs, scheduler, CURRENT, measure, intervals) if scheduler != CURRENT else Improvement()
            row |= found.columns(f"less_{measure}", p=True)
        rows.append(row)
    return pd.DataFrame(rows)


def _shown(frame: pd.DataFrame, p: np.ndarray, column: str, words: tuple[str, str]) -> np.ndarray:
    """The first word if the interval is above zero and Holm's p below 1 − CONFIDENCE, the second if it is below; or open."""
    sure = p < round(1 - CONFIDENCE, 9)
    up, down = frame[f"{column}low"] > 0, frame[f"{column}high"] < 0
    return np.select([sure & up, sure & down], words, "open")


def steps(jobs: pd.DataFrame, intervals: Intervals, configuration: str = CONFIGURATION) -> pd.DataFrame:
    """The comparisons of hours waited behind the recommendation; they are one family for Holm's correction.

    Every scheduler against the current rule; and QSSF against the best rule (the one with the fewest hours on these jobs,
    in hindsight), the agent's configuration against the best rule and QSSF, RLTune against those and ``configuration``,
    the scheduler that has its configuration without its network.

    Columns: ours, theirs, windows (blocks), ours_h, theirs_h, gain (fraction less), low, high, p, p_holm, ``shows``
    (fewer | more, if the interval excludes zero and Holm's p is below 1 − CONFIDENCE; else open).
    """
    hours = {s: waited_h(jobs, s) for s in dict.fromkeys(jobs["scheduler"])}
    best = min(jobs.loc[jobs["kind"] == "rule", "scheduler"].unique(), key=hours.__getitem__)  # the first of equals
    order = (best, QSSF, CONFIGURATION, RLTUNE)
    pairs = [(name, CURRENT) for name in hours if name not in (CURRENT, BOUNDED)]
    pairs += [(ours, theirs) for i, ours in enumerate(order) for theirs in order[:i]] + [(RLTUNE, configuration)]
    rows, blocks = [], jobs["block"].nunique()
    for ours, theirs in dict.fromkeys(pairs):
        if ours in hours and theirs in hours:
            found = less(jobs, ours, theirs, "wait", intervals)
            rows.append((ours, theirs, blocks, hours[ours], hours[theirs], *found))
    frame = pd.DataFrame(rows, columns=["ours", "theirs", "windows", "ours_h", "theirs_h", "gain", "low", "high", "p"])
    corrected = holm(frame["p"])
    return frame.assign(p_holm=corrected, shows=_shown(frame, corrected, "", ("fewer", "more")))


def with_longer(groups: pd.DataFrame) -> pd.DataFrame:
    """The rows of all groupings with ``more_s_holm`` (the groups of one scheduler are one family) and ``shows``: longer |
    shorter, if the interval excludes zero and Holm's p is below 1 − CONFIDENCE; else open."""
    corrected = groups.groupby("scheduler")["more_s_p"].transform(lambda p: holm(p))
    shows = _shown(groups, corrected, "more_s_", ("longer", "shorter"))
    return groups.assign(more_s_holm=corrected, shows=shows)


def user_groups(before: pd.DataFrame, of: pd.Series) -> pd.Series:
    """Group of each job by its user [J]: heavy, middle or light by the GPU-hours of the user's jobs in ``before`` (columns who,
    gpus, run_s); ``new`` if the user has none there, missing if the user is not known."""
    used = (before["gpus"] * before["run_s"]).groupby(before["who"]).sum()
    if not len(used):
        return pd.Series("new", of.index, dtype=object).where(of.notna())
    low, high = used.quantile([LIGHT, HEAVY])
    name = pd.Series(np.select([used > high, used > low], USERS[:2], USERS[2]), used.index, dtype=object)
    return of.map(name).where(of.isin(used.index), "new").where(of.notna()).astype(object)


def against_recorded(jobs: pd.DataFrame, recorded: pd.DataFrame) -> Nearness:
    """How near the simulated current rule is to the waits that the log recorded (columns job_id, wait_s)."""
    simulated = jobs[jobs["scheduler"] == CURRENT].set_index("job_id")["wait_s"]
    known = recorded.set_index("job_id")["wait_s"].reindex(simulated.index)
    return nearness(simulated.to_numpy(float), known.to_numpy(float))


@dataclass(frozen=True)
class Advice:
    """A recommendation."""

    outcome: Outcome
    chosen: str
    """The recommended scheduler; the current rule if nothing is."""
    reached: str
    """The best scheduler without RLTune, by the same rule: what RLTune had to beat."""
    blocks: int


def recommend(totals: pd.DataFrame, steps: pd.DataFrame, min_saving: float, used: float = 0.0) -> Advice:
    """The recommendation from the frames of :func:`totals` and :func:`steps`; ``used``: GPUs that the log used over those of
    the list of nodes.

    0. More than TOO_FEW: ``too few nodes``, no verdict.
    1. Fewer blocks of arrivals than FEWEST: ``too few days``, no verdict.
    2. Jobs wait less than MIN_WAIT_S in the mean under the current rule: ``no waits``, nothing to save.
    3. Step by step from the current rule to the best other rule, to QSSF, to the configuration that RLTune chose (without
       its network, unless it is one of these) and to RLTune. A step is taken only if it shows fewer hours than the last
       scheduler reached, and at least the share ``min_saving`` of them.
    4. The scheduler reached is recommended. If that is the current rule: ``keep`` if the scheduler with the fewest hours
       saves less than ``min_saving`` for sure (upper end of its interval), else ``open``: it looks better, but the log is
       too short to show it.

    The best rule is known only in hindsight, on the very days it is evaluated on; that favours the rules.
    """
    current = totals[totals["scheduler"] == CURRENT].iloc[0]
    blocks = int(current["windows"])
    if used > TOO_FEW:
        return Advice("too few nodes", CURRENT, CURRENT, blocks)
    if blocks < FEWEST:
        return Advice("too few days", CURRENT, CURRENT, blocks)
    if current["wait_mean_s"] < MIN_WAIT_S:
        return Advice("no waits", CURRENT, CURRENT, blocks)
    compared = steps.set_index(["ours", "theirs"])
    rules = totals[totals["kind"] == "rule"]
    best = str(rules.loc[rules["wait_h"].idxmin(), "scheduler"])
    chosen, reached = CURRENT, CURRENT
    for higher in (best, QSSF, CONFIGURATION, RLTUNE):
        if higher == RLTUNE:
            reached = chosen
        if (higher, chosen) in compared.index:
            step = compared.loc[(higher, chosen)]
            chosen = higher if step["shows"] == "fewer" and step["gain"] >= min_saving else chosen
    if chosen == CURRENT:
        free = totals[totals["scheduler"] != BOUNDED]
        fewest = str(free.loc[free["wait_h"].idxmin(), "scheduler"])
        looks = fewest != CURRENT and not compared.loc[(fewest, CURRENT), "high"] < min_saving  # without interval, too
        return Advice("open" if looks else "keep", CURRENT, reached, blocks)
    return Advice("rule" if chosen == best else chosen, chosen, reached, blocks)


def days_needed(log_days: float, blocks: int) -> int:
    """Length of a log, in days rounded up to tens, that allows a verdict, if a log of ``log_days`` has ``blocks`` of arrivals in
    its measured part."""
    return math.ceil(log_days * FEWEST / max(blocks, 1) / 10) * 10
