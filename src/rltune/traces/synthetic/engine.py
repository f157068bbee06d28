"""The engine of all synthetic traces: GPU jobs drawn from a trace's parameters and a seed.

Users submit in sessions (``arrivals``). Most jobs of a session ask for the same GPUs, and in some sessions they run as
long as each other; the rest is drawn anew, around its user's and session's own. Long sessions ask for fewer GPUs and
run shorter. GPU counts and run times have the marginal distributions of the parameters exactly, whatever the seed
(latent normals mapped by ranks).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.traces.synthetic.arrivals import sessions, submissions
from rltune.traces.synthetic.parameters import CLAMP_S, LEVELS, Parameters

STREAMS = ("sessions", "times", "users", "gpus", "runs", "waits", "vcs", "extras")
ALIKE_SIGMA = 0.03
"""Spread of jobs that are alike, in standard deviations of the latent run time: our choice."""


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
    span_s = jobs / parameters.marginals.rate_per_s
    beats = min(int(span_s // parameters.heartbeat_s), jobs // 4) if parameters.heartbeat_s else 0
    session = sessions(parameters.dynamics, jobs - beats, rng["sessions"])
    offset_s = submissions(parameters, session, span_s, rng["times"])
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


def _users(users: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """User of each session: activity falls off as 1/rank (our choice, as activity in shared clusters does)."""
    weight = 1.0 / np.arange(1, users + 1)
    return rng.choice(users, size=count, p=weight / weight.sum())


def _ranks(latent: np.ndarray) -> np.ndarray:
    """Latent values to evenly spread probabilities in (0, 1): this is what makes marginals exact."""
    rank = np.empty(len(latent))
    rank[np.argsort(latent, kind="stable")] = np.arange(len(latent)) + 0.5
    return rank / max(len(latent), 1)


def _gpu_counts(
    parameters: Parameters, session: np.ndarray, user: np.ndarray, beat: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    dynamics, shares = parameters.dynamics, parameters.marginals.gpu_shares
    counts, weight = np.array(list(shares), dtype=np.int64), np.array(list(shares.values()))
    by_user, of_user = dynamics.user_gpus, rng.standard_normal(user.max() + 1)[user]
    of_session = rng.standard_normal(session.max() + 1)[session]
    own = rng.standard_normal(len(session))
    # Ranks are broken within a session by a trifle, so that sessions keep together where two counts meet.
    latent = np.sqrt(by_user) * of_user + np.sqrt(1 - by_user) * of_session + 1e-6 * own
    latent = np.sqrt(1 - dynamics.big_gpus**2) * latent - dynamics.big_gpus * _bigness(session)
    anew = rng.uniform(size=len(session)) >= dynamics.keep_gpus
    latent[anew] = own[anew]
    latent[beat] = -10.0  # the lowest ranks: one GPU
    return counts[np.searchsorted(np.cumsum(weight / weight.sum())[:-1], _ranks(latent), side="right")]


def _run_times(
    parameters: Parameters,
    session: np.ndarray,
    user: np.ndarray,
    gpus: np.ndarray,
    beat: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    latent = _run_latent(parameters, session, user, rng)
    latent[beat] = -1.5 + 0.1 * latent[beat]  # a monitor's jobs are short and alike
    run = np.empty(len(gpus))
    for group in parameters.marginals.runs:
        here = (gpus >= group.low) & (gpus <= group.high)
        u = _ranks(latent[here])
        body = u / (1 - group.share_over_48h)
        seconds = np.exp(np.interp(body, LEVELS, np.log(group.quantiles_s)))
        over = body >= 1
        tail = (1 - u[over]) / max(group.share_over_48h, 1e-12)
        seconds[over] = CLAMP_S * tail ** (-1 / parameters.tail_exponent)
        run[here] = np.minimum(seconds, parameters.max_run_s)
    return np.maximum(np.rint(run), 1).astype(np.int64)


def _run_latent(parameters: Parameters, session: np.ndarray, user: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Standard normal per job: its user's part, its session's, and its own, which jobs that are alike share."""
    dynamics = parameters.dynamics
    by_user, by_session = dynamics.user_run, min(dynamics.session_run, 1 - dynamics.user_run)
    of_user = rng.standard_normal(user.max() + 1)[user]
    of_session = rng.standard_normal(session.max() + 1)[session]
    shared = rng.standard_normal(session.max() + 1)[session]
    own = rng.standard_normal(len(session))
    alike = (rng.uniform(size=session.max() + 1) < dynamics.alike)[session]
    rest = np.where(alike, shared + ALIKE_SIGMA * own, own)
    latent = np.sqrt(by_user) * of_user + np.sqrt(by_session) * of_session + np.sqrt(1 - by_user - by_session) * rest
    return np.sqrt(1 - dynamics.big_run**2) * latent - dynamics.big_run * _bigness(session)


def _bigness(session: np.ndarray) -> np.ndarray:
    """[jobs] rank of the number of jobs in each job's session, as a score from −1.7 to 1.7 (mean 0, variance 1)."""
    return np.sqrt(12) * (_ranks(np.bincount(session)[session] + 1e-9 * session) - 0.5)


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
