"""The engine of all synthetic traces: GPU jobs drawn from a trace's parameters and a seed.

Users submit in sessions (several similar jobs in a row); sessions come as a doubly stochastic Poisson process with a
daily and weekly cycle. GPU counts and run times have the marginal distributions of the parameters exactly (a Gaussian
copula mapped by ranks), and are correlated within sessions and users, so that history predicts something.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.traces.synthetic.parameters import CLAMP_S, LEVELS, Arrivals, Parameters

STREAMS = ("sessions", "times", "users", "gpus", "runs", "waits", "vcs", "extras")


def streams(seed: int, salt: int) -> dict[str, np.random.Generator]:
    """One generator per aspect, so that a change in one leaves the others' draws alone."""
    children = np.random.SeedSequence([seed, salt]).spawn(len(STREAMS))
    return {name: np.random.Generator(np.random.PCG64(child)) for name, child in zip(STREAMS, children)}


def draw_jobs(parameters: Parameters, jobs: int, rng: dict[str, np.random.Generator]) -> pd.DataFrame:
    """Draw ``jobs`` GPU jobs.

    Returns:
        One row a job in order of submission: ``submit_unix_s`` (int), ``user`` (int, 0 …), ``vc`` (str, empty where
        the trace has none), ``gpus``, ``run_s`` (int ≥ 1), ``wait_s`` (int ≥ 0).
    """
    arrivals = parameters.arrivals
    span_s = jobs / arrivals.rate_per_s
    beats = min(int(span_s // arrivals.heartbeat_s), jobs // 4) if arrivals.heartbeat_s else 0
    session = _sessions(arrivals, jobs - beats, rng["sessions"])
    offset_s = _submissions(parameters, session, span_s, rng["times"])
    session_user = _users(parameters.users, session.max() + 1, rng["users"])
    if beats:
        session = np.append(session, np.full(beats, session.max() + 1))
        session_user = np.append(session_user, parameters.users - 1)
        phase = np.arange(beats) * (span_s / beats)
        offset_s = np.append(offset_s, phase + rng["times"].uniform(0, 3, beats))
    beat = np.arange(jobs) >= jobs - beats
    user = session_user[session]
    gpus = _gpu_counts(parameters, session, user, beat, rng["gpus"])
    frame = pd.DataFrame(
        {
            "submit_unix_s": _start_unix_s(parameters) + np.floor(offset_s).astype(np.int64),
            "user": user,
            "vc": _virtual_clusters(parameters, user, gpus, rng["vcs"]),
            "gpus": gpus,
            "run_s": _run_times(parameters, session, user, gpus, beat, rng["runs"]),
            "wait_s": _waits(parameters, gpus, rng["waits"]),
        }
    )
    return frame.sort_values("submit_unix_s", kind="stable", ignore_index=True)


def _start_unix_s(parameters: Parameters) -> int:
    return int(pd.Timestamp(parameters.start, tz=parameters.time_zone).timestamp())


def _sessions(arrivals: Arrivals, jobs: int, rng: np.random.Generator) -> np.ndarray:
    """Session number of each job, ascending; sessions have Pareto sizes."""
    pareto = rng.uniform(size=jobs) ** (-1 / arrivals.session_exponent)
    sizes = np.minimum(pareto, arrivals.session_cap).astype(np.int64)
    count = int(np.searchsorted(np.cumsum(sizes), jobs)) + 1
    return np.repeat(np.arange(count), sizes[:count])[:jobs]


def _submissions(parameters: Parameters, session: np.ndarray, span_s: float, rng: np.random.Generator) -> np.ndarray:
    """Seconds of each job after the start, within [0, span_s)."""
    arrivals = parameters.arrivals
    count = session[-1] + 1
    quick = (rng.uniform(size=count) < arrivals.quick_share)[session]
    scripted = rng.exponential(arrivals.quick_gap_s, len(session))
    thought = arrivals.think_gap_s * np.exp(rng.standard_normal(len(session)))
    gap = np.where(quick, scripted, thought)
    first = np.append(True, session[1:] != session[:-1])
    gap[first] = 0.0
    elapsed = np.cumsum(gap)
    within = elapsed - elapsed[first][session]
    last = np.append(first[1:], True)
    length = within[last]
    # A session longer than the trace is squeezed; one that would end after it starts earlier.
    within *= np.minimum(1.0, 0.5 * span_s / np.maximum(length, 1.0))[session]
    start = np.minimum(_session_starts(parameters, count, span_s, rng), span_s - within[last] - 1.0)
    return np.maximum(start, 0.0)[session] + within


def _session_starts(parameters: Parameters, count: int, span_s: float, rng: np.random.Generator) -> np.ndarray:
    """Starts of sessions by a Cox process over local hours, conditioned on their number."""
    arrivals = parameters.arrivals
    hours = int(np.ceil(span_s / 3600)) + 1
    begin = pd.Timestamp(parameters.start, tz=parameters.time_zone)
    local = pd.date_range(begin.tz_convert("UTC"), periods=hours, freq="h").tz_convert(parameters.time_zone)
    day = ((local.tz_localize(None) - begin.tz_localize(None)) // pd.Timedelta(days=1)).to_numpy()
    level = _correlated(arrivals.day_sigma, 0.7, day.max() + 1, rng)[day]
    level = level + _correlated(arrivals.hour_sigma, 0.6, hours, rng)
    weight = np.exp(level) * np.array(arrivals.hours)[local.hour] * np.array(arrivals.weekdays)[local.weekday]
    edges = np.minimum(np.arange(hours + 1) * 3600.0, span_s)
    mass = np.append(0.0, np.cumsum(weight * np.diff(edges)))
    return np.interp(rng.uniform(0, mass[-1], count), mass, edges)


def _correlated(sigma: float, rho: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """A stationary AR(1) series of standard deviation ``sigma``."""
    noise = rng.standard_normal(count)
    series = np.empty(count)
    series[0] = noise[0]
    for i in range(1, count):
        series[i] = rho * series[i - 1] + np.sqrt(1 - rho**2) * noise[i]
    return sigma * series


def _users(users: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """User of each session: activity falls off as 1/rank (our choice, as activity in shared clusters does)."""
    weight = 1.0 / np.arange(1, users + 1)
    return rng.choice(users, size=count, p=weight / weight.sum())


def _latent(
    session: np.ndarray, user: np.ndarray, keep: float, by_user: float, rng: np.random.Generator
) -> np.ndarray:
    """Standard normal per job, correlated ``keep`` within a session, of which ``by_user`` is the user's."""
    of_user = rng.standard_normal(user.max() + 1)[user]
    of_session = rng.standard_normal(session.max() + 1)[session]
    own = rng.standard_normal(len(session))
    return np.sqrt(by_user) * of_user + np.sqrt(max(keep - by_user, 0)) * of_session + np.sqrt(1 - keep) * own


def _ranks(latent: np.ndarray) -> np.ndarray:
    """Latent values to evenly spread probabilities in (0, 1): this is what makes marginals exact."""
    rank = np.empty(len(latent))
    rank[np.argsort(latent, kind="stable")] = np.arange(len(latent)) + 0.5
    return rank / max(len(latent), 1)


def _gpu_counts(
    parameters: Parameters, session: np.ndarray, user: np.ndarray, beat: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    counts = np.array(list(parameters.gpu_shares), dtype=np.int64)
    shares = np.array(list(parameters.gpu_shares.values()))
    latent = _latent(session, user, parameters.keep_gpus, parameters.user_gpus, rng)
    latent[beat] = -10.0  # the lowest ranks: one GPU
    return counts[np.searchsorted(np.cumsum(shares / shares.sum())[:-1], _ranks(latent), side="right")]


def _run_times(
    parameters: Parameters,
    session: np.ndarray,
    user: np.ndarray,
    gpus: np.ndarray,
    beat: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    latent = _latent(session, user, parameters.keep_run, parameters.user_run, rng)
    latent[beat] = -1.5 + 0.1 * latent[beat]  # a monitor's jobs are short and alike
    run = np.empty(len(gpus))
    for group in parameters.runs:
        here = (gpus >= group.low) & (gpus <= group.high)
        u = _ranks(latent[here])
        body = u / (1 - group.share_over_48h)
        seconds = np.exp(np.interp(body, LEVELS, np.log(group.quantiles_s)))
        over = body >= 1
        tail = (1 - u[over]) / max(group.share_over_48h, 1e-12)
        seconds[over] = CLAMP_S * tail ** (-1 / parameters.tail_exponent)
        run[here] = np.minimum(seconds, parameters.max_run_s)
    return np.maximum(np.rint(run), 1).astype(np.int64)


def _waits(parameters: Parameters, gpus: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    waits = parameters.waits
    at_once = rng.uniform(size=len(gpus)) < waits.share_immediate
    soon = rng.uniform(0, waits.immediate_s, len(gpus))
    long = np.exp(waits.sigma * rng.standard_normal(len(gpus))) * gpus**0.3
    if not at_once.all():
        # Scaled to the mean of the parameters, whatever the draw of the heavy tail.
        target = waits.mean_s * len(gpus) - soon[at_once].sum()
        long *= max(target, 0.0) / long[~at_once].sum()
    return np.floor(np.where(at_once, soon, np.minimum(long, 30 * 86_400))).astype(np.int64)


def _virtual_clusters(
    parameters: Parameters, user: np.ndarray, gpus: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """A user has a home, and now and then another; jobs go where they can fit."""
    names = np.array(list(parameters.vcs), dtype=object)
    if not len(names):
        return np.full(len(user), "", dtype=object)
    weight = np.array(list(parameters.vcs.values()))
    weight = weight / weight.sum()
    home = _homes(user, weight, rng)
    away = rng.uniform(size=len(user)) < 0.1
    choice = np.where(away, rng.choice(len(names), size=len(user), p=weight), home[user])
    if parameters.vc_gpus:
        room = np.array([parameters.vc_gpus[n] for n in names])
        for count in np.unique(gpus[gpus > room[choice]]):
            misfit = (gpus == count) & (gpus > room[choice])
            able = np.where(room >= count, weight, 0.0)
            choice[misfit] = rng.choice(len(names), size=int(misfit.sum()), p=able / able.sum())
    return names[choice]


def _homes(user: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Home of each user, so that the jobs' shares come out near ``weight``: the busiest user goes where most is due."""
    activity = np.bincount(user) / len(user)
    due = weight.copy()
    home = np.empty(len(activity), dtype=np.int64)
    for u in np.argsort(-activity, kind="stable"):
        home[u] = int(np.argmax(due + 1e-6 * rng.uniform(size=len(due))))
        due[home[u]] -= activity[u]
    return home
