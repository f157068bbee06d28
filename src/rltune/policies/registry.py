"""Every policy of this package by name, and custom ones in Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rltune.policies.policy import Policy
from rltune.registry import discover

if TYPE_CHECKING:
    import numpy as np


_policies: list[Policy] = discover("rltune.policies", "POLICY", "name")
POLICIES: dict[str, Policy] = {p.name: p for p in sorted(_policies, key=lambda p: (p.fair, p.dynamic, p.rank, p.name))}
"""The static ones first, then the dynamic, then the fair."""
IDS: dict[str, int] = {name: number for number, name in enumerate(POLICIES)}
"""Numbers of the policies in the compiled simulator."""
FIRST_DYNAMIC = sum(not p.dynamic for p in POLICIES.values())
"""Policies from this number on change their scores with time."""
FIRST_FAIR = sum(not p.fair for p in POLICIES.values())
"""Policies from this number on use fair shares."""
TITLES: dict[str, str] = {name: policy.title for name, policy in POLICIES.items()}


class Queue(NamedTuple):
    """What a custom policy knows: the q jobs of one queue, in order of submission; all [q]."""

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


Score = Callable[[Queue, float], "np.ndarray"]
CUSTOM: dict[str, Score] = {}
"""Custom policies by name."""


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
        CUSTOM[name] = score
        return score

    return register
