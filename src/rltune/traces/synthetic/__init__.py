"""Synthetic traces: raw archives in the native layouts, byte-reproducible from a seed, no network needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rltune.errors import ConfigError
from rltune.traces.synthetic import write_alibaba, write_helios, write_philly

GENERATOR_VERSION = 1
"""Raised with every change to what a seed gives; archives of another version are made anew."""

WRITERS: dict[str, Callable[[Path, int, int], list[Path]]] = {
    "philly": write_philly.write,
    "helios": write_helios.write,
    "alibaba2020": write_alibaba.write,
}


def generate(format: str, folder: Path, seed: int, jobs: int) -> list[Path]:
    """Write the raw files of a synthetic trace with ``jobs`` GPU jobs into ``folder``; returns their paths.

    Raises:
        ConfigError: no generator for the format.
    """
    if format not in WRITERS:
        raise ConfigError(f"synthetic: no generator for format {format!r}; expected one of {', '.join(WRITERS)}.")
    return WRITERS[format](Path(folder), seed, jobs)
