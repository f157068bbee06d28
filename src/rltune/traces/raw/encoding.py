"""Text in any marked encoding, as UTF-8 with newlines as line ends; lines are counted and may not grow without end."""

import codecs
import io
import re
from collections.abc import Iterator
from typing import IO, Any, cast

import ijson

from rltune.errors import DataError

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CHUNK = 1 << 20
_ESCAPED = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as surrogateescape writes them (PEP 383)."""
NOT_UTF_8 = "byte not UTF-8, read as Latin-1"
LONGEST = 1 << 24
"""Characters without the end of a line or of a JSON entry; no row of a trace comes near it."""


class Utf8(io.RawIOBase):
    """A binary stream converted to UTF-8 from the encoding of its mark; bytes that are not UTF-8 are read as Latin-1."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._where, self._left, self._ended = where, b"", False
        self._open = 0
        """Characters since the last end of a line or entry."""
        self._last = "\n"
        """The last character read."""
        self.lines = self.empty = self.latin_1 = 0
        """Lines, of which empty; bytes read as Latin-1."""
        self._stream = io.BufferedReader(cast(io.RawIOBase, stream))
        head = self._stream.peek(4)
        self._name = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "utf-8")
        errors = "surrogateescape" if self._name.startswith("utf-8") else "strict"
        decoder = codecs.getincrementaldecoder(self._name)(errors)
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while not self._left and not self._ended:
            chunk = self._stream.read(_CHUNK)
            self._ended = not chunk
            try:
                text = self._decoder.decode(chunk, final=self._ended)
            except UnicodeError as error:
                begins = f"{self._where}: begins with the mark of {self._name.upper()}"
                raise DataError(f"{begins} and is not ({error}). Save it as UTF-8.") from None
            if not text.isascii():
                text, escaped = _ESCAPED.subn(lambda byte: chr(ord(byte[0]) - 0xDC00), text)
                self.latin_1 += escaped
            if text:
                self.lines += text.count("\n")
                if "\n\n" in (joined := self._last + text):
                    self.empty += len(re.findall(r"(?<=\n)\n", joined))
                self._last = text[-1]
                self._open = len(text) - end if (end := text.rfind("\n")) >= 0 else self._open + len(text)
            if self._open > LONGEST:
                most = f"{LONGEST / (1 << 20):g} MiB"
                raise DataError(f"{self._where}: over {most} without the end of a line or a JSON entry; is it a trace?")
            self._left = text.encode("utf-8", "replace")
        block, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(block)] = block
        return len(block)

    def entries(self) -> Iterator[Any]:
        """The entries of the JSON list that the text is."""
        for entry in ijson.items(self, "item", use_float=True):
            self._open = 0
            yield entry

    @property
    def open_end(self) -> bool:
        """Whether the text ends without an end of line."""
        return self._last != "\n"
