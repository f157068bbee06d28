"""Bytes to UTF-8: the mark at a file's beginning says UTF-8, UTF-16 or UTF-32; lines that are not UTF-8 are Latin-1."""

from __future__ import annotations

import codecs
import io
from typing import IO

from rltune.errors import DataError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like UTF-16's, so it is tried first
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BUFFER = 1 << 16


def as_utf8(stream: IO[bytes], where: str) -> IO[bytes]:
    """The stream without its byte-order mark, UTF-16 and UTF-32 turned into UTF-8; no mark changes nothing."""
    head = b""
    while len(head) < 4 and (more := stream.read(4 - len(head))):
        head += more
    for mark, name in _MARKS:
        if head.startswith(mark):
            rest = _Joined(head[len(mark) :], stream)
            return io.BufferedReader(rest if name == "utf-8" else _Recoded(rest, name, where), _BUFFER)
    return io.BufferedReader(_Joined(head, stream), _BUFFER)


def latin_1_lines(block: bytes) -> tuple[bytes, int]:
    """A block of lines as valid UTF-8, and how many of its lines were not: Latin-1, which has no gaps, reads those."""
    try:
        if not block.isascii():
            block.decode("utf-8")
        return block, 0
    except UnicodeDecodeError:
        pass
    lines, odd = block.split(b"\n"), 0
    for i, line in enumerate(lines):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            lines[i] = line.decode("latin-1").encode("utf-8")
            odd += 1
    return b"\n".join(lines), odd


class _Joined(io.RawIOBase):
    """Bytes already read, then the stream they were read from."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        block = self._head[: len(buffer)] or self._stream.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(block)] = block
        return len(block)


class _Recoded(io.RawIOBase):
    """A stream in another encoding, read as UTF-8."""

    def __init__(self, stream: IO[bytes], name: str, where: str) -> None:
        self._stream, self._name, self._where = stream, name, where
        self._decoder = codecs.getincrementaldecoder(name)()
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while not self._left:
            chunk = self._stream.read(len(buffer))
            try:
                self._left = self._decoder.decode(chunk, final=not chunk).encode("utf-8")
            except UnicodeError as error:
                raise DataError(
                    f"{self._where}: begins with the mark of {self._name.upper()} and is not ({error}). Save it as "
                    "UTF-8, or obtain it again."
                ) from None
            if not chunk:
                break
        block, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(block)] = block
        return len(block)
