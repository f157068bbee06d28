"""Download one file from its addresses, in order.

The file has its name only once its checksum is right. Until then it is ``<file>.<k>.part``, from the k-th address, which the next
attempt, or the next process, continues: where the pieces do not fit, the wrong whole is dropped and begun again.
"""

import errno
import glob
import hashlib
import os
import random
import shutil
import time
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rltune.config.trace import Download
from rltune.config.trace_files import MANUAL_FILES, SHIPPED
from rltune.errors import DataError
from rltune.traces.progress import Progress, say, size_text, time_text

DATA = Path(__file__).parents[2] / "data"
"""Files that ship with the package."""
BUSY = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses after which another attempt may succeed."""
BEYOND = 416
"""HTTP status: the requested range begins at or behind the end of the file."""
CHUNK = 1 << 16
TRIES = 5
"""Attempts in a row that bring nothing new before an address is given up. Our choice: a dead address costs about 15 s."""
WAIT_S = 1.0
"""Wait before the second attempt; doubles each time, times a random 0.5 to 1.5."""
TIMEOUT_S = 60.0
"""Time without an answer, or a byte of it, after which an attempt ends."""


class Fault(Exception):
    """An attempt failed; the text is a short reason."""

    def __init__(self, text: str, final: bool = True) -> None:
        super().__init__(text)
        self.final = final
        """Whether another attempt at the same address is pointless."""


def download(trace: str, item: Download, folder: Path) -> str:
    """Download a file of a trace into ``folder``; the address it came from.

    Raises:
        DataError: no address gave it, or the disk has no space for it.
    """
    target, faults = folder / item.file, {}
    for k, address in enumerate((item.url, *item.mirrors), 1):
        say(f"{'copying' if address.startswith(SHIPPED) else 'downloading'} {item.file} from {address}")
        part = folder / f"{item.file}.{k}.part"
        try:
            _from(address.replace(SHIPPED, f"{DATA.as_uri()}/"), item, part)
        except Fault as fault:
            faults[address] = fault
            continue
        part.replace(target)
        return address
    raise DataError(_advice(trace, item, target, faults, sum(map(_size, parts_of(target)))))


def parts_of(target: Path) -> list[Path]:
    """The partial files of a file."""
    return sorted(target.parent.glob(f"{glob.escape(target.name)}.*.part"))


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, item: Download) -> None:
    """Raise a Fault where a file is not the one expected."""
    if (found := sha256(path)) != item.sha256:
        raise Fault(f"found {_size(path):,} bytes with sha256 {found}, expected sha256 {item.sha256}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _from(address: str, item: Download, part: Path) -> None:
    """Make the partial file the whole one from one address. Raises Fault when the address is given up."""
    failures, most = 0, _size(part)
    while True:
        try:
            return _receive(address, item, part)
        except Fault as error:
            fault = error
        except HTTPError as error:
            if error.code == BEYOND and _size(part):
                try:
                    return check(part, item)  # stopped between the last byte and the check
                except Fault:
                    part.unlink()
            fault = Fault(f"answer {error.code} {error.reason}", final=error.code not in {*BUSY, BEYOND})
        except (OSError, HTTPException) as error:
            if getattr(error, "errno", None) == errno.ENOSPC:
                raise DataError(f"{part}: no space left on the disk") from None
            fault = Fault(str(getattr(error, "reason", error)) or type(error).__name__, address.startswith("file:"))
        except ValueError as error:
            fault = Fault(f"no address: {error}")
        if fault.final:
            raise fault
        failures = 1 if _size(part) > most else failures + 1
        most = max(most, _size(part))
        if failures >= TRIES:
            raise Fault(f"{fault} ({failures} attempts)")
        wait_s = WAIT_S * 2 ** (failures - 1) * random.uniform(0.5, 1.5)
        say(f"downloading {item.file}: {fault}; next attempt in {time_text(wait_s)}")
        time.sleep(wait_s)


def _receive(address: str, item: Download, part: Path) -> None:
    """One request: append its answer to the partial file, or begin it again, and verify it."""
    have = _size(part)
    headers = {"User-Agent": "rltune"} | ({"Range": f"bytes={have}-"} if have else {})
    with urlopen(Request(address, headers=headers), timeout=TIMEOUT_S) as answer:
        if answer.headers.get_content_type() == "text/html":
            raise Fault("found a web page in place of the file: login, quota or error")
        if answer.status != 206:
            have = 0
        length = answer.headers.get("Content-Length", "")
        total = have + int(length) if length.isdecimal() else None
        free = shutil.disk_usage(part.parent).free + _size(part)
        if total is not None and total > free:
            raise DataError(f"{part.parent}: {size_text(free)} free, {item.file} needs {size_text(total)}.")
        if have:
            say(f"downloading {item.file}: continuing after {size_text(have)}")
        progress = Progress(f"downloading {item.file}", total, have)
        with open(part, "ab" if have else "wb") as out:
            while chunk := answer.read(CHUNK):
                out.write(chunk)
                progress.reached(out.tell())
            out.flush()
            os.fsync(out.fileno())
    if total is not None and _size(part) < total:
        raise Fault(f"the connection ended after {_size(part):,} of {total:,} bytes", final=False)
    try:
        check(part, item)
    except Fault as fault:
        part.unlink()
        raise Fault(str(fault), final=not have and total is not None) from None


def _advice(trace: str, item: Download, target: Path, faults: dict[str, Fault], kept: int) -> str:
    """Why a file could not be obtained (address → reason), and what to do manually."""
    tried = "; ".join(f"{address}: {fault}" for address, fault in faults.items())
    rest = f" {size_text(kept)} of it are kept, and the next attempt continues after them." if kept else ""
    manually = (
        f"Manually: put it at {target}, or into a folder that the environment variable {MANUAL_FILES} names; "
        f"or add a mirror under downloads in config/traces/{trace}.yaml."
    )
    if item.url.startswith(SHIPPED):
        manually = f"It ships with rltune: install rltune again, or restore {DATA / item.file}."
    return f"trace {trace}: could not obtain {item.file}, sha256 {item.sha256}. Tried {tried}.{rest} {manually}"
