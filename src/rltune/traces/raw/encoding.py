"""Text in any marked encoding, as UTF-8 with newlines as line ends; lines are counted and may not grow without end."""

from __future__ import annotations

import codecs
import io
import re
from typing import IO

from rltune.errors import DataError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like UTF-16's, so it is tried first
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHUNK = 1 << 20
NOT_UTF_8 = "byte not UTF-8, read as Latin-1"
LONGEST_LINE = 1 << 24
"""Bytes; no row of a trace comes near it, and a file without line ends must not fill the memory."""


class Utf8(io.RawIOBase):
    """A binary stream read as UTF-8, whatever mark it begins with; bytes that are not UTF-8 are read as Latin-1."""

    def __init__(self, stream: IO[bytes], where: str, limit: str | None = "line", csv: bool = False) -> None:
        """``limit``: what may not be longer than LONGEST_LINE, a line or an entry (of JSON); ``csv``: blanks between a
        delimiter and a quote are left out."""
        self._stream, self._where, self._left, self._ended, self._csv = stream, where, b"", False, csv
        self._held = ""
        self._limit = limit
        self._last = "\n"
        """The last character read."""
        self._length = 0
        """Characters since the last end of line, or since :meth:`entry`."""
        self.lines = self.empty = self.latin_1 = 0
        """Lines, of which empty; bytes read as Latin-1."""
        head = b""
        while len(head) < 4 and (more := stream.read(4 - len(head))):
            head += more
        mark, name = next((pair for pair in _MARKS if head.startswith(pair[0])), (b"", "utf-8"))
        self._head, self._name = head[len(mark) :], name
        decoder = codecs.getincrementaldecoder(name)(self._errors() if name == "utf-8" else "strict")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)

    def _errors(self) -> str:
        """The name of an error handler for this stream, which counts."""

        def latin_1(error: UnicodeError) -> tuple[str, int]:
            assert isinstance(error, UnicodeDecodeError)
            self.latin_1 += error.end - error.start
            return error.object[error.start : error.end].decode("latin-1"), error.end

        name = "rltune-latin-1"
        codecs.register_error(name, latin_1)
        return name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while not self._left and not self._ended:
            chunk = self._head or self._stream.read(_CHUNK)
            self._head, self._ended = b"", not chunk
            try:
                text = self._decoder.decode(chunk, final=self._ended)
            except UnicodeError as error:
                raise DataError(
                    f"{self._where}: begins with the mark of {self._name.upper()} and is not ({error}). Save it as "
                    "UTF-8, or obtain it again."
                ) from None
            text, self._held = self._held + text, ""
            if self._csv:
                text, self._held = self._unspaced(text)
            self._count(text)
            self._left = text.encode("utf-8", "replace")
        block, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(block)] = block
        return len(block)

    def _unspaced(self, text: str) -> tuple[str, str]:
        """The text without blanks between a delimiter and a quote, and the blanks at its end, of which it is not known."""
        whole = len(text) if self._ended else len(text.rstrip(" "))
        text, held = text[:whole], text[whole:]
        if ' "' in text:
            text = re.sub(r'(?<=[,;|\t\n]) +(?=")', "", self._last + text)[1:]
        return text, held

    def _count(self, text: str) -> None:
        if not text:
            return
        self.lines += text.count("\n")
        if "\n\n" in text or text[0] == self._last == "\n":
            self.empty += len(re.findall(r"(?<=\n)\n", self._last + text))
        self._last = text[-1]
        end = text.rfind("\n")
        self._length = len(text) - end - 1 if end >= 0 and self._limit == "line" else self._length + len(text)
        if self._limit and self._length > LONGEST_LINE:
            most = f"{LONGEST_LINE >> 20} MiB"
            what = f"a line is longer than {most}; expected one row a line"
            if self._limit == "entry":
                what = f"no entry of a list ends within {most}; expected a JSON list of jobs"
            raise DataError(f"{self._where}: {what}.")

    def entry(self) -> None:
        """Count again from zero: an entry of a JSON list is complete."""
        self._length = 0

    @property
    def open_end(self) -> bool:
        """Whether the text ends without an end of line."""
        return self._last != "\n"
