"""Estimates a synthetic trace's parameters from the fit months of the real rows.

Rates, shares and quantiles are counted. How sessions go on and how alike their jobs are cannot be read off the rows
(which have no sessions): those parameters are searched for, so that what is generated has the fit months' figures
(``likeness``, ``replay``). The months held for the check are not read here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pandas as pd

from rltune.calibration.likeness import CLOSE_S, TOLERANCES, Tolerance, describe
from rltune.calibration.months import Months, as_rows, levels_of
from rltune.calibration.replay import WAIT_TOLERANCES, describe_waits
from rltune.config import ClusterConfig
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.parameters import LEVELS, Dynamics, Marginals, Requests, RunTimes, Waits, make

FEWEST = 3
"""GPU counts that fewer jobs asked for are left out."""
CLASSES = {
    "philly": ((1, 1), (2, 3), (4, 7), (8, 15), (16, 128)),
    "helios": ((1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 1024)),
    "alibaba2020": ((1, 1), (2, 4), (5, 9), (10, 19), (20, 1024)),
    "hpc2n": ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 240)),
}
"""GPU counts (processors) whose run times are counted together: enough jobs in each for a 99 % quantile."""
SEEDS = (101, 102, 103, 104, 105)
"""Seeds on whose median every candidate is judged; none is one of the configurations' or the check's."""
JOBS = {"philly": 40_000, "helios": 40_000, "alibaba2020": 120_000, "hpc2n": 20_000}
"""Jobs of each: PAI's are thinned to a twelfth."""
REQUESTS = 60
"""The most frequent requested times that are kept."""
BANDS = (0.2, 0.4, 0.6, 0.8)
"""Quantiles of run time between which requests are counted apart."""
SOON_S = 60
"""A recorded wait up to this counts as none."""
WAIT_WEIGHT = 3.0
"""How much more an error in a wait counts than one in another figure: our choice."""
WORST = 9.0
"""An error counts at most as three tolerances."""
BOUNDS = {
    "day_sigma": (0.02, 1.0),
    "hour_sigma": (0.02, 1.2),
    "session_exponent": (0.5, 3.0),
    "session_cap": (10, 2000),
    "quick_share": (0.02, 0.98),
    "quick_gap_s": (0.3, 120.0),
    "quick_sigma": (0.05, 2.5),
    "think_gap_s": (20.0, 5000.0),
    "keep_gpus": (0.05, 0.995),
    "user_gpus": (0.1, 0.9),
    "alike": (0.01, 0.95),
    "session_run": (0.02, 0.9),
    "user_run": (0.12, 0.6),
    "big_gpus": (0.01, 0.9),
    "big_run": (0.01, 0.9),
}
"""Where the search may go. Most rows have no users: that these matter at all is our choice, by the lower bounds."""
START = Dynamics(0.3, 0.4, 1.0, 300, 0.6, 3.0, 0.7, 300.0, 0.75, 0.3, 0.4, 0.25, 0.2, 0.2, 0.2)
_SHARES = ("quick_share", "keep_gpus", "user_gpus", "alike", "session_run", "user_run", "big_gpus", "big_run")


def count_marginals(name: str, jobs: pd.DataFrame, t0: pd.Timestamp, months: Months) -> Marginals:
    """What can be counted on the rows of the fit months (columns as for ``likeness.describe``, and ``run_clamped``)."""
    submit_s = jobs["submit_s"].to_numpy(np.float64)
    span_s = submit_s[-1] - submit_s[0]
    begins = submit_s[np.append(True, np.diff(submit_s) > CLOSE_S / months.sample)]
    local = pd.DatetimeIndex(t0 + pd.to_timedelta(begins * months.sample, unit="s"))
    counts = jobs["gpus"].astype(np.int64).value_counts().sort_index()
    counts = counts[counts >= FEWEST]
    known = jobs["vc"].dropna().value_counts()
    known = known[known >= 0.005 * known.sum()] if name == "philly" else known.iloc[:0]
    return Marginals(
        rate_per_s=float(f"{len(jobs) / span_s:.4g}"),
        hours=_intensity(local.hour.to_numpy(), 24),
        weekdays=_intensity(local.weekday.to_numpy(), 7),
        gpu_shares={int(n): round(c / counts.sum(), 5) for n, c in counts.items()},
        runs=tuple(_run_times(jobs, low, high) for low, high in CLASSES[name]),
        vcs={str(vc): round(n / known.sum(), 4) for vc, n in known.items()},
        requests=_requests(jobs) if months.cluster is None else None,
    )


def _intensity(cell: np.ndarray, cells: int) -> tuple[float, ...]:
    counts = np.bincount(cell, minlength=cells)
    return tuple(round(float(x), 2) for x in counts / counts.mean())


def _run_times(jobs: pd.DataFrame, low: int, high: int) -> RunTimes:
    inside = jobs[jobs["gpus"].between(low, high)]
    cut_off = inside["run_clamped"].to_numpy(bool)
    seconds = inside["run_s"].to_numpy(np.float64)[~cut_off]
    return RunTimes(low, high, round(float(cut_off.mean()), 5), levels_of(seconds))


def _requests(jobs: pd.DataFrame) -> Requests:
    asked = jobs.dropna(subset=["requested_s", "wait_s"])
    run, wanted, wait = (asked[c].to_numpy(np.float64) for c in ("run_s", "requested_s", "wait_s"))
    popular = asked["requested_s"].astype(np.int64).value_counts().head(REQUESTS).index
    edges_s = np.quantile(run, BANDS)
    band = np.searchsorted(edges_s, run)
    ratios = [np.quantile(wanted[band == i] / run[band == i], LEVELS) for i in range(len(BANDS) + 1)]
    soon = wait <= SOON_S
    waits = Waits(
        round(float(soon.mean()), 4), SOON_S, round(float(wait.mean()), 1), round(float(np.log(wait[~soon]).std()), 2)
    )
    rank = asked[["run_s", "wait_s"]].rank().corr()
    return Requests(
        tuple(sorted(int(x) for x in popular)),
        tuple(int(x) for x in edges_s),
        tuple(tuple(float(f"{x:.3g}") for x in band) for band in ratios),
        int(asked["user"].nunique()),
        waits,
        round(float(rank.loc["run_s", "wait_s"]), 3),
    )


def figures(name: str, drawn: pd.DataFrame, months: Months, cluster: ClusterConfig | None, t0: pd.Timestamp) -> dict:
    """All figures of generated jobs, made to look like the rows they are compared with; of samples, waits at full rate
    too."""
    rows = as_rows(drawn, months)
    found = describe(rows, t0, months.sample)
    if cluster is None:
        return found
    found |= describe_waits(rows, cluster)
    if months.sample > 1:
        full = as_rows(drawn.iloc[: len(rows)].reset_index(drop=True), replace(months, sample=1))
        found |= {f"{k}{AT_FULL_RATE}": v for k, v in describe_waits(full, cluster).items()}
    return found


AT_FULL_RATE = " (all jobs, not a sample)"


def errors(found: dict[str, float], target: dict[str, float]) -> dict[str, float]:
    """Figure → how many tolerances it is off; figures the target does not have are left out."""
    off = {}
    for what, value in found.items():
        base = what.removesuffix(AT_FULL_RATE)
        if base in target:
            off[what] = _off(value, target[base], (TOLERANCES | WAIT_TOLERANCES)[base])
    return off


def _off(ours: float, theirs: float, tolerance: Tolerance) -> float:
    if tolerance.difference is not None:
        return (ours - theirs) / tolerance.difference
    return float(np.log(max(ours, 1e-9) / max(theirs, 1e-9)) / np.log(tolerance.factor))


def loss(found: dict[str, float], target: dict[str, float]) -> float:
    """Weighted mean of squared errors, each at most :data:`WORST`."""
    off = errors(found, target)
    weight = np.array([WAIT_WEIGHT if what.removesuffix(AT_FULL_RATE) in WAIT_TOLERANCES else 1.0 for what in off])
    return float((weight * np.minimum(np.square(list(off.values())), WORST)).sum() / weight.sum())


def search(
    name: str,
    marginals: Marginals,
    target: dict[str, float],
    months: Months,
    cluster: ClusterConfig | None,
    t0: pd.Timestamp,
    tries: int,
    start: Dynamics = START,
    say: Callable[[str], None] = print,
) -> Dynamics:
    """The dynamics whose generated jobs come nearest to ``target``: an evolution of steps, one better one at a time.

    Every candidate is judged on the same seeds, so equal inputs give equal results.
    """
    rng = np.random.default_rng(0)

    def judge(dynamics: Dynamics) -> float:
        parameters = make(name, marginals, dynamics)
        draws = (draw_jobs(parameters, JOBS[name], streams(seed, 0)) for seed in SEEDS)
        found = pd.DataFrame([figures(name, drawn, months, cluster, t0) for drawn in draws])
        return loss(found.median().to_dict(), target)

    best = _within_bounds(asdict(start))
    best_loss, step = judge(best), 0.5
    for i in range(tries):
        candidate = _moved(best, step, rng)
        value = judge(candidate)
        # The one-fifth rule: longer steps after a success, shorter ones after a failure.
        step = min(1.0, step * 1.4) if value < best_loss else max(0.03, step * 0.92)
        if value < best_loss:
            best, best_loss = candidate, value
            say(f"{name} {i}: loss {value:.3f}, step {step:.2f}, {asdict(best)}")
    return best


def _moved(dynamics: Dynamics, step: float, rng: np.random.Generator) -> Dynamics:
    """Some of the parameters moved: shares on a logit scale, the others on a log scale; three significant digits."""
    values = asdict(dynamics)
    chosen = [k for k in values if rng.uniform() < 0.35] or [str(rng.choice(list(values)))]
    for key in chosen:
        z = step * rng.standard_normal()
        value = values[key]
        if key in _SHARES:
            odds = np.log(value / (1 - value)) + 2 * z
            value = 1 / (1 + np.exp(-odds))
        else:
            value = value * np.exp(z)
        values[key] = value
    return _within_bounds(values)


def _within_bounds(values: dict[str, float]) -> Dynamics:
    rounded = {key: float(f"{np.clip(value, *BOUNDS[key]):.3g}") for key, value in values.items()}
    rounded["session_run"] = min(rounded["session_run"], round(1 - rounded["user_run"], 3))
    return Dynamics(**{**rounded, "session_cap": int(rounded["session_cap"])})
