"""Synthetic traces: raw archives in the native layouts, byte-reproducible from a seed, no network needed."""

from pathlib import Path
from typing import Any

from rltune.traces.synthetic import write_alibaba, write_philly, write_sacct, write_swf

GENERATOR_VERSION = 4
"""Raised with every change to what a seed gives; archives of another version are made again."""

WRITERS: dict[str, Any] = {"philly": write_philly, "alibaba2020": write_alibaba, "swf": write_swf, "sacct": write_sacct}


def generate(format: str, folder: Path, seed: int, jobs: int, part: str | None = None) -> list[Path]:
    """Write the raw files of a synthetic trace with ``jobs`` jobs into ``folder``; returns their paths.

    ``jobs`` counts the GPU jobs of a GPU trace. ``part`` names one of the logs of ``swf`` and ``sacct``.
    """
    of_part = [part] if format in ("swf", "sacct") else []
    return WRITERS[format].write(folder, seed, jobs, *of_part)
