"""Recognise a raw file by its first bytes and lines: the format that reads it, or a published table without jobs."""

import csv
import io
import itertools
import re
import tarfile
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow.parquet

from rltune.traces.guess import guess_columns
from rltune.traces.raw.archive import decompressed, guarded, is_archive, open_member
from rltune.traces.raw.csv_text import delimiter_of
from rltune.traces.raw.encoding import Utf8
from rltune.traces.readers import alibaba2020, alibaba2023, authors, helios, rows, sacct, swf

MAX_ROWS = 200_000
"""Rows looked at; enough for quantiles, and a 7 GB file answers in seconds."""
HEAD = 1 << 16
"""Bytes by which a text is recognised."""
MAX_ENTRIES = 5_000
"""Entries of a JSON list looked at: as Python objects they take six times their bytes."""
_LENIENT: Any = {
    "nrows": MAX_ROWS,
    "on_bad_lines": "skip",
    "encoding_errors": "replace",
    "low_memory": False,
    "skipinitialspace": True,
    "index_col": False,
}
"""A first look only: cleaning counts the lines that are left out."""
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of what is not unpacked here."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?|")
_PAI_STATUS = {"Terminated", "Failed", "Running", "Waiting"}
_PAI_MACHINE = ["machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"]
_HEADERS = (  # columns a table with a header is known by
    ({"job_id", "gpu_num", "state", "submit_time", "duration", "queue"}, "Helios cluster_log.csv", "helios"),
    (set(alibaba2023.COLUMNS), "Alibaba 2023 pod list (openb)", "alibaba2023"),
    ({"sn", "cpu_milli", "memory_mib", "gpu", "model"}, "Alibaba 2023 node list (openb): a cluster, not jobs", None),
    ({"date", "total"}, "Helios cluster_gpu_number.csv: a cluster, not jobs", None),
    ({"machineId", "number of GPUs", "single GPU mem"}, "Philly cluster_machine_list: a cluster, not jobs", None),
)
_MEMBERS = (  # members an archive is known by
    (re.compile(r"(^|/)cluster_job_log$"), "philly", "Philly archive"),
    (re.compile(r"(^|/)(?P<part>Earth|Saturn|Uranus|Venus)/cluster_log\.csv$"), "helios", "Helios archive"),
    (re.compile(r"(^|/)pai_(task|job)_table\.csv$"), "alibaba2020", "Alibaba PAI archive"),
)


@dataclass
class Found:
    """What a file is."""

    name: str
    """In words."""
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The rows looked at; empty for an archive."""
    more: bool = False
    """Whether there may be more rows."""
    format: str | None = None
    """``TraceConfig.format`` that reads it; None: none does."""
    members: list[str] = field(default_factory=list)
    """Files in an archive."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields that the trace's configuration needs in addition to its format."""


def sniff(path: Path) -> Found:
    """What ``path`` is.

    Raises:
        DataError: it expands absurdly, has a line that no trace has, or is what another of Slurm's commands writes.
        Exception: whatever the libraries raise for a damaged file.
    """
    with open(path, "rb") as file:
        magic = file.read(6)
    if packed_by := next((name for mark, name in _PACKED.items() if magic.startswith(mark)), None):
        raise ValueError(f"it is packed by {packed_by}; unpack it, or pack it by gzip")
    if magic.startswith(b"PAR1"):
        return _parquet(path)
    if magic.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            return _archive([n for n in archive.namelist() if not n.endswith("/")])
    with open(path, "rb") as packed:
        unpacked = decompressed(packed)
        if path.name.endswith((".tar.gz", ".tgz", ".tar")):
            return _archive(_tar_members(guarded(unpacked, packed, str(path))))
        head = io.BufferedReader(Utf8(guarded(unpacked, packed, str(path)), str(path))).read(HEAD)
        unpacked.seek(0)
        return _text(head, guarded(unpacked, packed, str(path)), path)


def first_records(raw: Path, most: int = 3) -> pd.DataFrame:
    """The first records of the largest raw file there is (of PAI the tasks, which are its jobs), as they are.

    ``raw``: the file, or the folder of them, also in archives. Raises as :func:`sniff`.
    """
    path = max((p for p in (raw, *raw.rglob("*")) if p.is_file()), key=lambda p: ("task" in p.name, p.stat().st_size))
    if path.suffix == ".parquet":
        return next(pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=most)).to_pandas()
    members = sniff(path).members if is_archive(path) else []
    with open_member(path, next(filter(_known, members), path.name)) as (file, where):
        head = io.BufferedReader(Utf8(file, where)).read(HEAD)
    if head.lstrip()[:1] == b"[":
        return pd.DataFrame(itertools.islice(Utf8(io.BytesIO(head), where).entries(), most))
    head = head[: head.rfind(b"\n") + 1]
    return _text(head, io.BytesIO(head), path).table.head(most)


def _parquet(path: Path) -> Found:
    file = pyarrow.parquet.ParquetFile(path)
    batch = next(file.iter_batches(batch_size=MAX_ROWS), None)
    table = batch.to_pandas() if batch is not None else pd.DataFrame()
    known = b"rltune" in (file.schema_arrow.metadata or {})
    raw = not known and set(rows.NEEDED) <= set(table)
    name = "canonical job table" if known else "raw columns (parquet)" if raw else "parquet"
    return Found(name, table, file.metadata.num_rows > len(table), "rows" if raw else None)


def _tar_members(file: IO[bytes]) -> list[str]:
    """Names of files, up to the first that is known: what follows it in an archive of gigabytes can wait."""
    names = []
    with tarfile.open(fileobj=file, mode="r|*") as archive:
        for entry in archive:
            if entry.isfile():
                names.append(entry.name)
                if _known(entry.name) and "cluster_log" not in entry.name:
                    break
    return names


def _known(member: str) -> tuple[re.Match[str], str, str] | None:
    return next(((m, f, n) for p, f, n in _MEMBERS if (m := p.search(member))), None)


def _archive(members: list[str]) -> Found:
    known = [k for k in map(_known, members) if k]
    if not known:
        return Found("archive of no known trace", members=members)
    _, format_name, name = known[0]
    parts = sorted({k[0]["part"] for k in known if "part" in k[0].groupdict()})
    if not parts:
        return Found(name, format=format_name, members=members)
    part = "Venus" if "Venus" in parts else parts[0]
    return Found(f"{name} ({', '.join(parts)})", format=format_name, members=members, fields={"part": part})


def _text(head: bytes, file: IO[bytes], path: Path) -> Found:
    text = head.decode("utf-8", "replace").lstrip()
    if not text:
        raise pd.errors.EmptyDataError("the file is empty")
    if text.count("\ufffd") > 0.3 * len(text):
        raise ValueError("it is not text")
    if text[0] in "[{":
        return _json(Utf8(file, str(path)))
    file = io.BufferedReader(Utf8(file, str(path)), 1 << 16)
    lines = text.splitlines()
    line = next((x for x in lines if x.strip() and x.lstrip()[0] != ";"), "")
    if "\0" in line:
        raise ValueError("it is not text, its first line holds zero bytes; save it as UTF-8")
    if len(line.split()) == len(swf.COLUMNS) and "," not in line:
        table = _read(file, sep=r"\s+", comment=";", names=swf.COLUMNS)
        zone = swf.header(lines).get("TimeZoneString")
        return _found("SWF (Standard Workload Format)", table, "swf", {"time_zone": zone} if zone else {})
    if between := sacct.delimiter(line):
        name = "Slurm sacct " + ("--parsable2" if between == "|" else f"with {between!r} between fields")
        table = _read(file, sep=between, quoting=csv.QUOTE_MINIMAL if sacct.is_quoted(line) else csv.QUOTE_NONE)
        return _found(name, table.rename(columns=lambda column: column.strip().strip('"')), "sacct")
    return _headerless(line, file) or _with_header(line, file, path)


def _read(file: IO[Any], **how: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # rows with more fields than the header
        return pd.read_csv(file, **_LENIENT, **how)


def _found(name: str, table: pd.DataFrame, format: str | None = None, fields: dict[str, Any] | None = None) -> Found:
    return Found(name, table, len(table) == MAX_ROWS, format, fields=fields or {})


def _json(file: Utf8) -> Found:
    entries = list(itertools.islice(file.entries(), MAX_ENTRIES))
    jobs = [entry for entry in entries if isinstance(entry, dict)]
    table = pd.json_normalize(jobs, max_level=0)
    if "attempts" in table:
        table["attempts"] = table["attempts"].map(lambda a: len(a) if isinstance(a, list) else None)
    native = {"jobid", "attempts", "submitted_time"} <= set(table.columns)
    name, format_name = ("Philly cluster_job_log (JSON)", "philly") if native else ("JSON list", None)
    if others := len(entries) - len(jobs):
        name += f"; {others} entries left out, no objects"
    return Found(name, table, len(entries) == MAX_ENTRIES, format_name)


def _headerless(line: str, file: IO[bytes]) -> Found | None:
    """The tables without a header row: PAI's five and the authors' CSVs."""
    fields = [f.strip() for f in line.split(",")]
    numbers = [_NUMBER.fullmatch(f) for f in fields]
    pai, more = alibaba2020, "Alibaba PAI {} table (no header){}".format
    status = _PAI_STATUS.intersection
    tables = [
        (pai.TASK_COLUMNS, more("task", ""), "alibaba2020", status(fields[3:4])),
        (pai.JOB_COLUMNS, more("job", ""), "alibaba2020", status(fields[3:4])),
        (pai.INSTANCE_COLUMNS, more("instance", ": not needed"), None, status(fields[5:6])),
        (_PAI_MACHINE, more("machine", ": a cluster, not jobs"), None, all(numbers[2:]) and not numbers[0]),
        (pai.TAG_COLUMNS, more("group", ": not needed"), None, len(fields[0]) > 20 and not any(numbers[:4])),
    ]
    for variant, names in authors.VARIANTS.items():
        title = f"the authors' formatted CSV (no header), {variant} variant"
        tables.append((names, title, "authors", all(numbers[1:5])))
    for names, title, format_name, fits in tables:
        if len(fields) == len(names) and fields[0] != names[0] and fits:
            return _found(title, _read(file, names=names), format_name)
    return None


def _with_header(line: str, file: IO[bytes], path: Path) -> Found:
    sep = delimiter_of(line)
    guessed = guess_columns(list(_read(io.StringIO(line), sep=sep).columns))
    texts = {column: "str" for name, column in guessed.items() if name == "status"}  # states may be numbers, with gaps
    table = _read(file, sep=sep, dtype=texts)
    names = [str(c).strip() for c in table.columns]
    for mark, title, format_name in _HEADERS:
        if mark <= set(names):
            part = path.parent.name if path.parent.name in helios.CLUSTERS else "Venus"
            return _found(title, table, format_name, {"part": part} if format_name == "helios" else {})
    return _found("CSV with a header", table, "csv")
