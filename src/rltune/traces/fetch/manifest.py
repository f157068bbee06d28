"""What is known of a folder's files: ``manifest.json``, and the lock of whoever changes the folder."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rltune.files import read_json, write_json
from rltune.traces.fetch.progress import say

MANIFEST = "manifest.json"


@dataclass
class Manifest:
    """The checksum of every file of a folder, how it came, and what it looked like when it was last read in full."""

    folder: Path
    made: dict[str, Any] = field(default_factory=dict)
    """A generated trace: generator, format, seed, jobs."""
    files: dict[str, str] = field(default_factory=dict)
    """File → sha256."""
    stamps: dict[str, list[int]] = field(default_factory=dict)
    """File → its bytes and mtime (ns) when that sha256 was taken: while they hold, the file is not read again."""
    origins: dict[str, str] = field(default_factory=dict)
    """File → the address or place it came from."""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The folder's manifest; an empty one where there is none or it is broken."""
        try:
            value = dict(read_json(folder / MANIFEST))
            files, stamps, origins = (dict(value.pop(key, {})) for key in ("files", "stamps", "origins"))
        except (FileNotFoundError, TypeError, ValueError):
            return cls(folder)
        return cls(folder, value, files, stamps, origins)

    def write(self) -> None:
        """Write ``manifest.json``."""
        known = {"files": self.files, "stamps": self.stamps, "origins": self.origins}
        write_json(self.folder / MANIFEST, {**self.made, **known})

    def unchanged(self, name: str, expected: str | None = None) -> bool:
        """Whether a file has the bytes and mtime it had when it was recorded, and ``expected`` as its sha256."""
        path = self.folder / name
        right = name in self.files and expected in (None, self.files[name])
        return right and path.is_file() and self.stamps.get(name) == _stamp(path)

    def intact(self, name: str) -> bool:
        """Whether a file is what it was when it was recorded; reads it in full."""
        path = self.folder / name
        return path.is_file() and sha256(path) == self.files.get(name)

    def record(self, name: str, checksum: str, origin: str | None) -> None:
        """Note a file that has just been read in full."""
        self.files[name] = checksum
        self.stamps[name] = _stamp(self.folder / name)
        if origin is not None:
            self.origins[name] = origin


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only process that obtains files for a folder; wait for another one, and say so."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f".{folder.name}.lock"), "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is obtaining files for {folder}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]
