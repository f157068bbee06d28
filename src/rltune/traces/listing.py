"""What traces there are: a table of the files in config/traces, and whether their data are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rltune.config.load import load_trace
from rltune.config.trace import Download, TraceConfig
from rltune.errors import RLTuneError
from rltune.traces.fetch import Manifest, by_hand, given_file, part_bytes
from rltune.traces.fetch.progress import size_text

UNKNOWN = "unknown"
"""Size of files not there yet that no configuration states; their owners publish none to the byte."""
HEADER = ("name", "title", "data", "format", "size", "files", "licence")


def names(root: Path) -> list[str]:
    """Names of all traces, in order; examples to copy are none."""
    stems = (path.stem for path in (root / "config" / "traces").glob("*.yaml"))
    return sorted(stem for stem in stems if not stem.endswith(".example"))


def listing(root: Path, cache: Path) -> str:
    """All traces as a table, a line each, and below it what to cite. Nothing is read but names, sizes and manifests.

    Raises:
        ConfigError: a trace's configuration is wrong.
    """
    traces = {name: load_trace(name, root) for name in names(root)}
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
            found = given_file(name, trace.path, root)
        except RLTuneError:
            return 0, f"not there: {trace.path}"
        return sum(path.stat().st_size for path in _files(found)), "there"
    if trace.synthetic is not None:
        made = Manifest.read(folder).files
        return sum((folder / file).stat().st_size for file in made if (folder / file).is_file()), (
            "there" if made and all((folder / file).is_file() for file in made) else "made when needed"
        )
    assert trace.downloads is not None
    came = {file: entry.bytes for file, entry in Manifest.read(folder).files.items()}
    known = [item.bytes or _size(_place(name, item, folder)) or came.get(item.file, 0) for item in trace.downloads]
    return sum(known) if all(known) else 0, _downloads(name, trace.downloads, folder)


def _downloads(name: str, items: list[Download], folder: Path) -> str:
    places = {item.file: _place(name, item, folder) for item in items}
    wrong = [item.file for item in items if places[item.file] and item.bytes not in (None, _size(places[item.file]))]
    if wrong:
        return f"wrong size: {', '.join(wrong)}"
    there = sum(place is not None for place in places.values())
    if there == len(items):
        return "there"
    part = sum(part_bytes(folder / item.file) for item in items)
    begun = f", {size_text(part)} begun" if part else ""
    return (f"{there} of {len(items)} there" if there else "to download") + begun


def _place(name: str, item: Download, folder: Path) -> Path | None:
    path = folder / item.file
    return path if path.is_file() else by_hand(name, item.file)


def _size(path: Path | None) -> int:
    return path.stat().st_size if path is not None else 0


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
