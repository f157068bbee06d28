"""What each synthetic trace looks like: shares, quantiles and rates, no rows.

Source, unless a line says otherwise: aggregate statistics of the first 75 % of the published traces (Philly from
2017-10-01; Helios Venus from 2020-04-01; an 8.2 % sample of finished PAI GPU tasks), CC-BY-4.0, by their authors:
Jeon et al., USENIX ATC 2019; Hu et al., SC 2021; Weng et al., NSDI 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

LEVELS = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1)
"""Probabilities the run-time quantiles below belong to."""

CLAMP_S = 172_800
"""Run times in the published samples of Venus and PAI stop at 48 h; above it a Pareto tail takes over."""


@dataclass(frozen=True)
class RunTimes:
    """Run times of the jobs of ``low``–``high`` GPUs."""

    low: int
    high: int
    share_over_48h: float
    """Share of jobs in the Pareto tail beyond 48 h (0 where the quantiles reach the end)."""
    quantiles_s: tuple[int, ...]
    """Quantiles at :data:`LEVELS` of the other jobs, seconds."""


@dataclass(frozen=True)
class Arrivals:
    """How sessions of users make submissions; fitted by hand to burstiness (see the tests' target figures)."""

    rate_per_s: float
    """GPU jobs a second, over the whole published trace."""
    hours: tuple[float, ...]
    """Relative intensity of the 24 hours, local time."""
    weekdays: tuple[float, ...]
    """Relative intensity Monday to Sunday."""
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
    """… with this mean gap between jobs; the others …"""
    think_gap_s: float
    """… wait this long in the median (lognormal, sigma 1)."""
    heartbeat_s: int | None = None
    """A monitor submits a short 1-GPU job this often (Philly: a peak of inter-arrival gaps at 600 s)."""


@dataclass(frozen=True)
class Waits:
    """Recorded wait: a share starts within a minute, the rest is lognormal, more for more GPUs."""

    share_immediate: float
    immediate_s: int
    mean_s: float
    sigma: float


@dataclass(frozen=True)
class Parameters:
    """One synthetic trace."""

    start: str
    """First instant, local wall clock."""
    time_zone: str
    users: int
    gpu_shares: dict[int, float]
    """GPUs → share of jobs (scaled to sum 1)."""
    runs: tuple[RunTimes, ...]
    tail_exponent: float
    """Exponent of the Pareto tail beyond 48 h."""
    max_run_s: int
    arrivals: Arrivals
    waits: Waits
    vcs: dict[str, float]
    """Virtual cluster → weight; empty where the trace has none."""
    vc_gpus: dict[str, int]
    """GPUs of each virtual cluster where jobs must fit into theirs."""
    keep_gpus: float
    """Correlation of GPU counts within a session …"""
    user_gpus: float
    """… and within a user; both of the Gaussian copula."""
    keep_run: float
    """The same for run times within a session …"""
    user_run: float
    """… and within a user."""


PHILLY = Parameters(
    start="2017-10-09 00:00:00",
    time_zone="America/Los_Angeles",
    users=319,  # paper, Table 4
    gpu_shares={1: 0.885, 2: 0.0202, 4: 0.0455, 8: 0.0422, 12: 0.0002, 16: 0.0054, 24: 0.0002, 32: 0.0012,
                64: 0.0001, 128: 0.00002},
    runs=(
        RunTimes(1, 1, 0, (1, 17, 49, 63, 125, 533, 944, 1490, 2090, 2740, 4270, 11700, 42100, 167000, 403000, 669000,
                           2120000, 5190000)),
        RunTimes(2, 3, 0, (2, 4, 9, 11, 15, 17, 20, 28, 161, 3510, 64900, 226000, 378000, 559000, 692000, 1160000,
                           1760000, 2580000)),
        RunTimes(4, 7, 0, (1, 20, 46, 107, 247, 563, 1440, 8320, 25700, 65200, 110000, 238000, 454000, 1020000,
                           1910000, 2060000, 2780000, 4010000)),
        RunTimes(8, 15, 0, (2, 17, 41, 81, 256, 612, 2840, 11500, 29800, 85800, 183000, 370000, 637000, 1090000,
                            1590000, 2210000, 3710000, 4340000)),
        RunTimes(16, 128, 0, (9, 15, 31, 46, 136, 355, 1630, 8480, 23300, 46800, 84300, 210000, 572000, 915000,
                              1610000, 3120000, 3340000, 3410000)),
    ),
    tail_exponent=1.8,
    max_run_s=60 * 86_400,  # paper, Table 4
    arrivals=Arrivals(
        rate_per_s=0.01455,
        hours=(1.44, 1.03, 1.34, 1.05, 0.79, 1.23, 1.77, 2.01, 1.04, 0.83, 0.74, 0.67,
               0.61, 0.63, 0.40, 0.51, 1.14, 0.73, 0.71, 0.64, 1.05, 0.96, 1.35, 1.34),
        weekdays=(1.02, 1.06, 1.18, 1.14, 1.36, 0.63, 0.59),
        day_sigma=0.5, hour_sigma=0.5, session_exponent=0.95, session_cap=600,
        quick_share=0.8, quick_gap_s=4.0, think_gap_s=300.0, heartbeat_s=600,
    ),
    waits=Waits(share_immediate=0.6, immediate_s=60, mean_s=2703.3, sigma=1.8),  # mean: paper, Table 2; rest our choice
    vcs={"6214e9": 0.462, "6c71a0": 0.167, "11cb48": 0.137, "b436b2": 0.106, "ee9e8c": 0.042, "0e4a51": 0.023,
         "103959": 0.021, "ed69ec": 0.017, "7f04ca": 0.012, "2869ce": 0.008, "e13805": 0.006},
    vc_gpus={},
    keep_gpus=0.95, user_gpus=0.3, keep_run=0.6, user_run=0.25,
)

_VENUS_NODES = {"vcEwI": 9, "vcWoR": 5, "vcHvQ": 8, "vcvGl": 20, "vc8Gr": 6, "vcKeu": 12, "vcKrE": 4, "vcYVn": 11,
                "vchbv": 4, "vcLTP": 8, "vchA3": 3, "vcJsw": 32, "vcefl": 10, "vcvlY": 2, "vcgkz": 1}
"""Nodes of 8 GPUs in each Venus virtual cluster, September 2020 (Helios' cluster_gpu_number.csv)."""

HELIOS = Parameters(
    start="2020-07-01 00:00:00",
    time_zone="Asia/Shanghai",
    users=64,  # Helios has 277 in four clusters (paper, Table 4); a quarter of them, rounded down to 64: our choice
    gpu_shares={1: 0.5085, 2: 0.0535, 3: 0.0013, 4: 0.0741, 5: 0.0007, 6: 0.0013, 7: 0.0019, 8: 0.2609, 16: 0.0476,
                24: 0.0088, 32: 0.0222, 40: 0.0026, 48: 0.003, 56: 0.0018, 64: 0.0026, 72: 0.0009, 80: 0.0016,
                96: 0.0005, 104: 0.0006, 112: 0.0004, 120: 0.0009, 128: 0.0007, 144: 0.0003, 160: 0.0033},
    runs=(
        RunTimes(1, 1, 0.0126, (1, 1, 4, 14, 43, 87, 135, 198, 345, 950, 2210, 9400, 29300, 55700, 87500, 117000,
                                162000, 173000)),
        RunTimes(2, 3, 0.0542, (1, 1, 6, 15, 40, 87, 130, 189, 316, 757, 2050, 25300, 78200, 114000, 138000, 160000,
                                169000, 172000)),
        RunTimes(4, 7, 0.0239, (1, 1, 4, 12, 37, 71, 108, 162, 277, 706, 3330, 23400, 53600, 105000, 146000, 161000,
                                171000, 172000)),
        RunTimes(8, 15, 0.0164, (1, 1, 8, 25, 72, 125, 163, 205, 349, 669, 1690, 14100, 44300, 82800, 112000, 138000,
                                 165000, 172000)),
        RunTimes(16, 31, 0.0245, (1, 1, 9, 20, 61, 139, 219, 349, 652, 2320, 13400, 46800, 75800, 110000, 142000,
                                  163000, 171000, 172000)),
        RunTimes(32, 1024, 0.0409, (1, 1, 5, 7, 21, 63, 107, 207, 334, 662, 2220, 29500, 74600, 122000, 149000,
                                    162000, 170000, 172000)),
    ),
    # Gives the official mean of 13,041 s where the sample, clamped at 48 h, has 9,103 s.
    tail_exponent=1.8,
    max_run_s=50 * 86_400,  # paper, Table 4
    arrivals=Arrivals(
        rate_per_s=0.0076,
        hours=(0.94, 0.63, 0.58, 0.34, 0.27, 0.19, 0.17, 0.22, 0.39, 0.85, 1.39, 1.53,
               1.15, 1.31, 1.54, 1.61, 1.71, 1.71, 1.24, 1.30, 1.33, 1.32, 1.17, 1.12),
        weekdays=(1.05, 1.08, 1.19, 1.17, 0.97, 0.74, 0.80),
        day_sigma=0.35, hour_sigma=0.6, session_exponent=1.25, session_cap=300,
        quick_share=0.5, quick_gap_s=5.0, think_gap_s=600.0,
    ),
    # Mean and median (0) of Venus' GPU jobs in the published cluster summary; sigma our choice.
    waits=Waits(share_immediate=0.75, immediate_s=1, mean_s=1253.3, sigma=1.8),
    vcs={vc: float(nodes) for vc, nodes in _VENUS_NODES.items()},  # by nodes: our choice
    vc_gpus={vc: 8 * nodes for vc, nodes in _VENUS_NODES.items()},
    keep_gpus=0.97, user_gpus=0.4, keep_run=0.65, user_run=0.3,
)

ALIBABA = Parameters(
    start="1970-01-26 00:00:00",  # PAI's clock is shifted: a Monday of it
    time_zone="Asia/Shanghai",
    users=1242,  # paper, Table 4
    gpu_shares={1: 0.7677, 2: 0.0312, 3: 0.0144, 4: 0.0149, 5: 0.0168, 6: 0.0025, 7: 0.0006, 8: 0.0128, 9: 0.0003,
                10: 0.0380, 12: 0.0083, 15: 0.0047, 16: 0.0114, 18: 0.001, 20: 0.0215, 24: 0.0003, 25: 0.0063,
                28: 0.0014, 30: 0.0104, 32: 0.0011, 35: 0.0002, 36: 0.0009, 40: 0.0065, 48: 0.0003, 50: 0.0143,
                60: 0.0022, 64: 0.0014, 80: 0.002, 100: 0.004, 140: 0.0003, 150: 0.0004, 200: 0.0006, 400: 0.0002},
    runs=(
        RunTimes(1, 1, 0.001, (5, 19, 26, 35, 67, 163, 276, 485, 976, 2250, 5000, 11100, 20900, 43600, 58200, 84900,
                               143000, 171000)),
        RunTimes(2, 4, 0.0048, (6, 21, 44, 56, 105, 194, 369, 538, 996, 1880, 4040, 12500, 32200, 58200, 81500,
                                105000, 136000, 141000)),
        RunTimes(5, 9, 0.0061, (27, 47, 68, 86, 147, 284, 585, 1370, 2900, 4990, 8220, 17700, 34100, 76500, 115000,
                                146000, 162000, 168000)),
        RunTimes(10, 19, 0.0028, (29, 59, 105, 160, 259, 410, 802, 1280, 1850, 3430, 6670, 18100, 28000, 40200, 60800,
                                  78900, 109000, 145000)),
        RunTimes(20, 1024, 0.0032, (18, 31, 96, 180, 489, 1020, 1630, 2540, 4000, 6060, 10300, 20000, 36800, 59100,
                                    74600, 93600, 146000, 157000)),
    ),
    tail_exponent=1.8,
    max_run_s=30 * 86_400,  # paper, Table 4
    arrivals=Arrivals(
        rate_per_s=0.1311,  # the sample's rate × 12
        hours=(1.52, 1.08, 0.83, 0.66, 0.91, 0.86, 1.05, 1.01, 0.86, 0.92, 1.31, 1.30,
               1.05, 1.01, 1.08, 1.13, 1.08, 1.25, 1.11, 0.95, 0.94, 0.77, 0.66, 0.66),
        weekdays=(1.12, 1.08, 1.01, 1.12, 1.03, 0.82, 0.82),
        day_sigma=0.15, hour_sigma=0.2, session_exponent=1.6, session_cap=200,
        quick_share=0.6, quick_gap_s=1.5, think_gap_s=120.0,
    ),
    waits=Waits(share_immediate=0.8, immediate_s=5, mean_s=22.1, sigma=1.5),  # mean: paper, Table 2; rest our choice
    vcs={},
    vc_gpus={},
    keep_gpus=0.9, user_gpus=0.35, keep_run=0.65, user_run=0.3,
)
