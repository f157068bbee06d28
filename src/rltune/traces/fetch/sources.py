"""Obtain a trace's raw files: generate them, download them, or find them where the configuration or the user says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import filelock
from pydantic import BaseModel, Field

from rltune.config.trace import Download, TraceConfig
from rltune.config.trace_files import MANUAL_FILES, SHIPPED, local_file, manual_file
from rltune.errors import DataError
from rltune.files import read_json, write_json
from rltune.traces.fetch.download import Fault, check, download, parts_of, sha256
from rltune.traces.progress import say
from rltune.traces.synthetic import GENERATOR_VERSION, generate

MANIFEST = "manifest.json"


class Entry(BaseModel):
    """A file as it was obtained."""

    sha256: str
    origin: str = ""
    """The address or place it came from."""


class Manifest(BaseModel):
    """``manifest.json`` of a folder: what is known of its files."""

    folder: Path = Field(exclude=True)
    made: dict[str, Any] = {}
    """A generated trace: generator, format, part, seed, jobs."""
    files: dict[str, Entry] = {}

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The folder's manifest; an empty one where there is none or it is broken."""
        try:
            return cls(**{**read_json(folder / MANIFEST), "folder": folder})
        except (OSError, TypeError, ValueError):
            return cls(folder=folder)

    def write(self) -> None:
        """Write ``manifest.json``."""
        write_json(self.folder / MANIFEST, self.model_dump())

    def intact(self, name: str) -> bool:
        """Whether a file is what it was when it was obtained."""
        return (self.folder / name).is_file() and sha256(self.folder / name) == self.files[name].sha256


def obtain(name: str, trace: TraceConfig, cache: Path, root: Path) -> Path:
    """The folder of a trace's raw files (or the one file ``path`` names), obtained if it is not there yet.

    Args:
        name: the trace's name (stem of its configuration file).
        trace: its configuration.
        cache: the project's cache folder.
        root: the project's root, to which a relative ``path`` is relative.

    Raises:
        ConfigError: a variable in ``path`` is not set.
        DataError: the file is not there, cannot be downloaded, or is not the one expected.
    """
    if trace.path is not None:
        return local_file(name, trace.path, Path(root))
    folder = Path(cache) / "raw" / name
    if trace.synthetic is not None:
        return _generated(trace, folder)
    items = trace.downloads or []
    if all(_known(Manifest.read(folder), item) for item in items):
        return folder  # nothing is written, so a cache that is read-only will do
    with _locked(folder):
        manifest = _without_generated(folder)
        for item in items:
            if not _known(manifest, item):
                _downloaded(name, item, manifest)
                manifest.write()
    return folder


def _generated(trace: TraceConfig, folder: Path) -> Path:
    assert trace.synthetic is not None
    made = {"generator": GENERATOR_VERSION, "format": trace.format, "part": trace.part}
    made |= {"seed": trace.synthetic.seed, "jobs": trace.synthetic.jobs}

    def whole() -> bool:
        manifest = Manifest.read(folder)
        return manifest.made == made and all(map(manifest.intact, manifest.files))

    if not whole():
        with _locked(folder):
            if not whole():  # another process may have made it meanwhile
                _without_generated(folder)
                manifest = Manifest(folder=folder, made=made)
                for path in generate(trace.format, folder, trace.synthetic.seed, trace.synthetic.jobs, trace.part):
                    manifest.files[path.name] = Entry(sha256=sha256(path))
                manifest.write()
    return folder


def _without_generated(folder: Path) -> Manifest:
    """The folder's manifest; an empty one where the files were generated, by other settings: these go."""
    manifest = Manifest.read(folder)
    if not manifest.made:
        return manifest
    for file in filter(manifest.intact, manifest.files):
        (folder / file).unlink()
    return Manifest(folder=folder)


def _locked(folder: Path) -> filelock.FileLock:
    """A lock that makes this the only process that obtains files for a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(folder.with_name(f".{folder.name}.lock"))


def _known(manifest: Manifest, item: Download) -> bool:
    """Whether a file was obtained, is the right one, and has not changed since."""
    known = manifest.files.get(item.file)
    return not manifest.made and known is not None and known.sha256 == item.sha256 and manifest.intact(item.file)


def _downloaded(name: str, item: Download, manifest: Manifest) -> None:
    """Have one file in the manifest's folder: as it lies there, from the folder of manual downloads, downloaded.

    What the user put somewhere is never overwritten or removed, right or wrong; what ships is copied again.
    """
    path, before = manifest.folder / item.file, manifest.files.get(item.file)
    origin = before.origin if before else "put there manually"
    if item.url.startswith(SHIPPED):
        origin = download(name, item, manifest.folder)
    elif path.exists():
        _check_manual(name, item, path, manifest)
    elif (found := manual_file(name, item.file)) is not None:
        _check_manual(name, item, found, manifest)
        origin = str(found)
        path.unlink(missing_ok=True)  # a link to where a file was once
        path.symlink_to(found)
        say(f"{item.file}: {found} is used")
    else:
        origin = download(name, item, manifest.folder)
    for part in parts_of(path):  # of other addresses, or overtaken by a file of the user's
        part.unlink()
    manifest.files[item.file] = Entry(sha256=item.sha256, origin=origin)


def _check_manual(name: str, item: Download, path: Path, manifest: Manifest) -> None:
    """Raise DataError if what lies at ``path`` is not the right file, and leave it alone."""
    if not path.is_file():
        raise DataError(f"trace {name}: {path} is a folder, expected the file {item.file} as it was downloaded.")
    try:
        check(path, item)
    except Fault as wrong:
        otherwise = "remove it" if path.parent == manifest.folder else f"unset {MANUAL_FILES}"
        raise DataError(
            f"trace {name}: {path} is not the file expected: {wrong}. It was left as it is. "
            f"Put the right one there (from {item.url}), or {otherwise} for it to be downloaded."
        ) from None


def files_in(path: Path) -> list[Path]:
    """A file, or all files in a folder: when one of them was written again the folder's own time does not say."""
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
