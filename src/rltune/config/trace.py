"""The configuration of one trace: where its raw files come from and how to read them.

One file a trace in ``config/traces/<name>.yaml``; the file's stem is the trace's name.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from rltune.config.base import Block
from rltune.config.messages import nearest

FORMATS = tuple(sorted(p.stem for p in (Path(__file__).parents[1] / "traces" / "readers").glob("[a-z]*.py")))
"""Layouts of raw files: one file each in rltune.traces.readers."""
Format = Literal[FORMATS]  # type: ignore[valid-type]
GpuShare = Literal["round_up", "leave_out"]
GENERATED = ("philly", "alibaba2020", "swf", "sacct")
"""Formats whose raw files `synthetic` can make."""
WHOLE = ("helios", "philly", "sacct", "swf")
"""Formats whose jobs ask for whole GPUs."""
PARTS: dict[str, tuple[str, ...] | None] = {
    "helios": ("Earth", "Saturn", "Uranus", "Venus", "all"),
    "alibaba2023": None,
    "authors": ("readme", "reader"),
    "swf": ("HPC2N", "SDSC-SP2"),
    "sacct": ("example", "finetuning"),
}
"""Formats that take `part`, and the values it may have (None: any name)."""


def known_zone(name: str) -> str:
    """Return the name of a time zone. Raises ValueError, which names the nearest, for any other name."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        meant = nearest(name, sorted(available_timezones()))
        raise ValueError(f"found {name!r}, expected an IANA time zone such as America/Los_Angeles{meant}") from None
    return name


Zone = Annotated[str, AfterValidator(known_zone)]
"""IANA name of a time zone."""


class Synthetic(Block):
    """Generate the raw archive, in the format's native layout, from a seed."""

    seed: int = Field(2025, ge=0)
    """Seed of the generator; the same seed gives the same bytes."""
    jobs: int = Field(40_000, ge=1)
    """Number of GPU jobs the archive holds."""


class Download(Block):
    """One file of the published archive."""

    url: str = Field(pattern="^(https?|file|shipped)://")
    """Address; a `file://` address works too, and `shipped://` names a file that ships with the package."""
    file: str = Field(pattern=r"^[^/]*[^/.][^/]*$")
    """Name the file gets in the cache; a plain name, without a folder."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """Checksum."""
    mirrors: list[Annotated[str, Field(pattern="^(https?|file)://")]] = []
    """Other addresses of the same file, tried in order."""


class Column(Block):
    """How one column of the job table is made from the columns of a CSV file."""

    column: str | None = None
    """Column of the file."""
    fallback: str | None = None
    """Column to use in rows where the first one is empty."""
    constant: str | int | float | bool | None = None
    """The same value in every row, instead of a column."""
    map: dict[str, str] | None = None
    """Replacement of values, e.g. `{COMPLETED: passed}`; a value that is not in the map is counted and becomes null. States
    that Slurm has, and common words such as `succeeded`, need not be in the map of `status`."""
    unit: str | None = None
    """Unit of the file's numbers, where it is not the job table's: s, ms, min, h or d for times and durations; GB, MB,
    GiB or MiB for memory; milli or percent for GPUs and CPUs."""
    factor: float = Field(1.0, gt=0)
    """Multiplier of numbers after unit conversion; 1/12 on submissions makes arrivals twelve times as dense."""
    time_zone: Zone | None = None
    """Zone of wall-clock times in this column; default: the trace's."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"column": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_source(self) -> Column:
        if (self.column is None) == (self.constant is None):
            raise ValueError("give either `column` or `constant`")
        if self.fallback is not None and self.column is None:
            raise ValueError("`fallback` goes with `column`")
        return self


SECONDS = {"s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0, "d": 86_400.0}
GIGABYTES = {"GB": 1.0, "MB": 1e-3, "GiB": 1.073741824, "MiB": 1.048576e-3}
COUNTS = {"milli": 1e-3, "percent": 1e-2}
TIMES = ("submit_s", "start_s", "end_s")
UNITS: dict[str, dict[str, float]] = {
    **dict.fromkeys([*TIMES, "run_s", "requested_s", "wait_s"], SECONDS),
    "mem_gb": GIGABYTES,
    **dict.fromkeys(["gpus", "cpus"], COUNTS),
}
"""Columns of numbers → the units the file may have them in, and their factors to the canonical one."""


class Columns(Block):
    """Column of the job table → column of the file."""

    job_id: Column | None = None
    """Id of the job; without this column, jobs are numbered by row."""
    user: Column | None = None
    """Who submitted it."""
    vc: Column | None = None
    """Virtual cluster (queue, partition)."""
    submit_s: Column | None = None
    """Submission; always needed."""
    start_s: Column | None = None
    """Start."""
    end_s: Column | None = None
    """End."""
    run_s: Column | None = None
    """Run time; default: end − start, so it is needed unless both are given."""
    run_clamped: Column | None = None
    """Whether the source cut the run time off (true or false)."""
    requested_s: Column | None = None
    """Run time that the user requested."""
    wait_s: Column | None = None
    """Recorded wait; default: start − submission."""
    resource: Column | None = None
    """`gpu` or `cpu`; default: gpu."""
    gpus: Column | None = None
    """GPUs; needed unless `resource` is the constant cpu."""
    cpus: Column | None = None
    """CPUs."""
    mem_gb: Column | None = None
    """Memory."""
    gpu_type: Column | None = None
    """Requested GPU type."""
    model: Column | None = None
    """Model that it trains, by the name that a cluster's profile of speeds has for it."""
    status: Column | None = None
    """How it ended: passed, failed, killed or unknown; running and not started are left out."""
    sla: Column | None = None
    """Whether it has a service-level agreement (true or false)."""

    @field_validator("*")
    @classmethod
    def _suits_column(cls, value: Column | None, info: ValidationInfo) -> Column | None:
        """Units and factors go with columns of numbers, time zones with those of times."""
        units = UNITS.get(info.field_name or "", {})
        if value is None:
            return value
        if value.unit is not None and value.unit not in units:
            allowed = ", ".join(units) or "none, as this is no column of numbers"
            raise ValueError(f"`unit`: found {value.unit!r}{nearest(value.unit, units)}; allowed: {allowed}")
        if value.factor != 1 and not units:
            raise ValueError(f"`factor`: found {value.factor}, which goes with numbers: {', '.join(UNITS)}")
        if value.time_zone is not None and info.field_name not in TIMES:
            raise ValueError(f"`time_zone`: found {value.time_zone!r}, which goes with times: {', '.join(TIMES)}")
        return value

    @model_validator(mode="after")
    def _enough(self) -> Columns:
        cpu_only = self.resource is not None and str(self.resource.constant).casefold() == "cpu"
        needed = {
            "submit_s": self.submit_s,
            "gpus": self.gpus or cpu_only,
            "run_s (or start_s and end_s)": self.run_s or (self.start_s and self.end_s),
        }
        missing = [name for name, there in needed.items() if not there]
        if missing:
            found = [name for name in type(self).model_fields if getattr(self, name) is not None]
            raise ValueError(f"found {', '.join(found) or 'none'}; needs {', '.join(missing)} as well")
        return self


class Filter(Block):
    """Keep only the rows whose column meets a condition; the others are counted."""

    column: str
    """Column of the file."""
    op: Literal["==", "!=", "<", "<=", ">", ">=", "in"]
    """Comparison."""
    value: str | int | float | bool | list[str | int | float | bool]
    """What it is compared with: a list for `in`, one value for the others."""

    @field_validator("value")
    @classmethod
    def _suits_op(cls, value: Any, info: ValidationInfo) -> Any:
        op = info.data.get("op")
        if op == "in" and not isinstance(value, list):
            raise ValueError(f"found {value!r}; `in` needs a list of values")
        if op not in (None, "in") and isinstance(value, list):
            raise ValueError(f"found a list; `{op}` needs one value (`in` takes several)")
        return value


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
    """Where this was published."""


class Predictions(Block):
    """A file of published predictions, for the estimate `published`."""

    path: str
    """A CSV file with a header and the column job_id, as in the trace (gzip or not; `${VARIABLE}` is replaced from the environment; relative to the root)."""
    run_s: str | None = None
    """Its column of predicted run times, s …"""
    gpu_time_s: str | None = None
    """… or of predicted GPU times (run time × GPUs), GPU-seconds."""

    @model_validator(mode="after")
    def _one_value(self) -> Predictions:
        if (self.run_s is None) == (self.gpu_time_s is None):
            found = "none" if self.run_s is None else "both"
            raise ValueError(f"found {found} of `run_s` and `gpu_time_s`, expected one")
        return self


class TraceConfig(Block):
    """One trace: its source, its format and what to keep of it."""

    title: str
    """Name in tables and figures."""
    data: Literal["synthetic", "sample", "full", "own"]
    """What kind of data the rows are; every table and figure says it."""
    format: Format
    """Layout of the raw files."""
    time_zone: Zone = "UTC"
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
    """… or read this file or folder (`${VARIABLE}` is replaced from the environment; relative to the root)."""
    part: str | None = None
    """Format `helios`: the cluster, Earth, Saturn, Uranus, Venus or all (required). `alibaba2023`: the variant of the
    pod list where a folder has several (default, gpuspec33, …). `authors`: the variant of the columns where it cannot
    be detected, readme or reader. With `synthetic`, the log to generate (`swf`: HPC2N or SDSC-SP2, required; `sacct`:
    example, the default, or finetuning)."""
    gpu_share: GpuShare = "round_up"
    """How fractions of a GPU become whole GPUs: the job's total is rounded up, or the job is left out (formats `csv`,
    `rows`, `alibaba2020`, `alibaba2023`, `authors`)."""
    columns: Columns | None = None
    """Format `csv`: column of the job table → column of the file (a name alone is short for `{column: name}`)."""
    filter: list[Filter] = []
    """Format `csv`: rows to keep."""
    predictions: Predictions | None = None
    """Published predictions of run times or GPU times, for the estimate `published`."""
    recorded_on: RecordedOn | None = None
    """The system on which the trace was recorded (for a generated trace, the one it imitates)."""
    licence: str | None = None
    """Licence of the data."""
    citation: str | None = None
    """Source to cite."""

    @model_validator(mode="after")
    def _consistent(self) -> TraceConfig:
        if self.start and self.end and self.start >= self.end:
            raise ValueError(f"`start` ({self.start}) must come before `end` ({self.end})")
        given = [k for k in ("synthetic", "downloads", "path") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of `synthetic`, `downloads`, `path`; found {given or 'none'}")
        if self.format == "csv" and self.columns is None:
            raise ValueError(
                "format `csv` needs `columns`: of the job table → of the file, submit_s, gpus and run_s at least"
            )
        if self.format != "csv" and self.columns is not None:
            raise ValueError(f"`columns` goes with format `csv`; found `{self.format}`")
        if self.filter and self.format != "csv":
            raise ValueError(f"`filter` goes with format `csv`; found `{self.format}`")
        if self.gpu_share != "round_up" and self.format in WHOLE:
            raise ValueError(f"`gpu_share`: jobs of format `{self.format}` ask for whole GPUs; leave it out")
        if self.synthetic is not None and self.format not in GENERATED:
            raise ValueError(f"format `{self.format}` reads a file of yours; `synthetic` makes {', '.join(GENERATED)}")
        if self.format == "helios" and self.part is None:
            raise ValueError("format `helios` needs `part` (Earth, Saturn, Uranus, Venus or all)")
        if self.format == "swf" and (self.synthetic is None) != (self.part is None):
            raise ValueError("format `swf` needs `part` (HPC2N or SDSC-SP2) with `synthetic`, and only with it")
        if self.format == "sacct" and self.synthetic is None and self.part is not None:
            raise ValueError("format `sacct` has `part` (example or finetuning) with `synthetic` only")
        if self.part is not None and self.format not in PARTS:
            raise ValueError(f"`part` goes with format {', '.join(f'`{f}`' for f in PARTS)}; found `{self.format}`")
        allowed = PARTS.get(self.format)
        if self.part is not None and allowed and self.part not in allowed:
            raise ValueError(f"`part`: found {self.part!r}; format `{self.format}` has {' or '.join(allowed)}")
        return self
