"""Bring one file from one http(s) address: continue a partial one where that is safe, insist with patience."""

from __future__ import annotations

import itertools
import math
import random
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import requests
import urllib3

from rltune.errors import DataError
from rltune.traces.fetch.content import HEAD_BYTES, impostor
from rltune.traces.fetch.part import Notes, Part
from rltune.traces.fetch.patience import Patience
from rltune.traces.fetch.progress import Progress, say, size_text, time_text

BUSY = {408, 425, 429, 500, 502, 503, 504}
"""Answers that may be another one later."""
_RANGE = re.compile(r"bytes (?P<first>\d+)-\d+/(?P<total>\d+|\*)$")


class Fault(Exception):
    """An attempt failed; its text is a short reason."""

    def __init__(self, text: str, *, final: bool = False, after_s: float | None = None, pointer: bool = False) -> None:
        super().__init__(text)
        self.final = final
        """Whether trying the same address again is pointless."""
        self.after_s = after_s
        """How long the server asks to wait."""
        self.pointer = pointer
        """Whether a Git-LFS pointer came."""


@dataclass(frozen=True)
class Wanted:
    """The file to bring."""

    name: str
    bytes: int | None
    sure: bool
    """Whether its checksum is known, so that pieces that do not belong together cannot pass for it."""


def bring(url: str, part: Part, wanted: Wanted, patience: Patience) -> bool:
    """Fill ``part`` with the whole file at ``url``; whether the last answer continued an earlier one.

    Raises:
        Fault: final answer of the address, or patience ran out; what came so far stays in ``part``.
        DataError: no space for it on the disk.
    """
    failures, furthest = 0, part.size
    while True:
        try:
            return _attempt(url, part, wanted, patience)
        except Fault as fault:
            if fault.final:
                raise
            gained = part.size >= furthest + patience.gain_bytes
            furthest, failures = max(furthest, part.size), 1 if gained else failures + 1
            if failures >= patience.tries:
                raise Fault(f"{fault} ({failures} attempts)") from None
            wait = min(patience.wait_s * 2 ** (failures - 1) * random.uniform(0.5, 1.5), patience.longest_s)
            if fault.after_s is not None:
                wait = fault.after_s
            if wait > patience.longest_s:
                raise Fault(f"{fault}, and it asks to wait {time_text(wait)}") from None
            say(f"downloading {wanted.name}: {fault}; next attempt in {time_text(math.ceil(wait))}")
            time.sleep(wait)


def _attempt(url: str, part: Part, wanted: Wanted, patience: Patience) -> bool:
    """One request; whether it continued what was there."""
    notes = part.notes
    have = part.size if notes and notes.url == url and (notes.validator or wanted.sure) else 0
    if notes and have and have == notes.total:
        return True  # stopped between the last byte and the check
    # identity: lengths and ranges are to be those of the file, not of a compressed copy of it
    headers = {"Accept-Encoding": "identity", "User-Agent": "rltune"}
    if notes and have:
        headers["Range"] = f"bytes={have}-"
        if notes.validator:
            headers["If-Range"] = notes.validator
    with _named_faults(patience), requests.Session() as session:
        session.max_redirects = patience.redirects
        timeout = (patience.connect_s, patience.stall_s)
        with session.get(url, headers=headers, stream=True, timeout=timeout) as answer:
            if notes and have and answer.status_code in (206, 416):
                total = _continues(answer, notes, have)
                if total is None:
                    part.discard()
                    raise Fault("the file there has changed; what was here of it is dropped", after_s=0.0)
                say(f"downloading {wanted.name}: going on after {size_text(have)}")
                _receive(answer, part, total, wanted, patience)
                return True
            if answer.status_code != 200:
                raise _refusal(answer)
            if have:
                say(f"downloading {wanted.name}: from the start, {url} does not continue or the file there has changed")
            _receive(answer, part, _length(answer), wanted, patience, Notes.of(url, answer.headers, _length(answer)))
            return False


def _continues(answer: requests.Response, notes: Notes, have: int) -> int | None:
    """The whole file's bytes if a 206 goes on exactly where the partial file ends, in the same file; else None."""
    match = _RANGE.match(answer.headers.get("Content-Range", ""))
    if answer.status_code != 206 or match is None or int(match["first"]) != have:
        return None
    total = notes.total if match["total"] == "*" else int(match["total"])
    return total if notes.same_file(Notes.of(notes.url, answer.headers, total)) else None


def _receive(
    answer: requests.Response,
    part: Part,
    total: int | None,
    wanted: Wanted,
    patience: Patience,
    begin: Notes | None = None,
) -> None:
    """Append an answer's body to ``part``, begun anew if ``begin`` is given. Raises Fault if it does not get whole."""
    chunks = _body(answer, total, patience)
    if begin is not None:
        first = next(chunks, b"")
        if total and not first:
            raise Fault(f"the connection ended after 0 of {total} bytes")
        _acceptable(answer, first, total, wanted)
        _room(part, total)
        part.start(begin)
        chunks = itertools.chain([first], chunks)
    progress = Progress(wanted.name, part.size, total, patience.every_s)
    with open(part.path, "ab") as file:
        for chunk in chunks:
            file.write(chunk)
            progress.add(len(chunk))
    if total is not None and part.size != total:
        if part.size > total:
            part.discard()
        raise Fault(f"the connection ended after {progress.done} of {total} bytes")


def _body(answer: requests.Response, total: int | None, patience: Patience) -> Iterator[bytes]:
    """An answer's bytes as they were sent; a broken connection just ends them where ``total`` will tell."""
    try:
        yield from answer.raw.stream(patience.chunk_bytes, decode_content=False)
    except urllib3.exceptions.ProtocolError:
        if total is None:
            raise Fault("the connection ended before the file did") from None


def _acceptable(answer: requests.Response, first: bytes, total: int | None, wanted: Wanted) -> None:
    """Raise a final Fault for an answer that cannot be the file, before anything is kept of it."""
    if found := impostor(first[:HEAD_BYTES], wanted.name):
        raise Fault(f"found {found.text}", final=True, pointer=found.pointer)
    if None not in (total, wanted.bytes) and total != wanted.bytes:
        raise Fault(f"found {total} bytes, expected {wanted.bytes}", final=True)
    coding = answer.headers.get("Content-Encoding", "identity")
    if coding not in ("", "identity") and not wanted.name.endswith((".gz", ".tgz")):
        raise Fault(f"it came compressed ({coding}), which was not asked for", final=True)
    chunked = "chunked" in answer.headers.get("Transfer-Encoding", "").lower()
    if total is None and not (chunked or wanted.bytes or wanted.sure):
        raise Fault("the server does not say how long it is, so a cut one could pass for whole", final=True)


def _room(part: Part, total: int | None) -> None:
    free = shutil.disk_usage(part.path.parent).free + part.size
    if total is not None and total > free:
        raise DataError(f"{part.path.parent}: {size_text(free)} free, {part.path.stem} needs {size_text(total)}.")


def _length(answer: requests.Response) -> int | None:
    text = answer.headers.get("Content-Length", "")
    return int(text) if text.isdecimal() else None


def _refusal(answer: requests.Response) -> Fault:
    busy = answer.status_code in BUSY
    text = f"answer {answer.status_code} {answer.reason or ''}".strip()
    return Fault(text, final=not busy, after_s=_retry_after_s(answer.headers.get("Retry-After", "")))


def _retry_after_s(text: str) -> float | None:
    """Retry-After in seconds: a number of them or a date (RFC 9110, 10.2.3); None where it says neither."""
    if text.strip().isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


@contextmanager
def _named_faults(patience: Patience) -> Iterator[None]:
    """What the network libraries raise, as a Fault with a short reason."""
    try:
        yield
    except requests.TooManyRedirects:
        raise Fault(f"more than {patience.redirects} redirections", final=True) from None
    except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
        connecting = isinstance(error, (requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError))
        wait = patience.connect_s if connecting else patience.stall_s
        raise Fault(f"no {'connection' if connecting else 'byte'} for {wait:g} s") from None
    except requests.exceptions.SSLError as error:
        raise Fault(f"no safe connection: {_short(error)}", final=True) from None
    except (requests.ConnectionError, urllib3.exceptions.HTTPError) as error:
        raise Fault(_short(error)) from None
    except requests.RequestException as error:
        raise Fault(_short(error), final=True) from None


def _short(error: BaseException) -> str:
    """The innermost reason of a nest of exceptions that quote each other."""
    while (inner := error.__cause__ or error.__context__ or getattr(error, "reason", None)) and isinstance(
        inner, BaseException
    ):
        error = inner
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:150]
