"""Read a file inside a folder of raw files: lying there plain, gzipped, or inside a tar.gz or zip (never unpacked).

Nothing is written to disk, so an archive cannot place files outside its folder, and a 7 GB member costs no space.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rltune.errors import DataError

_BROKEN = (EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile)


@contextmanager
def open_member(folder: Path, member: str, archives: tuple[str, ...] = ()) -> Iterator[tuple[IO[bytes], str]]:
    """Yield (binary stream, how messages name it) of the file whose path ends in ``member``.

    Looked for, in this order: the file ``folder`` itself if it is no archive; a plain file below ``folder``; the same
    with ``.gz``; a member of one of the ``archives`` (names of tar.gz or zip files below ``folder``), or of ``folder``
    itself if it is an archive.

    Raises:
        DataError: not found, or the archive is truncated or damaged (also while the caller reads).
    """
    path, inside = _locate(folder, member, archives)
    where = f"{path}: {member}" if inside else str(path)
    try:
        if not inside:
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rb") as stream:
                yield stream, where
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(_member_name(path, member, archive)) as stream:
                yield stream, where
        else:
            # Streamed (mode r|gz): members are read in order and nothing before the one wanted is kept.
            with tarfile.open(path, mode="r|gz") as archive:
                for entry in archive:
                    if entry.isfile() and _ends_with(entry.name, member):
                        stream = archive.extractfile(entry)
                        assert stream is not None
                        yield stream, where
                        break
                else:
                    raise DataError(f"{path}: holds no file {member}; is it the right archive?")
    except _BROKEN as error:
        raise DataError(
            f"{where}: truncated or damaged ({type(error).__name__}: {error}). "
            f"Delete {path.name} and obtain it again."
        ) from None
    except OSError as error:
        raise DataError(f"{where}: cannot be read ({error.strerror or error}).") from None


def _locate(folder: Path, member: str, archives: tuple[str, ...]) -> tuple[Path, bool]:
    """(path, whether ``member`` lies inside it as an archive)."""
    if not folder.exists():
        raise DataError(f"{folder}: no such file or folder; expected it to hold {member}.")
    if folder.is_file():
        return folder, _is_archive(folder)
    name = member.rsplit("/", 1)[-1]
    plain = [p for pattern in (name, f"{name}.gz") for p in sorted(folder.rglob(pattern))]
    for path in plain:
        if path.is_file() and _ends_with(path.relative_to(folder).as_posix().removesuffix(".gz"), member):
            return path, False
    for archive in archives:
        for path in sorted(folder.rglob(archive)):
            return path, True
    wanted = " or ".join([member, *archives])
    present = ", ".join(sorted(p.name for p in folder.iterdir())[:10]) or "nothing"
    raise DataError(f"{folder}: expected {wanted}, found {present}.")


def _is_archive(path: Path) -> bool:
    return path.name.endswith((".tar.gz", ".tgz", ".zip"))


def _ends_with(path: str, member: str) -> bool:
    return path == member or path.endswith("/" + member)


def _member_name(path: Path, member: str, archive: zipfile.ZipFile) -> str:
    for name in archive.namelist():
        if _ends_with(name, member):
            return name
    found = ", ".join(archive.namelist()[:10])
    raise DataError(f"{path}: holds no file {member}; it holds {found}.")
