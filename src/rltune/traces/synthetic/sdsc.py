"""The synthetic SDSC-SP2 log: HPC2N's habits brought to the figures the paper prints of SDSC-SP2 (Table 2).

No rows of that log were at hand, so nothing here is checked against them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from rltune.traces.synthetic.parameters import LEVELS, Marginals, Parameters, RunTimes, Waits, load

T = TypeVar("T")

JOBS_PER_MONTH, MEAN_WAIT_S, MEAN_RUN_S, ALLOCATED = 2887, 10_403.6, 7319.6, 44_416
"""Paper, Table 2: jobs, mean wait, mean run time, processors allocated in a month (one of 30 days: our reading)."""
PROCESSORS = 128
LONGEST_RUN_S = 64_800
"""18 hours, the usual limit of such a centre's queues: our choice."""
USERS = 437
"""Our choice, of the size of such a centre's community."""

WAITS = Waits(share_immediate=0.3, immediate_s=60, mean_s=MEAN_WAIT_S, sigma=1.5)
"""But for the mean our choice."""


def sdsc_sp2() -> Parameters:
    """The parameters of the SDSC-SP2 log."""
    base = load("hpc2n")
    requests = base.marginals.requests
    assert requests is not None
    runs = _runs(base.marginals)
    ratio = MEAN_RUN_S / _mean_run_s(base.marginals, base.marginals.runs)
    # Asked in multiples of five minutes, up to the limit.
    scaled = {int(min(LONGEST_RUN_S, max(300, round(s * ratio / 300) * 300))) for s in requests.values_s}
    asked = replace(
        requests,
        values_s=tuple(sorted(scaled)),
        edges_s=tuple(round(s * ratio) for s in requests.edges_s),
        users=USERS,
        waits=WAITS,
    )
    marginals = replace(
        base.marginals, rate_per_s=JOBS_PER_MONTH / (30 * 86_400), gpu_shares=_processors(), runs=runs, requests=asked
    )
    return replace(
        base,
        start="1998-04-27 00:00:00",
        time_zone="America/Los_Angeles",
        users=USERS,
        marginals=marginals,
        max_run_s=LONGEST_RUN_S,
        waits=WAITS,
    )


def _processors() -> dict[int, float]:
    """Powers of two, geometric shares, with the mean of Table 2 (allocated over jobs)."""
    counts = 2 ** np.arange(8)
    shares = _bisect(
        lambda x: x ** np.arange(8) / (x ** np.arange(8)).sum(),
        lambda shares: float(shares @ counts),
        ALLOCATED / JOBS_PER_MONTH,
        0.1,
        2.0,
    )
    return {int(n): round(float(share), 5) for n, share in zip(counts, shares, strict=True)}


def _runs(marginals: Marginals) -> tuple[RunTimes, ...]:
    """HPC2N's run times, scaled and cut off at the limit so that their mean is Table 2's."""
    shares = _processors()

    def scaled(factor: float) -> tuple[RunTimes, ...]:
        return tuple(
            replace(r, quantiles_s=tuple(int(min(LONGEST_RUN_S, max(1, round(q * factor)))) for q in r.quantiles_s))
            for r in marginals.runs
        )

    return _bisect(scaled, lambda runs: _mean_run_s(replace(marginals, gpu_shares=shares), runs), MEAN_RUN_S, 0.01, 10)


def _mean_run_s(marginals: Marginals, runs: tuple[RunTimes, ...]) -> float:
    """Mean run time of the mixture; between quantiles it is log-linear, as it is drawn."""
    u = (np.arange(4000) + 0.5) / 4000
    total = weight = 0.0
    for group in runs:
        share = sum(s for n, s in marginals.gpu_shares.items() if group.low <= n <= group.high)
        total += share * float(np.exp(np.interp(u, LEVELS, np.log(group.quantiles_s))).mean())
        weight += share
    return total / weight


def _bisect(make: Callable[[float], T], value: Callable[[T], float], wanted: float, low: float, high: float) -> T:
    """The thing whose value, which rises with its parameter, is the one wanted."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if value(make(middle)) < wanted else (low, middle)
    return make(low)
