"""The one list of base policies: name → number in the compiled simulator; and the user's own, in Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from rltune.policies import f1, fifo, multifactor, saf, sjf, smallest, unicep, wfp3

_fifo, _sjf, _saf, _smallest, _f1 = fifo.score, sjf.score, saf.score, smallest.score, f1.score
_wfp3, _unicep, _multifactor, _by_size = wfp3.score, unicep.score, multifactor.score, multifactor.score_by_size

IDS: dict[str, int] = {
    "fifo": 0,
    "sjf": 1,
    "saf": 2,
    "smallest": 3,
    "f1": 4,
    "wfp3": 5,
    "unicep": 6,
    "multifactor": 7,
    "multifactor_size": 8,
}
FIRST_DYNAMIC = 5
"""Policies from this number on change their scores with time; the others rank a job once, when it arrives."""
FIRST_FAIR = 7
"""Policies from this number on look at fair shares."""

TITLES: dict[str, str] = {
    "fifo": "FIFO",
    "sjf": "SJF",
    "saf": "SAF",
    "smallest": "Smallest first",
    "f1": "F1",
    "wfp3": "WFP3",
    "unicep": "UNICEP",
    "multifactor": "Slurm multifactor",
    "multifactor_size": "Slurm multifactor (size)",
}
"""Names as tables and figures print them."""


@njit(cache=True)
def compiled_score(policy, job):
    """Score of one job (Facts) under the policy of this number; lower goes first."""
    if policy == 0:
        return _fifo(job)
    if policy == 1:
        return _sjf(job)
    if policy == 2:
        return _saf(job)
    if policy == 3:
        return _smallest(job)
    if policy == 4:
        return _f1(job)
    if policy == 5:
        return _wfp3(job)
    if policy == 6:
        return _unicep(job)
    if policy == 7:
        return _multifactor(job)
    return _by_size(job)


class Queue(NamedTuple):
    """What a policy of the user's own is told: the q jobs of one queue, in order of submission; all [q]."""

    submit_s: np.ndarray
    """Submission, seconds since the trace's t0."""
    estimate_s: np.ndarray
    """Estimated run time."""
    gpus: np.ndarray
    """Requested GPUs."""
    wait_s: np.ndarray
    """Waiting time so far."""
    account: np.ndarray
    """Number of the user, where not known of the VC; one number for all jobs without either."""
    row: np.ndarray
    """Row of the job in the workload (not known to a real scheduler before it runs; for bookkeeping)."""


Score = Callable[[Queue, float], np.ndarray]
OWN: dict[str, Score] = {}
"""The user's own policies by name."""


def policy(name: str) -> Callable[[Score], Score]:
    """Decorator: make ``score(queue, now) -> array [q]``, lower first, a policy of this name.

    It is asked at every decision between two jobs or more; ties go by submission, then id. ``now`` is in seconds
    since the trace's t0. Raises ValueError for a name that is not lower-case letters, digits and underscores, or
    is one of the built-in policies, and for a function that does not take the two.
    """
    if not isinstance(name, str):
        raise ValueError('policy name: found none; write @policy("name") above the function')
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"policy name: found {name!r}, expected lower-case letters, digits, underscores")
    if name in IDS:
        raise ValueError(f"policy name: {name!r} is built in; choose another")

    def register(score: Score) -> Score:
        try:
            inspect.signature(score).bind(None, 0.0)
        except TypeError as error:
            raise ValueError(f"policy {name!r}: {error}; expected a function of (queue, now)") from None
        OWN[name] = score
        return score

    return register
