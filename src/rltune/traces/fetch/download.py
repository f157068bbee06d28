"""Download one file from its addresses, in order; it appears under its name only when it is whole and right."""

from __future__ import annotations

import os
import shutil
import urllib.parse
import urllib.request
from collections import deque
from pathlib import Path
from typing import Any

import pooch

from rltune.config.trace import Download
from rltune.errors import DataError
from rltune.traces.fetch.addresses import media_address
from rltune.traces.fetch.content import WrongFile, checked
from rltune.traces.fetch.given import BY_HAND
from rltune.traces.fetch.part import Part
from rltune.traces.fetch.patience import Patience
from rltune.traces.fetch.progress import say, size_text
from rltune.traces.fetch.web import Fault, Wanted, bring


def download(name: str, item: Download, expected: str | None, folder: Path, patience: Patience) -> tuple[str, str]:
    """Download a trace's file into ``folder``; (its sha256, the address it came from).

    Args:
        name: the trace's name.
        item: the file.
        expected: its sha256, where published or recorded.
        folder: where it goes.
        patience: how long to insist.

    Raises:
        DataError: no address gave it.
    """
    downloader = _Downloader(name, item, expected, folder, patience)
    pooch.get_logger().setLevel("WARNING")  # it would announce each download on stderr; we do
    # No checksum for pooch: the partial file has been checked before it is handed over, and 1 GB is read once.
    store = pooch.create(
        path=folder, base_url="", registry={item.file: None}, urls={item.file: item.url}, allow_updates=False
    )
    store.fetch(item.file, downloader=downloader)
    return downloader.came


class _Downloader:
    """pooch's way to bring a file: from its first address that works."""

    came: tuple[str, str]

    def __init__(self, name: str, item: Download, expected: str | None, folder: Path, patience: Patience) -> None:
        self.name, self.item, self.expected, self.patience = name, item, expected, patience
        self.target = folder / item.file
        self.part = Part(self.target)

    def __call__(self, url: str, output_file: str, _: Any) -> None:
        os.unlink(output_file)  # pooch's empty temporary file: a killed process would leave it behind
        begun = self.part.notes
        # an address of which there is a part already comes first
        waiting = deque(sorted((url, *self.item.mirrors), key=lambda a: begun is None or a != begun.url))
        faults: dict[str, Fault] = {}
        while waiting:
            address = waiting.popleft()
            try:
                self.came = self._bring(address), address
            except Fault as fault:
                faults[address] = fault
                if fault.pointer and (media := media_address(address)) and media not in (*faults, *waiting):
                    say(f"downloading {self.item.file}: {fault}; next {media}")
                    waiting.appendleft(media)
                continue
            self.part.finish(Path(output_file))
            return
        raise DataError(advice(self.name, self.item, self.expected, self.target, faults, self.part.size))

    def _bring(self, address: str) -> str:
        """Fill the partial file from one address and check it: its sha256. Raises Fault."""
        say(f"downloading {self.item.file} from {address}")
        while True:
            pieces = self._fill(address)
            try:
                return checked(self.part.path, self.item.file, self.item.bytes, self.expected)
            except WrongFile as wrong:
                self.part.discard()
                if not pieces:
                    raise Fault(str(wrong), final=True, pointer=wrong.pointer) from None
                say(f"downloading {self.item.file}: {wrong}; its pieces do not fit, so once more from the start")

    def _fill(self, address: str) -> bool:
        scheme = urllib.parse.urlsplit(address).scheme.lower()
        if scheme in ("http", "https"):
            wanted = Wanted(self.item.file, self.item.bytes, self.expected is not None)
            return bring(address, self.part, wanted, self.patience)
        if scheme != "file":
            raise Fault(f"an address of kind {scheme!r}, expected https, http or file", final=True)
        self.part.discard()
        source = Path(urllib.request.url2pathname(urllib.parse.urlsplit(address).path))
        if not source.is_file():
            raise Fault("no such file", final=True)
        shutil.copyfile(source, self.part.path)
        return False


def advice(
    name: str, item: Download, expected: str | None, path: Path, faults: dict[str, Fault], part_bytes: int = 0
) -> str:
    """Why a file could not be obtained (address → reason), and what to do by hand."""
    size = f"{item.bytes} bytes" if item.bytes else "a file"
    checksum = f" with sha256 {expected}" if expected else " (no checksum is known)"
    tried = "; ".join(f"{address}: {fault}" for address, fault in faults.items())
    rest = f" {size_text(part_bytes)} of it are kept, and the next attempt goes on after them." if part_bytes else ""
    pointer = any(fault.pointer for fault in faults.values())
    return (
        f"trace {name}: could not obtain {item.file}; expected {size}{checksum}. Tried {tried}.{rest} "
        f"By hand: download {pointer and media_address(item.url) or item.url} and put it at {path}, "
        f"or into a folder that the environment variable {BY_HAND} names; "
        f"or add a mirror under downloads in config/traces/{name}.yaml."
    )
