"""When jobs are submitted: sessions of users on a daily and weekly cycle that is itself random from day to day."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.traces.synthetic.parameters import Dynamics, Parameters

DAY_RHO, HOUR_RHO = 0.7, 0.6
"""Correlation of one day's, one hour's intensity with the next's: our choice."""


def evenly(count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` numbers in (0, 1), one in each of ``count`` equal cells, in random order.

    Distributions drawn from them come out nearly the same for every seed.
    """
    return (rng.permutation(count) + rng.uniform(size=count)) / count


def sessions(dynamics: Dynamics, jobs: int, rng: np.random.Generator) -> np.ndarray:
    """[jobs] session number of each job, ascending from 0; sessions have Pareto sizes."""
    sizes = np.empty(0, np.int64)
    while sizes.sum() < jobs:
        level = evenly(max(16, jobs // 8), rng)
        pareto = (1 - level) ** (-1 / dynamics.session_exponent)
        sizes = np.append(sizes, np.minimum(pareto, dynamics.session_cap).astype(np.int64))
    count = int(np.searchsorted(np.cumsum(sizes), jobs)) + 1
    return np.repeat(np.arange(count), sizes[:count])[:jobs]


def submissions(parameters: Parameters, session: np.ndarray, span_s: float, rng: np.random.Generator) -> np.ndarray:
    """[jobs] seconds of each job after the start, within [0, span_s)."""
    dynamics = parameters.dynamics
    count = session[-1] + 1
    quick = (rng.uniform(size=count) < dynamics.quick_share)[session]
    pace_s = dynamics.quick_gap_s * np.exp(dynamics.quick_sigma * rng.standard_normal(count))
    scripted = pace_s[session] * rng.exponential(size=len(session))
    thought = dynamics.think_gap_s * np.exp(rng.standard_normal(len(session)))
    gap = np.where(quick, scripted, thought)
    first = np.append(True, session[1:] != session[:-1])
    gap[first] = 0.0
    elapsed = np.cumsum(gap)
    within = elapsed - elapsed[first][session]
    last = np.append(first[1:], True)
    length = within[last]
    # A session longer than half the trace is squeezed; one that would end after it starts earlier.
    within *= np.minimum(1.0, 0.5 * span_s / np.maximum(length, 1.0))[session]
    start = np.minimum(_starts(parameters, count, span_s, rng), span_s - within[last] - 1.0)
    return np.maximum(start, 0.0)[session] + within


def _starts(parameters: Parameters, count: int, span_s: float, rng: np.random.Generator) -> np.ndarray:
    """Starts of sessions by a Cox process over local hours, conditioned on their number."""
    dynamics, marginals = parameters.dynamics, parameters.marginals
    hours = int(np.ceil(span_s / 3600)) + 1
    begin = pd.Timestamp(parameters.start, tz=parameters.time_zone)
    local = pd.date_range(begin.tz_convert("UTC"), periods=hours, freq="h").tz_convert(parameters.time_zone)
    day = ((local.tz_localize(None) - begin.tz_localize(None)) // pd.Timedelta(days=1)).to_numpy()
    level = _correlated(dynamics.day_sigma, DAY_RHO, day.max() + 1, rng)[day]
    level = level + _correlated(dynamics.hour_sigma, HOUR_RHO, hours, rng)
    weight = np.exp(level) * np.array(marginals.hours)[local.hour] * np.array(marginals.weekdays)[local.weekday]
    edges = np.minimum(np.arange(hours + 1) * 3600.0, span_s)
    mass = np.append(0.0, np.cumsum(weight * np.diff(edges)))
    return np.interp(mass[-1] * evenly(count, rng), mass, edges)


def _correlated(sigma: float, rho: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """A stationary AR(1) series of standard deviation ``sigma``."""
    noise = rng.standard_normal(count)
    series = np.empty(count)
    series[0] = noise[0]
    for i in range(1, count):
        series[i] = rho * series[i - 1] + np.sqrt(1 - rho**2) * noise[i]
    return sigma * series
