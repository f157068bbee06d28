"""Download one file from its addresses, in order: continue a partial one where that is safe, retry, verify.

The file has its name only when it is whole and right; until then it is ``<file>.part``, with a note next to it
(``<file>.part.json``) of where it came from, so that the next attempt, or the next process, continues it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import re
import shutil
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rltune.config.trace import Download
from rltune.errors import DataError
from rltune.files import read_json, write_json
from rltune.traces.progress import Progress, say, size_text, time_text

BY_HAND = "RLTUNE_TRACE_FILES"
"""Environment variable: a folder of files fetched by hand, each there or in a sub-folder with the trace's name."""
BUSY = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses after which another attempt may succeed."""
CHUNK = 1 << 16
_HEAD = 2048
_POINTER = re.compile(rb"\Aversion https://git-lfs\.github\.com/spec/v1\r?\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\r?\n")
_PAGE = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*|<\?xml[^>]*>\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_RAW = re.compile(
    r"https://(?:github\.com/([^/]+/[^/]+)/raw/|raw\.githubusercontent\.com/([^/]+/[^/]+)/)(?:refs/heads/)?([^?#]+)"
)


@dataclass(frozen=True)
class RetryPolicy:
    """When to try an address again; times in seconds. Our choice: a dead address costs about 15 s."""

    tries: int = 5
    """Attempts in a row that bring nothing new before an address is given up."""
    wait_s: float = 1.0
    """Wait before the second attempt; doubles each time, times a random 0.5 to 1.5."""
    longest_s: float = 120.0
    """Longest wait; a server that asks for more (Retry-After) is given up."""
    timeout_s: tuple[float, float] = (20.0, 60.0)
    """For the connection, and without a byte."""


class Fault(Exception):
    """An attempt failed; the text is a short reason."""

    def __init__(self, text: str, final: bool = False, after_s: float | None = None, pointer: bool = False) -> None:
        super().__init__(text)
        self.final = final
        """Whether another attempt at the same address is pointless."""
        self.after_s = after_s
        """How long the server asks to wait."""
        self.pointer = pointer
        """Whether a Git-LFS pointer came."""


class _Part:
    """The partial file and its note."""

    def __init__(self, target: Path) -> None:
        self.path, self._note = (target.with_name(target.name + end) for end in (".part", ".part.json"))

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def note(self) -> dict[str, Any]:
        """url, validator (what If-Range takes, if any) and total of what the partial file is a part of."""
        try:
            return dict(read_json(self._note))
        except (OSError, TypeError, ValueError):
            return {}

    def begin(self, note: dict[str, Any]) -> None:
        self.path.write_bytes(b"")  # what was there is gone before the new note is
        write_json(self._note, note)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def download(trace: str, item: Download, folder: Path, policy: RetryPolicy | None = None) -> tuple[str, str]:
    """Download a file of a trace into ``folder``; (its sha256, the address it came from).

    Raises:
        DataError: no address gave it, or the disk has no space for it.
    """
    policy, target = policy or RetryPolicy(), folder / item.file
    part, faults = _Part(target), {}
    # The address of which there is a part already comes first.
    waiting = sorted((item.url, *item.mirrors), key=lambda address: address != part.note.get("url"))
    while waiting:
        address = waiting.pop(0)
        say(f"downloading {item.file} from {address}")
        try:
            checksum = _from(address, item, part, policy)
        except Fault as fault:
            faults[address] = fault
            media = media_address(address) if fault.pointer else None
            if media and media not in (*faults, *waiting):
                waiting.insert(0, media)
            continue
        with open(part.path, "rb+") as whole:
            os.fsync(whole.fileno())
        part.path.replace(target)
        part.discard()
        return checksum, address
    raise DataError(_advice(trace, item, target, faults, part.size))


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verified(path: Path, item: Download) -> str:
    """The sha256 of a file, once its content, size and checksum are as expected where known. Raises a final Fault."""
    with open(path, "rb") as content:
        _refuse_impostor(content.read(_HEAD), item.file)
    found = path.stat().st_size
    if found == 0 or item.bytes not in (None, found):
        raise Fault(f"found {found} bytes, expected {item.bytes or 'more'}", final=True)
    checksum = sha256(path)
    if item.sha256 not in (None, checksum):
        raise Fault(f"found sha256 {checksum}, expected {item.sha256}", final=True)
    return checksum


def media_address(url: str) -> str | None:
    """Where GitHub keeps the file that a Git-LFS pointer at ``url`` stands for; None for other addresses."""
    match = _RAW.match(url)
    return f"https://media.githubusercontent.com/media/{match[1] or match[2]}/{match[3]}" if match else None


def _refuse_impostor(head: bytes, name: str) -> None:
    """Raise a final Fault where the first bytes are those of a Git-LFS pointer or a web page."""
    if match := _POINTER.match(head):
        text = f"found a Git-LFS pointer (oid sha256:{match[1].decode()}) in place of the file"
        raise Fault(text, final=True, pointer=True)
    if _PAGE.match(head) and not name.endswith((".html", ".htm")):
        title = re.search(rb"<title[^>]*>(.*?)</title>", head, re.IGNORECASE | re.DOTALL)
        words = f" ({' '.join(title[1].decode('utf-8', 'replace').split())[:80]!r})" if title else ""
        raise Fault(f"found an HTML page{words} in place of the file: login, quota or error", final=True)


def _from(address: str, item: Download, part: _Part, policy: RetryPolicy) -> str:
    """Fill the partial file from one address and verify it: its sha256. Raises Fault when the address is given up."""
    failures = most = 0
    while True:
        try:
            resumed = _attempt(address, item, part, policy)
            try:
                return verified(part.path, item)
            except Fault as fault:
                part.discard()
                if not resumed:
                    raise
                raise Fault(f"{fault}: its pieces do not fit, so it starts again", after_s=0.0) from None
        except Fault as fault:
            failures = 1 if part.size > most else failures + 1
            most = max(most, part.size)
            if fault.final:
                raise
            if failures >= policy.tries:
                raise Fault(f"{fault} ({failures} attempts)") from None
            wait = min(policy.wait_s * 2 ** (failures - 1) * random.uniform(0.5, 1.5), policy.longest_s)
            wait = wait if fault.after_s is None else fault.after_s
            if wait > policy.longest_s:
                raise Fault(f"{fault}, and it asks to wait {time_text(wait)}") from None
            say(f"downloading {item.file}: {fault}; next attempt in {time_text(wait)}")
            time.sleep(wait)


def _attempt(address: str, item: Download, part: _Part, policy: RetryPolicy) -> bool:
    """One request or copy; whether it continued what was there. Raises Fault."""
    scheme = urlsplit(address).scheme.lower()
    if scheme == "file":
        source = Path(urllib.request.url2pathname(urlsplit(address).path))
        if not source.is_file():
            raise Fault("no such file", final=True)
        part.discard()
        shutil.copyfile(source, part.path)
        return False
    if scheme not in ("http", "https"):
        raise Fault(f"an address of kind {scheme!r}, expected https, http or file", final=True)
    import requests  # takes longer to load than a small trace to make
    import urllib3

    note = part.note
    resumable = note.get("url") == address and (note.get("validator") or item.sha256)
    have = part.size if resumable else 0
    if have and have == note.get("total"):
        return True  # stopped between the last byte and the check
    # identity: lengths and ranges are to be those of the file, not of a compressed copy of it
    headers = {"Accept-Encoding": "identity", "User-Agent": "rltune"}
    if have:
        headers["Range"] = f"bytes={have}-"
        headers |= {"If-Range": note["validator"]} if note.get("validator") else {}
    try:
        with requests.get(address, headers=headers, stream=True, timeout=policy.timeout_s) as answer:
            return _receive(answer, address, item, part, have)
    except (requests.Timeout, urllib3.exceptions.TimeoutError):
        connect_s, read_s = policy.timeout_s
        raise Fault(f"no connection within {connect_s:g} s or no byte for {read_s:g} s") from None
    except urllib3.exceptions.ProtocolError as error:
        raise Fault(f"the connection ended before the file did: {_reason(error)}") from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        final = (requests.exceptions.SSLError, requests.TooManyRedirects, requests.exceptions.InvalidURL)
        raise Fault(_reason(error), final=isinstance(error, final)) from None


def _receive(answer: Any, address: str, item: Download, part: _Part, have: int) -> bool:
    """Append an answer's body to the partial file, or begin it again; whether it was continued."""
    import urllib3

    headers = answer.headers
    length = headers.get("Content-Length", "")
    total = have * (answer.status_code == 206) + int(length) if length.isdecimal() else None
    note = {"url": address, "validator": _validator(headers), "total": total}
    if have and answer.status_code in (206, 416):
        rest = answer.status_code == 206 and headers.get("Content-Range", "").startswith(f"bytes {have}-")
        # An answer to If-Range need not repeat the date (RFC 9110, 15.3.7): what both have is compared.
        both = {key: value for key, value in note.items() if None not in (value, part.note.get(key))}
        if not rest or not both.items() <= part.note.items():
            part.discard()
            raise Fault("the file there has changed; what was here of it is dropped", after_s=0.0)
        say(f"downloading {item.file}: continuing after {size_text(have)}")
    elif answer.status_code != 200:
        try:
            after_s = urllib3.Retry().parse_retry_after(headers.get("Retry-After", ""))
        except urllib3.exceptions.InvalidHeader:
            after_s = None
        text = f"answer {answer.status_code} {answer.reason or ''}".strip()
        raise Fault(text, final=answer.status_code not in BUSY, after_s=after_s)
    else:
        have = 0
    chunks = answer.raw.stream(CHUNK, decode_content=False)
    if not have:
        first = next(chunks, b"")
        _refuse_impostor(first[:_HEAD], item.file)
        if None not in (total, item.bytes) and total != item.bytes:
            raise Fault(f"found {total} bytes, expected {item.bytes}", final=True)
        if total is None and "chunked" not in headers.get("Transfer-Encoding", "") and not (item.bytes or item.sha256):
            raise Fault("the server does not say how long it is, so a cut one could pass for whole", final=True)
        if total is not None and total > (free := shutil.disk_usage(part.path.parent).free + part.size):
            raise DataError(f"{part.path.parent}: {size_text(free)} free, {item.file} needs {size_text(total)}.")
        part.begin(note)
        chunks = itertools.chain([first], chunks)
    progress = Progress(f"downloading {item.file}", total, have)
    with open(part.path, "ab") as out:
        for chunk in chunks:
            out.write(chunk)
            progress.reached(out.tell())
    if total is not None and part.size != total:
        raise Fault(f"the connection ended after {part.size} of {total} bytes")
    return bool(have)


def _validator(headers: Mapping[str, str]) -> str | None:
    """What If-Range takes: a strong ETag, else the date (RFC 9110, 13.1.5)."""
    etag = headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")


def _reason(error: BaseException) -> str:
    """The innermost reason of nested exceptions."""
    while isinstance(inner := error.__cause__ or error.__context__ or getattr(error, "reason", None), BaseException):
        error = inner
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:150]


def _advice(trace: str, item: Download, target: Path, faults: dict[str, Fault], kept: int) -> str:
    """Why a file could not be obtained (address → reason), and what to do by hand."""
    size = f"{item.bytes} bytes" if item.bytes else "a file"
    checksum = f" with sha256 {item.sha256}" if item.sha256 else " (no checksum is known)"
    tried = "; ".join(f"{address}: {fault}" for address, fault in faults.items())
    rest = f" {size_text(kept)} of it are kept, and the next attempt continues after them." if kept else ""
    return (
        f"trace {trace}: could not obtain {item.file}; expected {size}{checksum}. Tried {tried}.{rest} "
        f"By hand: put it at {target}, or into a folder that the environment variable {BY_HAND} names; "
        f"or add a mirror under downloads in config/traces/{trace}.yaml."
    )
