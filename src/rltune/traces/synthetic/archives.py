"""Helpers of the writers: archives whose bytes depend on their contents alone, names, wall-clock times, faults."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.files import atomic_write

_LEVEL = 6


def write_gz(path: Path, content: bytes) -> Path:
    """Write one file as gzip; returns its path."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(gzip.compress(content, _LEVEL, mtime=0))  # no clock and no name in the header
    return path


def write_tar_gz(path: Path, members: dict[str, str]) -> Path:
    """Write ``members`` (name → text) as a tar.gz, in the order given; returns its path."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in members.items():
            content, entry = text.encode(), tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), 0, 0o644
            archive.addfile(entry, io.BytesIO(content))
    return write_gz(path, plain.getvalue())


def wall_clock(unix_s: np.ndarray | pd.Series, time_zone: str, between: str = " ") -> np.ndarray:
    """``YYYY-MM-DD HH:MM:SS`` in local time, without zone, as the raw logs have it (array of str)."""
    local = pd.to_datetime(pd.Series(unix_s), unit="s", utc=True).dt.tz_convert(time_zone)
    return local.dt.strftime(f"%Y-%m-%d{between}%H:%M:%S").to_numpy(dtype=object)


def hex_names(rng: np.random.Generator, count: int, digits: int) -> np.ndarray:
    """``count`` distinct random hexadecimal names of up to 16 digits."""
    names: dict[str, None] = {}
    while len(names) < count:
        for value in rng.integers(0, 2**63, count - len(names), dtype=np.uint64):
            names[f"{int(value):016x}"[-digits:]] = None
    return np.array([*names], dtype=object)


def pick(rng: np.random.Generator, count: int, shares: dict[str, float]) -> np.ndarray:
    """A label for each of ``count`` rows by ``shares``; the rest gets the empty string (array of str)."""
    p = np.array([*shares.values(), max(0.0, 1 - sum(shares.values()))])
    return rng.choice(np.array([*shares, ""], dtype=object), size=count, p=p / p.sum())
