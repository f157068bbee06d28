"""The partial file of a download: ``<file>.part``, and beside it what tells whether it may be continued."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rltune.files import read_json, write_json


@dataclass(frozen=True)
class Notes:
    """Where a partial file comes from, and the state of the file on the server then."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None
    """Bytes of the whole file, where the server said so."""

    @classmethod
    def of(cls, url: str, headers: Mapping[str, str], total: int | None) -> Notes:
        """Taken from an answer's headers."""
        return cls(url, headers.get("ETag"), headers.get("Last-Modified"), total)

    @property
    def validator(self) -> str | None:
        """What If-Range takes: a strong ETag, else the date (RFC 9110, 13.1.5)."""
        strong = self.etag if self.etag and not self.etag.startswith("W/") else None
        return strong or self.modified

    def same_file(self, other: Notes) -> bool:
        """Whether nothing both answers said differs."""
        pairs = ((self.etag, other.etag), (self.modified, other.modified), (self.total, other.total))
        return all(mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None)


class Part:
    """A partial file; it never has the name of a whole one."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(target.name + ".part")
        self._beside = target.with_name(target.name + ".part.json")

    @property
    def size(self) -> int:
        """Bytes there are."""
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def notes(self) -> Notes | None:
        """What is noted of it; None where nothing usable is."""
        try:
            return Notes(**read_json(self._beside))
        except (FileNotFoundError, TypeError, ValueError):
            return None

    def start(self, notes: Notes) -> None:
        """Begin anew: what was there is gone before the new file's notes are."""
        self.path.write_bytes(b"")
        write_json(self._beside, asdict(notes))

    def discard(self) -> None:
        """Remove it."""
        self.path.unlink(missing_ok=True)
        self._beside.unlink(missing_ok=True)

    def finish(self, target: Path) -> None:
        """Give a whole and checked file another name, which must not outlive its content in a power cut."""
        with open(self.path, "rb+") as file:
            os.fsync(file.fileno())
        self.path.replace(target)
        self._beside.unlink(missing_ok=True)
