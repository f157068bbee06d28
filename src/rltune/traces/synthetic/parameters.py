"""What each synthetic trace looks like: shares, quantiles, rates and correlations, no rows.

Everything estimated from rows stands in ``fitted/<name>.json``, written by ``benchmarks/fit_synthetic.py`` from the fit
months alone (``rltune.calibration.months``). What rows cannot say is here, each with its source. The data are
CC-BY-4.0, by Jeon et al., USENIX ATC 2019 (Philly); Hu et al., SC 2021 (Helios); Weng et al., NSDI 2022 (PAI); HPC2N is
from the Parallel Workloads Archive.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FITTED = Path(__file__).with_name("fitted")

LEVELS = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1)
"""Probabilities the run-time quantiles below belong to."""

CLAMP_S = 172_800
"""Run times in the published samples of Venus and PAI stop at 48 h; above it a Pareto tail takes over."""


@dataclass(frozen=True)
class RunTimes:
    """Run times of the jobs of ``low``–``high`` GPUs (processors in CPU traces)."""

    low: int
    high: int
    share_over_48h: float
    """Share of jobs in the Pareto tail beyond 48 h (0 where the quantiles reach the end)."""
    quantiles_s: tuple[int, ...]
    """Quantiles at :data:`LEVELS` of the other jobs, seconds."""


@dataclass(frozen=True)
class Dynamics:
    """How sessions of users make submissions, and how alike the jobs of one are; found by search on the fit months."""

    day_sigma: float
    """Spread (log) of the intensity from day to day, correlated over days."""
    hour_sigma: float
    """Spread (log) from hour to hour, correlated over hours."""
    session_exponent: float
    """Jobs in a session are Pareto with this exponent, from 1 up …"""
    session_cap: int
    """… to this."""
    quick_share: float
    """Share of sessions submitted by a script …"""
    quick_gap_s: float
    """… with this median of the mean gap between jobs, which differs from session to session …"""
    quick_sigma: float
    """… with this spread (log); the others …"""
    think_gap_s: float
    """… wait this long in the median (lognormal, sigma 1)."""
    keep_gpus: float
    """Share of a session's jobs that ask for the session's own GPU count; the others are drawn anew …"""
    user_gpus: float
    """… and how much of the session's own count (variance of the copula) is its user's."""
    alike: float
    """Share of sessions whose jobs run as long as each other, to a few per cent."""
    session_run: float
    """Of the run time in the others, the part (variance of the copula) that is the session's …"""
    user_run: float
    """… and the part that is the user's."""
    big_gpus: float
    """How strongly (correlation in the copula) jobs of long sessions ask for fewer GPUs …"""
    big_run: float
    """… and run for less long."""


@dataclass(frozen=True)
class Waits:
    """Recorded wait: a share starts within a minute, the rest is lognormal, more for more GPUs."""

    share_immediate: float
    immediate_s: int
    mean_s: float
    sigma: float


@dataclass(frozen=True)
class Requests:
    """What only logs of CPU clusters have: the run time asked for, and a recorded wait."""

    values_s: tuple[int, ...]
    """The most frequent requested times, ascending, seconds."""
    edges_s: tuple[int, ...]
    """Run times between the bands of ``ratios``."""
    ratios: tuple[tuple[float, ...], ...]
    """Requested over run time: quantiles at :data:`LEVELS` in each band of run times."""
    users: int
    """Users of the fit months."""
    waits: Waits
    """Recorded waits."""
    wait_rank_run: float
    """Rank correlation of wait and run time."""


@dataclass(frozen=True)
class Marginals:
    """What is counted, not searched for: rates and distributions."""

    rate_per_s: float
    """GPU jobs (jobs in CPU traces) a second."""
    hours: tuple[float, ...]
    """Relative intensity of the 24 hours, local time."""
    weekdays: tuple[float, ...]
    """Relative intensity Monday to Sunday."""
    gpu_shares: dict[int, float]
    """GPUs (processors) → share of jobs; scaled to sum 1."""
    runs: tuple[RunTimes, ...]
    vcs: dict[str, float] = field(default_factory=dict)
    """Virtual cluster → share of jobs, where the rows say."""
    requests: Requests | None = None
    """CPU traces only."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> Marginals:
        """From what json reads."""
        requests = values.get("requests")
        if requests is not None:
            requests = Requests(
                **{
                    **requests,
                    "values_s": tuple(requests["values_s"]),
                    "edges_s": tuple(requests["edges_s"]),
                    "ratios": tuple(tuple(r) for r in requests["ratios"]),
                    "waits": Waits(**requests["waits"]),
                }
            )
        return cls(
            values["rate_per_s"],
            tuple(values["hours"]),
            tuple(values["weekdays"]),
            {int(n): share for n, share in values["gpu_shares"].items()},
            tuple(RunTimes(**{**r, "quantiles_s": tuple(r["quantiles_s"])}) for r in values["runs"]),
            values["vcs"],
            requests,
        )


@dataclass(frozen=True)
class Parameters:
    """One synthetic trace."""

    start: str
    """First instant, local wall clock."""
    time_zone: str
    users: int
    marginals: Marginals
    dynamics: Dynamics
    max_run_s: int
    waits: Waits
    tail_exponent: float = 1.8
    """Exponent of the Pareto tail beyond 48 h: with it Venus has about the official mean run time of 13,041 s where
    the sample, clamped at 48 h, has 9,103 s."""
    heartbeat_s: int | None = None
    """A monitor submits a short 1-GPU job this often (Philly: a peak of inter-arrival gaps at 600 s)."""
    vcs: dict[str, float] = field(default_factory=dict)
    """Virtual cluster → weight; empty where the trace has none."""
    vc_gpus: dict[str, int] = field(default_factory=dict)
    """GPUs of each virtual cluster where jobs must fit into theirs."""


@dataclass(frozen=True)
class Fitted:
    """One file of ``fitted/``."""

    months: dict[str, str]
    """First day of the fit, first day after it."""
    marginals: Marginals
    dynamics: Dynamics
    statistics: dict[str, float]
    """The fit months in the figures of ``rltune.calibration.likeness``."""

    @classmethod
    def read(cls, name: str) -> Fitted:
        """``fitted/<name>.json``."""
        values = json.loads((FITTED / f"{name}.json").read_text(encoding="utf-8"))
        marginals, dynamics = Marginals.of(values["marginals"]), Dynamics(**values["dynamics"])
        return cls(values["months"], marginals, dynamics, values["statistics"])

    def write(self, name: str) -> None:
        """The same file."""
        FITTED.mkdir(exist_ok=True)
        text = json.dumps(asdict(self), indent=1)
        (FITTED / f"{name}.json").write_text(text + "\n", encoding="utf-8")


VENUS_NODES = {
    "vcEwI": 9,
    "vcWoR": 5,
    "vcHvQ": 8,
    "vcvGl": 20,
    "vc8Gr": 6,
    "vcKeu": 12,
    "vcKrE": 4,
    "vcYVn": 11,
    "vchbv": 4,
    "vcLTP": 8,
    "vchA3": 3,
    "vcJsw": 32,
    "vcefl": 10,
    "vcvlY": 2,
    "vcgkz": 1,
}
"""Nodes of 8 GPUs in each Venus virtual cluster, September 2020 (Helios' cluster_gpu_number.csv)."""
VENUS_VC_GPUS = {vc: 8 * nodes for vc, nodes in VENUS_NODES.items()}


def make(name: str, marginals: Marginals, dynamics: Dynamics) -> Parameters:
    """The parameters of a trace from what was fitted and what its rows cannot say."""
    m, d = marginals, dynamics
    if name == "philly":
        return Parameters(
            "2017-10-16 00:00:00",
            "America/Los_Angeles",
            users=319,  # paper, Table 4
            marginals=m,
            dynamics=d,
            max_run_s=60 * 86_400,  # paper, Table 4
            # Mean: paper, Table 2; the rest is our choice.
            waits=Waits(share_immediate=0.6, immediate_s=60, mean_s=2703.3, sigma=1.8),
            heartbeat_s=600,
            vcs=m.vcs,
        )
    if name == "helios":
        return Parameters(
            "2020-07-01 00:00:00",
            "Asia/Shanghai",
            users=64,  # Helios has 277 in four clusters (paper, Table 4); a quarter, rounded down to 64: our choice
            marginals=m,
            dynamics=d,
            max_run_s=50 * 86_400,  # paper, Table 4
            # Mean and median (0) of Venus' GPU jobs in the published cluster summary; sigma is our choice.
            waits=Waits(share_immediate=0.75, immediate_s=1, mean_s=1253.3, sigma=1.8),
            vcs={vc: float(nodes) for vc, nodes in VENUS_NODES.items()},  # by nodes: our choice
            vc_gpus=VENUS_VC_GPUS,
        )
    if name == "alibaba2020":
        return Parameters(
            "1970-01-26 00:00:00",  # PAI's clock is shifted: a Monday of it
            "Asia/Shanghai",
            users=1242,  # paper, Table 4
            marginals=m,
            dynamics=d,
            max_run_s=30 * 86_400,  # paper, Table 4
            # Mean: paper, Table 2; the rest is our choice.
            waits=Waits(share_immediate=0.8, immediate_s=5, mean_s=22.1, sigma=1.5),
        )
    if name == "hpc2n" and m.requests is not None:
        return Parameters(
            "2002-07-29 00:00:00",
            "Europe/Stockholm",
            users=m.requests.users,
            marginals=m,
            dynamics=d,
            max_run_s=6 * 86_400,  # about the log's longest
            waits=m.requests.waits,
        )
    raise KeyError(name)


def load(name: str) -> Parameters:
    """The parameters of a fitted trace: philly, helios, alibaba2020 or hpc2n."""
    fitted = Fitted.read(name)
    return make(name, fitted.marginals, fitted.dynamics)
