"""A cluster with as many nodes as a given load needs: instead of fewer jobs, more or fewer machines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

from rltune.cluster.fit import fit
from rltune.cluster.load import offered_load, scaled
from rltune.config import ClusterConfig
from rltune.errors import ConfigError, DataError

CLOSE = 0.01
"""Relative distance from the target load that is near enough: nodes are whole."""
MOST = 100
"""Times the cluster's GPUs; a load that takes more is a mistake."""
ROUNDS = 8
"""Tries at most; a larger cluster holds larger jobs, so the load does not fall exactly as the nodes grow."""


class Balanced(NamedTuple):
    """A scaled cluster, and the offered loads of the trace before and after."""

    cluster: ClusterConfig
    before: float
    after: float
    reached: bool
    """Whether the load is near the target."""
    dropped: bool
    """Whether the cluster has a ``balance``, which the scaled one lacks."""


def balance(given: ClusterConfig, cluster: str, jobs: pd.DataFrame, trace: str, load: float) -> Balanced:
    """Scale a cluster's node numbers to an offered load of a trace's cleaned jobs, as near as whole nodes come.

    ``cluster``, ``trace``: their names. The title has the load that was reached. Raises ConfigError for a load that is
    not above 0 or takes more than MOST times the GPUs, DataError when the trace's jobs all come at once.
    """
    if not 0 < load < float("inf"):
        raise ConfigError(f"--load: found {load}, expected a number above 0, such as 0.9")
    plain = given.model_copy(update={"balance": None})

    def load_on(config: ClusterConfig) -> float:
        return offered_load(fit(jobs, config, f"{trace} on {cluster}")[0], config.gpus)

    before = load_on(plain)
    if not np.isfinite(before):
        raise DataError(f"{trace} on {cluster}: its jobs are all submitted at one time, so there is no offered load")
    factor, best, after = 1.0, plain, before
    current = before
    for _ in range(ROUNDS):
        if abs(after / load - 1) <= CLOSE:
            break
        factor *= current / load
        candidate = scaled(plain, factor) if factor <= MOST else None
        if candidate is None or candidate.gpus > MOST * plain.gpus:
            raise ConfigError(
                f"--load: found {load:g}, but {cluster} has a load of {before:.3g} now: "
                f"it would take more than {MOST} times its {plain.gpus:,} GPUs"
            )
        current = load_on(candidate)
        if abs(current / load - 1) < abs(after / load - 1):
            best, after = candidate, current
    reached = abs(after / load - 1) <= CLOSE
    named = best.model_copy(
        update={"title": f"{given.title}, scaled to a load of {f'{load:g}' if reached else f'{after:.3g}'}"}
    )
    return Balanced(named, before, after, reached, given.balance is not None)


def as_yaml(cluster: ClusterConfig) -> str:
    """The text of a cluster file."""
    values = cluster.model_dump(exclude_defaults=True)
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
