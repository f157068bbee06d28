"""A table of the traces in config/traces, and whether their files are there."""

from pathlib import Path

from rltune.config.load import load_trace
from rltune.config.trace import TraceConfig
from rltune.config.trace_files import SHIPPED, local_file, manual_file
from rltune.errors import RLTuneError
from rltune.traces.fetch import Manifest, files_in
from rltune.traces.fetch.download import DATA
from rltune.traces.progress import size_text

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
    files, state = _state(name, trace, root, cache / "raw" / name)
    size = size_text(_size(files)) if files else "unknown"
    return name, trace.title, trace.data, trace.format, size, state, trace.licence or "-"


def _state(name: str, trace: TraceConfig, root: Path, folder: Path) -> tuple[list[Path], str]:
    """The files if all are there, and whether they are."""
    if trace.path is not None:
        try:
            return files_in(local_file(name, trace.path, root)), "there"
        except RLTuneError:
            return [], f"not there: {trace.path}"
    if trace.downloads is None:
        files = [folder / file for file in Manifest.read(folder).files]
        return (files, "there") if files and all(map(Path.is_file, files)) else ([], "made when needed")
    files = [folder / item.file for item in trace.downloads]
    if all(item.url.startswith(SHIPPED) for item in trace.downloads):
        files = [DATA / item.url.removeprefix(SHIPPED) for item in trace.downloads]
    places = [file if file.is_file() else manual_file(name, file.name) for file in files]
    there = [place for place in places if place is not None]
    if len(there) == len(files):
        return there, "there"
    return [], f"{len(there)} of {len(files)} there" if there else "to download"


def _size(files: list[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def summary(name: str, trace: TraceConfig, where: Path) -> str:
    """One line on what was obtained: how many files, their size, where they lie and came from."""
    manifest = Manifest(folder=where) if trace.path is not None else Manifest.read(where)
    files = [where / file for file in manifest.files] or files_in(where)
    origins = ", ".join(sorted({entry.origin for entry in manifest.files.values() if entry.origin}))
    count = f"{len(files)} file{'s' if len(files) != 1 else ''}, {size_text(_size(files))}"
    return f"{name}: {count}, in {where}{f', from {origins}' if origins else ''}"
