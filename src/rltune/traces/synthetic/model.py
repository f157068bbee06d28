"""GPU jobs drawn from a few parameters and a seed: bursts of users on a daily cycle, lognormal run times.

A user submits jobs in bursts; most jobs of a burst ask for the same GPUs and run about as long as each other. Shares of
GPU counts and run-time distributions are the same for every seed (values are assigned by rank), so the load is too.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import ndtri

DAY_S = 86_400
LONGEST_WAIT_S = 30 * DAY_S


@dataclass(frozen=True)
class Model:
    """What one trace looks like. Processors stand for GPUs in the traces of CPU clusters."""

    salt: int
    """Keeps traces of one seed apart."""
    start: str
    """First event, local wall clock."""
    time_zone: str
    users: int
    jobs_per_hour: float
    gpus: dict[int, float]
    """GPUs → share of jobs."""
    run_s: dict[int, tuple[float, float]]
    """Jobs of at most so many GPUs → median of their lognormal run times, s, and sigma of the logarithm."""
    longest_s: int
    """Run times are cut off there."""
    shortest_s: int = 1
    wait: tuple[float, float, float] = (1.0, 0.0, 1.0)
    """Recorded waits: share of jobs that start at once, mean wait of all jobs, s, and sigma of the others' logarithm."""
    daily: float = 0.2
    """Amplitude of the daily cycle, busiest at 15:00."""
    weekend: float = 1.0
    """Intensity of Saturday and Sunday over that of a weekday."""
    day_sigma: float = 0.2
    """Spread (log) of the intensity from day to day."""
    burst_exponent: float = 1.3
    """Jobs in a burst are Pareto with this exponent, from 1 …"""
    burst_most: int = 300
    """… to this."""
    gap_s: float = 60.0
    """Median of the mean gap between the jobs of a burst; it differs from burst to burst."""
    same_gpus: float = 0.75
    """Share of a burst's jobs that ask for the burst's GPU count."""
    user_run: float = 0.2
    """Share of the variance of logarithmic run times that is the user's …"""
    burst_run: float = 0.5
    """… and the burst's."""
    vcs: dict[str, float] = field(default_factory=dict)
    """Virtual cluster → weight; empty where the trace has none."""


def draw_jobs(model: Model, jobs: int, seed: int) -> tuple[pd.DataFrame, np.random.Generator]:
    """Draw ``jobs`` GPU jobs.

    Returns:
        One row a job in order of submission: ``submit_unix_s`` (int), ``user`` (int, 0 …), ``vc`` (str, empty where
        the trace has none), ``gpus``, ``run_s`` (int ≥ 1), ``wait_s`` (int ≥ 0); and the random generator, to go on with.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, model.salt])))
    burst = _bursts(model, jobs, rng)
    count = burst[-1] + 1
    activity = 1 / np.arange(1, model.users + 1)  # falls off as 1/rank, as activity in shared clusters does
    user_of = rng.choice(model.users, count, p=activity / activity.sum())
    user = user_of[burst]
    gpus = _gpus(model, burst, rng)
    start = int(pd.Timestamp(model.start, tz=model.time_zone).timestamp())
    frame = pd.DataFrame(
        {
            "submit_unix_s": start + np.floor(_submissions(model, burst, rng)).astype(np.int64),
            "user": user,
            "vc": _virtual_clusters(model, user, rng),
            "gpus": gpus,
            "run_s": _run_times(model, burst, user, gpus, rng),
            "wait_s": _waits(model, jobs, rng),
        }
    )
    return frame.sort_values("submit_unix_s", kind="stable", ignore_index=True), rng


def levels(latent: np.ndarray) -> np.ndarray:
    """Probabilities spread evenly over (0, 1), in the order of ``latent``."""
    level = np.empty(len(latent))
    level[np.argsort(latent, kind="stable")] = (np.arange(len(latent)) + 0.5) / max(len(latent), 1)
    return level


def _bursts(model: Model, jobs: int, rng: np.random.Generator) -> np.ndarray:
    """[jobs] number of each job's burst, ascending from 0."""
    pareto = (1 - rng.uniform(size=jobs)) ** (-1 / model.burst_exponent)
    sizes = np.minimum(pareto, model.burst_most).astype(np.int64)
    return np.repeat(np.arange(jobs), sizes)[:jobs]


def _submissions(model: Model, burst: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """[jobs] seconds after the start; bursts begin by the intensity of the hour."""
    span_s = len(burst) * 3600 / model.jobs_per_hour
    hours = int(np.ceil(span_s / 3600))
    local = pd.Timestamp(model.start) + pd.to_timedelta(np.arange(hours), unit="h")
    weight = 1 + model.daily * np.cos(2 * np.pi * (local.hour.to_numpy() - 15) / 24)
    weight *= np.where(local.weekday >= 5, model.weekend, 1.0)
    days = np.arange(hours) // 24
    weight *= np.exp(model.day_sigma * rng.standard_normal(days[-1] + 1))[days]
    edges = np.minimum(np.arange(hours + 1) * 3600.0, span_s)
    mass = np.append(0.0, np.cumsum(weight * np.diff(edges)))
    count = burst[-1] + 1
    begins = np.interp(mass[-1] * levels(rng.uniform(size=count)), mass, edges)
    pace_s = model.gap_s * np.exp(rng.standard_normal(count))
    gap = pace_s[burst] * rng.exponential(size=len(burst))
    elapsed = np.cumsum(gap)
    first = np.append(True, burst[1:] != burst[:-1])
    return (begins[burst] + elapsed - elapsed[first][burst]) % span_s


def _gpus(model: Model, burst: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    counts, share = np.array(list(model.gpus), dtype=np.int64), np.array(list(model.gpus.values()))
    own = rng.standard_normal(len(burst))
    latent = rng.standard_normal(burst[-1] + 1)[burst] + 1e-6 * own  # a burst keeps together where two counts meet
    latent = np.where(rng.uniform(size=len(burst)) < model.same_gpus, latent, own)
    return counts[np.searchsorted(np.cumsum(share / share.sum())[:-1], levels(latent), side="right")]


def _run_times(
    model: Model, burst: np.ndarray, user: np.ndarray, gpus: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    rest = 1 - model.user_run - model.burst_run
    latent = np.sqrt(model.user_run) * rng.standard_normal(model.users)[user]
    latent = latent + np.sqrt(model.burst_run) * rng.standard_normal(burst[-1] + 1)[burst]
    latent = latent + np.sqrt(rest) * rng.standard_normal(len(burst))
    run, least = np.empty(len(gpus)), 0
    for most, (median_s, sigma) in sorted(model.run_s.items()):
        here = (gpus > least) & (gpus <= most)
        run[here] = median_s * np.exp(sigma * ndtri(levels(latent[here])))
        least = most
    return np.rint(np.clip(run, model.shortest_s, model.longest_s)).astype(np.int64)


def _waits(model: Model, jobs: int, rng: np.random.Generator) -> np.ndarray:
    at_once, mean_s, sigma = model.wait
    level = (levels(rng.uniform(size=jobs)) - at_once) / max(1 - at_once, 1e-9)
    median_s = mean_s / max(1 - at_once, 1e-9) / np.exp(sigma**2 / 2)
    wait = np.where(level > 0, median_s * np.exp(sigma * ndtri(np.clip(level, 1e-9, 1))), 0.0)
    return np.rint(np.minimum(wait, LONGEST_WAIT_S)).astype(np.int64)


def _virtual_clusters(model: Model, user: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each user has a home; one job in ten goes elsewhere."""
    if not model.vcs:
        return np.full(len(user), "", dtype=object)
    names, weight = np.array(list(model.vcs), dtype=object), np.array(list(model.vcs.values()))
    weight = weight / weight.sum()
    home = rng.choice(len(names), model.users, p=weight)
    choice = np.where(rng.uniform(size=len(user)) < 0.1, rng.choice(len(names), len(user), p=weight), home[user])
    return names[choice]
