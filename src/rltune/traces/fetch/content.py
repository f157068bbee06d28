"""Is it the file? Its size and checksum, and what servers and clones give in a file's place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rltune.traces.fetch.manifest import sha256

HEAD_BYTES = 2048
"""Enough to tell a pointer or a page from an archive or a table."""
_POINTER = re.compile(
    rb"\Aversion https://git-lfs\.github\.com/spec/v1\r?\n(?:[^\n]*\n)*?oid sha256:(?P<oid>[0-9a-f]{64})\r?\n"
    rb"(?:[^\n]*\n)*?size (?P<size>\d+)"
)  # https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_PAGE = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*|<\?xml[^>]*\?>\s*)*<(?:!doctype\s+html|html)\b", re.I | re.S
)
_TITLE = re.compile(rb"<title[^>]*>(?P<title>.*?)</title>", re.I | re.S)


@dataclass(frozen=True)
class Impostor:
    """Something that came in a file's place."""

    text: str
    pointer: bool = False
    """A Git-LFS pointer: the file itself lies elsewhere."""


class WrongFile(Exception):
    """A file is not the one expected; its text says what was found and what was expected."""

    def __init__(self, text: str, pointer: bool = False) -> None:
        super().__init__(text)
        self.pointer = pointer


def impostor(head: bytes, name: str) -> Impostor | None:
    """What the first bytes of a file called ``name`` show it to be, if it is a Git-LFS pointer or an HTML page."""
    if match := _POINTER.match(head):
        oid, size = match["oid"].decode(), match["size"].decode()
        return Impostor(f"a Git-LFS pointer (oid sha256:{oid}, size {size}) in place of the file", pointer=True)
    if _PAGE.match(head) and not name.endswith((".html", ".htm")):
        title = _TITLE.search(head)
        words = " ".join(title["title"].decode("utf-8", "replace").split())[:80] if title else ""
        return Impostor(f"an HTML page{f' ({words!r})' if words else ''} in place of the file: login, quota or error")
    return None


def checked(path: Path, name: str, size: int | None, expected: str | None) -> str:
    """The sha256 of a file that is called ``name``, once its content, bytes and sha256 are as expected where known.

    Raises:
        WrongFile: they are not.
    """
    with open(path, "rb") as file:
        instead = impostor(file.read(HEAD_BYTES), name)
    if instead:
        raise WrongFile(f"found {instead.text}", instead.pointer)
    found = path.stat().st_size
    if found == 0 or size not in (None, found):
        raise WrongFile(f"found {found} bytes, expected {size or 'more'}")
    checksum = sha256(path)
    if expected not in (None, checksum):
        raise WrongFile(f"found sha256 {checksum}, expected {expected}")
    return checksum
