"""Synthetic traces: raw archives in the native layouts, byte-reproducible from a seed, no network needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rltune.traces.synthetic import write_alibaba, write_helios, write_philly, write_sacct, write_swf

GENERATOR_VERSION = 4
"""Raised with every change to what a seed gives; archives of another version are made again."""

WRITERS: dict[str, Callable[..., list[Path]]] = {
    "philly": write_philly.write,
    "helios": write_helios.write,
    "alibaba2020": write_alibaba.write,
    "swf": write_swf.write,
    "sacct": write_sacct.write,
}
PARTS = {"swf": tuple(write_swf.LOGS), "sacct": tuple(write_sacct.LOGS)}
"""Formats with several logs to imitate, of which ``part`` names one."""


def generate(format: str, folder: Path, seed: int, jobs: int, part: str | None = None) -> list[Path]:
    """Write the raw files of a synthetic trace with ``jobs`` jobs into ``folder``; returns their paths.

    ``jobs`` counts the GPU jobs of a GPU trace. ``part`` chooses among the logs of :data:`PARTS`; other formats ignore
    it.
    """
    return WRITERS[format](Path(folder), seed, jobs, *((part,) if format in PARTS else ()))
