"""Gzip, tar.gz and zip files whose bytes depend on their contents alone: fixed times, owners, order and compression."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

from rltune.files import atomic_write

_LEVEL = 6
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def write_tar_gz(path: Path, members: dict[str, bytes]) -> None:
    """Write ``members`` (name → content) as a tar.gz, in the order given."""
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        # An empty name and mtime 0 keep the file's own name and the clock out of the gzip header.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=_LEVEL) as zipped:
            with tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive:
                for name, content in members.items():
                    entry = tarfile.TarInfo(name)
                    entry.size, entry.mtime, entry.mode = len(content), 0, 0o644
                    archive.addfile(entry, io.BytesIO(content))


def write_gz(path: Path, content: bytes) -> None:
    """Write one file as gzip."""
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=_LEVEL) as zipped:
            zipped.write(content)


def write_zip(path: Path, members: dict[str, bytes]) -> None:
    """Write ``members`` (name → content) as a zip, in the order given."""
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, date_time=_ZIP_TIME)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, 0o644 << 16, 3
            archive.writestr(entry, content, compresslevel=_LEVEL)
