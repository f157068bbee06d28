"""Atomic writes: a file gets its name only when it is complete."""

import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECRET = 0o600
"""Mode of a file that its owner alone may open."""
UNREADABLE = (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, EOFError, OSError, RuntimeError)
"""What reading a damaged .npz file, or one of other contents, may raise."""


@contextmanager
def atomic_write(path: Path | str, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path next to ``path``; on success it is renamed to ``path``, on error it is removed.

    The extension is kept (``jobs.parquet`` → ``.jobs.<pid>.parquet``) because writers look at it. ``durable``: content and
    name are on the disk before this ends, so that a loss of power leaves the old file or the new one.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        if durable:
            _sync(temporary)
        os.replace(temporary, path)
        if durable:
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Flush a file's content, or a folder's names, to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_text(path: Path | str, text: str, durable: bool = False) -> None:
    """Write a text file atomically, UTF-8."""
    with atomic_write(path, durable) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write JSON atomically, keys in the given order, one trailing newline."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def read_json(path: Path | str) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))
