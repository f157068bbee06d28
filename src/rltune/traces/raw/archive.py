"""Read a file inside a folder of raw files: plain, gzipped, or inside a tar, tar.gz or zip (never unpacked).

Whether a file is gzipped is seen from its first bytes: browsers and mirrors unpack files and leave their names, or the
other way round.

Nothing is written to disk, so an archive cannot place files outside its folder, and a 7 GB member costs no space; links
inside archives are not followed. What expands absurdly (a few MB of zeros packed a thousandfold) is refused.
"""

import gzip
import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from rltune.errors import DataError
from rltune.traces.progress import Progress, size_text

MOST_EXPANSION = 200
"""Bytes out for each byte in. Traces pack 5- to 40-fold; DEFLATE can do 1,032-fold, and only on bytes all alike."""
FREE_BYTES = 1 << 26
"""Below this much nothing is refused: little files may be all alike."""
_GZIP = b"\x1f\x8b"
BROKEN = (EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile)
"""What damaged archives raise."""


@contextmanager
def open_member(folder: Path, member: str, archives: tuple[str, ...] = ()) -> Iterator[tuple[IO[bytes], str]]:
    """Yield (binary stream, how messages name it) of the file whose path ends in ``member``.

    Looked for, in this order: the file ``folder`` itself if it is no archive; a plain file below ``folder``; the same
    with ``.gz``; a member of one of the ``archives`` (names of tar.gz or zip files below ``folder``; a plain tar does
    for a tar.gz), or of ``folder`` itself if it is an archive.

    Raises:
        DataError: not found, or the archive is truncated, damaged or a bomb (also while the caller reads).
    """
    if (place := _locate(folder, member, archives)) is None:
        raise DataError(f"{folder}: expected {' or '.join([member, *archives])}, found {_content(folder)}.")
    path, inside = place
    where = f"{path}: {member}" if inside else str(path)
    try:
        with open(path, "rb") as file:
            if inside and path.suffix == ".zip":
                with zipfile.ZipFile(file) as archive, _zip_member(path, member, archive) as stream:
                    yield guarded(stream, file, where), where
                return
            watched = guarded(decompressed(file), file, where)
            if not inside:
                yield watched, where
                return
            # Streamed (mode r|): members are read in order and nothing before the right one is kept.
            with tarfile.open(fileobj=watched, mode="r|", bufsize=1 << 20) as archive:
                yield _tar_member(path, member, archive), where
    except BROKEN as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{where}: truncated or damaged ({reason}). Obtain {path.name} again.") from None
    except OSError as error:
        raise DataError(f"{where}: cannot be read ({error.strerror or error}).") from None


def decompressed(file: IO[bytes]) -> IO[bytes]:
    """The file's bytes, unpacked if they are gzip's."""
    gzipped = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    return cast(IO[bytes], gzip.open(file, "rb")) if gzipped else file


class _Watched(io.RawIOBase):
    """A stream that prints its progress every few seconds, and stops where it expands absurdly."""

    def __init__(self, stream: IO[bytes], packed: IO[bytes], where: str) -> None:
        self._stream, self._packed, self._where, self._out = stream, packed, where, 0
        self._size = os.fstat(packed.fileno()).st_size
        self._progress = Progress(f"reading {where}", self._size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        count = self._stream.readinto(buffer)
        self._out += count
        if self._out > FREE_BYTES and self._out > MOST_EXPANSION * self._size:
            found = f"{size_text(self._size)} expand to {size_text(self._out)} or more"
            raise DataError(
                f"{self._where}: {found}; expected at most {MOST_EXPANSION}-fold. Unpack it if you trust it."
            )
        self._progress.reached(self._packed.tell())
        return count


def guarded(stream: IO[bytes], packed: IO[bytes], where: str) -> IO[bytes]:
    """The stream, watched; ``packed`` is the file that it is unpacked from (or itself)."""
    return io.BufferedReader(_Watched(stream, packed, where), 1 << 16)


def _locate(folder: Path, member: str, archives: tuple[str, ...]) -> tuple[Path, bool] | None:
    """(path, whether ``member`` lies inside it as an archive); None where there is none."""
    if not folder.exists():
        raise DataError(f"{folder}: no such file or folder; expected it to hold {member}.")
    if folder.is_file():
        return folder, is_archive(folder)
    names = [(name, False) for name in (member, f"{member}.gz")]
    names += [(name, True) for archive in archives for name in (archive, archive.replace(".tar.gz", ".tar"))]
    for name, is_packed in names:
        for path in filter(Path.is_file, sorted(folder.rglob(name))):
            return path, is_packed
    return None


def _content(folder: Path) -> str:
    """The first names in a folder, for messages."""
    return ", ".join(sorted(p.name for p in folder.iterdir())[:10]) or "nothing"


def holds(folder: Path, member: str, archives: tuple[str, ...] = ()) -> bool:
    """Whether :func:`open_member` would find a file to open there."""
    return _locate(folder, member, archives) is not None


def one_file(folder: Path, patterns: tuple[str, ...], what: str) -> Path:
    """The one file: ``folder`` itself if it is a file, else the only one in it whose name fits one of ``patterns``.

    Raises:
        DataError: there is none, or more than one.
    """
    if folder.is_file():
        return folder
    if not folder.exists():
        raise DataError(f"{folder}: no such file or folder; expected {what}.")
    found = sorted({p for pattern in patterns for p in folder.rglob(pattern) if p.is_file()})
    if len(found) == 1:
        return found[0]
    if not found:
        raise DataError(f"{folder}: expected {what} ({' or '.join(patterns)}), found {_content(folder)}.")
    names = ", ".join(p.name for p in found[:10])
    raise DataError(f"{folder}: found {len(found)} files, {names}; expected one. Give the file itself as `path`.")


def is_archive(path: Path) -> bool:
    """Whether a file of that name holds other files."""
    return path.name.endswith((".tar", ".tar.gz", ".tgz", ".zip"))


def _tar_member(path: Path, member: str, archive: tarfile.TarFile) -> IO[bytes]:
    for entry in archive:
        if entry.isfile() and f"/{entry.name}".endswith(f"/{member}"):
            return cast(IO[bytes], archive.extractfile(entry))
    raise DataError(f"{path}: holds no file {member}; is it the right archive?")


def _zip_member(path: Path, member: str, archive: zipfile.ZipFile) -> IO[bytes]:
    for info in archive.infolist():
        is_link = stat.S_ISLNK(info.external_attr >> 16)  # its text is the path that it points to
        if f"/{info.filename}".endswith(f"/{member}") and not is_link:
            try:
                return archive.open(info)
            except RuntimeError as error:  # encrypted, or packed in an unknown way
                raise DataError(f"{path}: {member}: cannot be unpacked ({error}); unpack it manually.") from None
    raise DataError(f"{path}: holds no file {member}; it holds {', '.join(map(repr, archive.namelist()[:10]))}.")
