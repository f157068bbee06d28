"""Look at a file before configuring it: its format, its columns, what cleaning makes of it, and the lines to use it."""

from pathlib import Path

import ijson
import pandas as pd
import pyarrow
import yaml
from pydantic import ValidationError

from rltune.config.messages import explain
from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.guess import guess_map, quoted
from rltune.traces.raw.archive import BROKEN
from rltune.traces.sniff import Found, sniff

MAX_BYTES = 1 << 30
"""Larger files are not cleaned here: that takes minutes."""
EXPECTED = "CSV, JSON, SWF, sacct text (each also .gz), parquet, or a tar.gz or zip of a known trace"
ZONES = {"philly": "America/Los_Angeles", "helios": "Asia/Shanghai", "alibaba2020": "Asia/Shanghai"}


def inspect_file(path: Path | str) -> str:
    """Describe a raw file, an archive, a CSV of your own, or a job table, in text.

    Where a reader takes the file, it is read and cleaned, and the audit is part of the text; the last part is a
    complete ``config/traces/NAME.yaml``.

    Raises:
        DataError: no such file, a folder, or a file none of the known formats can be read from.
    """
    path = Path(path)
    found = _sniffed(path)
    parts = [str(path), f"format: {found.name}"]
    if names := found.members:
        parts += [f"files in it: {len(names):,}" + (", among them" if len(names) > 20 else "")]
        parts += [f"  {name}" for name in names[:20]]
    elif found.table.empty:
        raise DataError(f"{path}: no rows in it; expected one row a job.")
    else:
        rows = f"first {len(found.table):,}" if found.more else f"{len(found.table):,}"
        parts += [f"rows: {rows}", "", _columns(found.table).to_string(index=False)]
    if found.format:
        config = _config(found, path)
        parts += ["", *_cleaned(config, path)]
        parts += ["", "A start for config/traces/NAME.yaml (check every line):", "", config]
    elif found.members:
        parts += ["", "Unpack it and inspect a file in it."]
    return "\n".join(parts) + "\n"


def suggested(path: Path) -> tuple[Found, str]:
    """(What a raw file is, the lines of config/traces/NAME.yaml that read it).

    Raises DataError as :func:`inspect_file`, and for a file that no reader takes.
    """
    found = _sniffed(path)
    if not found.format:
        raise DataError(f"{path}: {found.name}, which has no jobs that could be read. Expected a job log: {EXPECTED}.")
    return found, _config(found, path)


def _sniffed(path: Path) -> Found:
    if not path.is_file():
        kind = "a folder; name one file in it" if path.is_dir() else "no such file"
        raise DataError(f"{path}: {kind}. Expected a trace file: {EXPECTED}.")
    try:
        return sniff(path)
    except BROKEN as error:
        raise DataError(f"{path}: truncated or damaged ({error}); obtain the file again.") from None
    except (OSError, ValueError, RecursionError, ijson.JSONError, pyarrow.ArrowException) as error:
        text = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: cannot be read ({text}); expected {EXPECTED}.") from None


def _config(found: Found, path: Path) -> str:
    """The configuration that reads a file, as YAML; of a CSV a guess."""
    if found.format == "csv":
        return guess_map(found.table, path)
    source = path.resolve()
    if found.format == "alibaba2020":
        source = source.parent  # the job table and the task table are read together
    zone = found.fields.get("time_zone") or ZONES.get(found.format or "", "UTC")
    why = "  # sacct writes the cluster's wall clock: check" if found.format == "sacct" else ""
    if found.format == "swf":
        why = "  # as the log's header says" if "time_zone" in found.fields else "  # the header names none: check"
    lines = ["title: My cluster", "data: own", f"format: {found.format}", f"time_zone: {zone}{why}"]
    lines += [f"path: {quoted(str(source))}"]
    return "\n".join(lines + [f"{key}: {value}" for key, value in found.fields.items() if key != "time_zone"])


def _cleaned(config: str, path: Path) -> list[str]:
    """What reading and cleaning the file with a configuration gives, in lines."""
    if path.stat().st_size > MAX_BYTES:
        return [f"cleaning: not tried, as the file is over {MAX_BYTES >> 30} GB"]
    try:
        return _audit(clean_trace("NAME", TraceConfig(**yaml.safe_load(config)), path))
    except ValidationError as error:
        return [
            f"cleaning: not tried, as the lines below are not complete ({explain(error.errors(), TraceConfig, plugins=False)[0][1]})"
        ]
    except yaml.YAMLError as error:
        return [f"cleaning: not tried, as the lines below are no YAML ({' '.join(str(error).split())[:120]})"]
    except (ConfigError, DataError) as error:
        return [f"cleaning with the lines below fails: {error}"]


def _audit(clean: CleanTrace) -> list[str]:
    audit = clean.audit
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in clean.jobs["resource"].value_counts().items())
    lines = ["cleaning with the lines below:", f"  span: submissions from {clean.span}"]
    lines += [f"  rows read: {audit.rows_read:,}", f"  kept: {audit.rows_kept:,} ({kinds} jobs)"]
    lines += [f"  left out: {rows:,} {reason}" for reason, rows in audit.left_out.items()]
    return lines + [f"  noted (of all rows read): {rows:,} {remark}" for remark, rows in audit.noted.items()]


def _columns(table: pd.DataFrame) -> pd.DataFrame:
    """One row a column: type, share missing, least, median and greatest of numbers, an example."""
    example = [str(next(iter(table[name].dropna()), ""))[:40] for name in table]
    missing = table.isna().mean().map("{:.1%}".format)
    shown = pd.DataFrame({"column": table.columns, "type": table.dtypes.astype(str).values, "missing": missing.values})
    spread = table.select_dtypes("number").quantile([0, 0.5, 1]).T.map("{:.10g}".format)
    for at, name in ((0.0, "min"), (0.5, "median"), (1.0, "max")):
        shown[name] = [spread[at].get(column, "") for column in table]
    return shown.assign(example=example)
