"""The faults real logs have, in small shares, so that cleaning and its audit have something to count."""

from __future__ import annotations

import numpy as np
import pandas as pd


def wall_clock(unix_s: np.ndarray, time_zone: str) -> np.ndarray:
    """``YYYY-MM-DD HH:MM:SS`` in local time, without zone, as the raw logs have it (array of str)."""
    local = pd.to_datetime(pd.Series(unix_s), unit="s", utc=True).dt.tz_convert(time_zone)
    return local.dt.strftime("%Y-%m-%d %H:%M:%S").to_numpy(dtype=object)


def hex_names(rng: np.random.Generator, count: int, digits: int, prefix: str = "") -> list[str]:
    """``count`` distinct random hexadecimal names of up to 16 digits."""
    names: dict[str, None] = {}
    while len(names) < count:
        for value in rng.integers(0, 2**63, count - len(names), dtype=np.uint64):
            names[f"{int(value):016x}"[-digits:]] = None
    return [prefix + name for name in names]


def pick(rng: np.random.Generator, count: int, shares: dict[str, float]) -> np.ndarray:
    """A label for each of ``count`` rows by ``shares``; the rest gets the empty string (array of str)."""
    labels = np.array([*shares, ""], dtype=object)
    p = np.array([*shares.values(), 1 - sum(shares.values())])
    return rng.choice(labels, size=count, p=p / p.sum())
