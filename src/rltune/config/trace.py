"""The configuration of one trace: where its raw files come from and how to read them.

One file a trace in ``config/traces/<name>.yaml``; the file's stem is the trace's name.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from rltune.config.base import Block

Format = Literal["philly", "helios", "alibaba2020", "csv"]
Status = Literal["passed", "failed", "killed", "running", "unknown"]
CanonicalColumn = Literal[
    "job_id", "user", "vc", "submit_s", "run_s", "run_clamped", "requested_s", "resource", "gpus", "cpus", "mem_gb",
    "gpu_type", "wait_s", "status", "sla", "start_s", "end_s",
]  # fmt: skip
"""Columns of the job table, and start and end, from which run time and wait follow."""
Unit = Literal["s", "ms", "min", "h", "d", "GB", "MB", "GiB", "MiB", "milli", "percent", "count"]


class Synthetic(Block):
    """Generate the raw archive, in the format's native layout, from a seed."""

    seed: int = Field(2025, ge=0)
    """Seed of the generator; the same seed gives the same bytes."""
    jobs: int = Field(40_000, ge=1)
    """Number of GPU jobs the archive holds."""


class Download(Block):
    """One file of the official archive."""

    url: str
    """Address; a `file://` address works too."""
    file: str
    """Name the file gets in the cache."""
    sha256: str | None = None
    """Checksum; where it is not known, the first download's is recorded."""
    bytes: int | None = Field(None, ge=1)
    """Size, where known."""
    mirrors: list[str] = []
    """Other addresses of the same file, tried in order."""


class Column(Block):
    """How one canonical column is made from the columns of a CSV file."""

    column: str | None = None
    """Column of the file."""
    fallback: str | None = None
    """Column to use in rows where the first one is empty."""
    constant: str | int | float | bool | None = None
    """The same value in every row, instead of a column."""
    unit: Unit = "count"
    """Unit the file's numbers are in; converted to the canonical one (seconds, GB, GPUs, CPUs)."""
    factor: float = 1.0
    """Multiplier after unit conversion (1/12 on submit times makes arrivals twelve times as dense)."""
    time_zone: str | None = None
    """Zone of wall-clock times in this column; default: the trace's."""
    map: dict[str, str] | None = None
    """Replacement of values, e.g. `{COMPLETED: passed}`; a value that is not in the map is counted and becomes null."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"column": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_source(self) -> Column:
        if (self.column is None) == (self.constant is None):
            raise ValueError("give either `column` or `constant`")
        return self


class Filter(Block):
    """Keep only the rows whose column meets a condition; the others are counted."""

    column: str
    """Column of the file."""
    op: Literal["==", "!=", "<", "<=", ">", ">=", "in"]
    """Comparison."""
    value: str | int | float | bool | list[str | int | float]
    """What it is compared with."""


class RecordedOn(Block):
    """The system a trace was recorded on, as published; shown in Table 4."""

    gpus: int | None = Field(None, ge=1)
    """GPUs in all."""
    nodes: int | None = Field(None, ge=1)
    """Nodes with GPUs."""
    gpu_types: list[str] = []
    """GPU types."""
    scheduler: str | None = None
    """Its scheduler."""
    network: str | None = None
    """Its network."""
    source: str
    """Where this is said."""


class TraceConfig(Block):
    """One trace: its source, its format and what to keep of it."""

    title: str
    """Name in tables and figures."""
    data: Literal["synthetic", "sample", "full", "own"]
    """What the rows are; every table and figure says it."""
    format: Format
    """Layout of the raw files."""
    time_zone: str = "UTC"
    """Zone of wall-clock times without one in the raw files (IANA name)."""
    start: date | None = None
    """Keep jobs submitted on this day or later (in `time_zone`)."""
    end: date | None = None
    """Keep jobs submitted before this day (in `time_zone`)."""
    synthetic: Synthetic | None = None
    """Generate the raw files …"""
    downloads: list[Download] | None = None
    """… or download them …"""
    path: str | None = None
    """… or read this file or folder (`${VARIABLE}` is replaced from the environment; relative to the project's root)."""
    part: str | None = None
    """The part of an archive that holds several clusters (Helios: Earth, Saturn, Uranus or Venus)."""
    columns: dict[CanonicalColumn, Column] | None = None
    """Format `csv`: canonical column → column of the file (a name alone is short for `{column: name}`)."""
    filter: list[Filter] = []
    """Format `csv`: rows to keep."""
    recorded_on: RecordedOn | None = None
    """The system the trace comes from (a generated trace: the one it imitates)."""
    licence: str | None = None
    """Licence of the data."""
    citation: str | None = None
    """Source to cite."""

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"found {name!r}, expected an IANA time zone such as America/Los_Angeles") from None
        return name

    @model_validator(mode="after")
    def _consistent(self) -> TraceConfig:
        if self.start and self.end and self.start >= self.end:
            raise ValueError(f"`start` ({self.start}) must come before `end` ({self.end})")
        given = [k for k in ("synthetic", "downloads", "path") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of `synthetic`, `downloads`, `path`; found {given or 'none'}")
        if (self.format == "csv") != (self.columns is not None):
            raise ValueError("`columns` goes with format `csv`, and only with it")
        if self.format == "csv" and self.synthetic is not None:
            raise ValueError("format `csv` reads a file of yours; `synthetic` makes philly, helios and alibaba2020")
        if (self.format == "helios") != (self.part is not None):
            raise ValueError("`part` goes with format `helios` (Earth, Saturn, Uranus or Venus), and only with it")
        return self

    def column(self, name: str) -> Column | None:
        """The map of one canonical column, or None where the trace has none."""
        return (self.columns or {}).get(name)
