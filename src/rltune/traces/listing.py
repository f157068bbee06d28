"""What traces there are: a table of the files in config/traces, and whether their data are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rltune.config.load import load_trace
from rltune.config.trace import Download, TraceConfig
from rltune.errors import RLTuneError
from rltune.traces.fetch import Manifest, by_hand, given_file
from rltune.traces.progress import size_text

UNKNOWN = "unknown"
"""Size of files that are not there yet."""
HEADER = ("name", "title", "data", "format", "size", "files", "licence")


def listing(root: Path, cache: Path) -> str:
    """All traces as a table, a line each, and below it what to cite. Nothing is read but names, sizes and manifests.

    Raises:
        ConfigError: a trace's configuration is wrong.
    """
    stems = sorted(path.stem for path in (root / "config" / "traces").glob("*.yaml"))
    traces = {name: load_trace(name, root) for name in stems if not name.endswith(".example")}  # those are to copy
    rows = [HEADER, *(_row(name, trace, root, cache) for name, trace in traces.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    cited: dict[str, list[str]] = {}
    for name, trace in traces.items():
        if trace.citation:
            cited.setdefault(trace.citation, []).append(name)
    return "\n".join([*lines, "", *(f"cite for {', '.join(users)}: {text}" for text, users in cited.items())])


def _row(name: str, trace: TraceConfig, root: Path, cache: Path) -> tuple[str, ...]:
    size, files = _state(name, trace, root, cache / "raw" / name)
    known = size_text(size) if size else UNKNOWN
    return name, trace.title, trace.data, trace.format, known, files, trace.licence or "-"


def _state(name: str, trace: TraceConfig, root: Path, folder: Path) -> tuple[int, str]:
    """(bytes in all, 0 where not known; whether the files are there)."""
    if trace.path is not None:
        try:
            return sum(map(_size, _files(given_file(name, trace.path, root)))), "there"
        except RLTuneError:
            return 0, f"not there: {trace.path}"
    items = trace.downloads or []
    places = [_place(name, item, folder) for item in items] or [folder / file for file in Manifest.read(folder).files]
    there = [place for place in places if place is not None and place.is_file()]
    if places and len(there) == len(places):
        return sum(map(_size, there)), "there"
    some = f"{len(there)} of {len(items)} there" if there else "to download"
    return 0, some if items else "made when needed"


def _place(name: str, item: Download, folder: Path) -> Path | None:
    """Where a file lies; None where it does not."""
    path = folder / item.file
    return path if path.is_file() else by_hand(name, item.file)


def _size(path: Path) -> int:
    return path.stat().st_size


def _files(path: Path) -> Iterator[Path]:
    """A file, or the files of a folder."""
    return iter([path]) if path.is_file() else (p for p in path.rglob("*") if p.is_file())


def summary(name: str, trace: TraceConfig, where: Path) -> str:
    """One line on what was obtained: how many files, their size, where they lie and came from."""
    manifest = Manifest.read(where if where.is_dir() else where.parent)
    own = trace.path is not None
    files = list(_files(where)) if own else [where / file for file in manifest.files]
    origins = sorted({entry.origin for entry in manifest.files.values() if entry.origin and not own})
    count = f"{len(files)} file{'s' if len(files) != 1 else ''}, {size_text(sum(map(_size, files)))}"
    came = f", from {', '.join(origins)}" if origins else ""
    return f"{name}: {count}, in {where}{came}"
