"""Obtain a trace's raw files: generate them, download them, or find them where the configuration says.

Generated and downloaded files lie in ``<cache>/raw/<trace>/`` beside a ``manifest.json`` with the sha256 of each.
Archives are not unpacked: readers stream what they need out of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pooch

from rltune.config.trace import Download, TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.files import read_json, write_json
from rltune.traces.synthetic import GENERATOR_VERSION, generate

RETRIES = 3
TIMEOUT_S = 60
EVERY_S = 5.0
"""Seconds between two lines of progress."""
MANIFEST = "manifest.json"
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")


def obtain(name: str, trace: TraceConfig, cache: Path, root: Path) -> Path:
    """The folder of a trace's raw files (or the one file ``path`` names), obtained if it is not there yet.

    Args:
        name: the trace's name (stem of its configuration file).
        trace: its configuration.
        cache: the project's cache folder.
        root: the project's root, to which a relative ``path`` is relative.

    Raises:
        ConfigError: a variable in ``path`` is not set.
        DataError: the file is not there, cannot be downloaded, or has another checksum than expected.
    """
    folder = Path(cache) / "raw" / name
    if trace.synthetic is not None:
        return _generated(trace, folder)
    if trace.downloads is not None:
        return _downloaded(name, trace.downloads, folder)
    assert trace.path is not None
    return given_file(name, trace.path, Path(root))


def fingerprint(trace: TraceConfig, root: Path) -> str:
    """Which file a trace's ``path`` names now: place, size, time of last change; "" for other sources.

    A file that is not there, or a variable that is not set, is :func:`obtain`'s to explain.
    """
    if trace.path is None:
        return ""
    try:
        path = root / Path(expand(trace.path, "path")).expanduser()
        stat = path.stat()
    except (ConfigError, OSError):
        return trace.path
    return f"{path} {stat.st_size} {stat.st_mtime_ns}"


def expand(text: str, key: str) -> str:
    """Replace ``${VAR}`` and ``${VAR:-default}`` from the environment; ``key`` is the configuration key in messages."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match["name"]) or match["default"]
        if found is None:
            raise ConfigError(
                f"{key}: {text!r} needs the environment variable {match['name']}, which is not set; "
                f"set it (export {match['name']}=/folder/of/the/files) or write the path itself."
            )
        return found

    return _VARIABLE.sub(value, text)


def given_file(name: str, path: str, root: Path) -> Path:
    """The file or folder a trace's ``path`` names. Raises as :func:`obtain` for it."""
    key = f"config/traces/{name}.yaml, path"
    found = root / Path(expand(path, key)).expanduser()
    if not found.exists():
        raise DataError(
            f"{key}: {path!r} is {found}, and there is no such file or folder; put the data there or correct the path."
        )
    return found


def _generated(trace: TraceConfig, folder: Path) -> Path:
    assert trace.synthetic is not None
    wanted = {
        "generator": GENERATOR_VERSION,
        "format": trace.format,
        "seed": trace.synthetic.seed,
        "jobs": trace.synthetic.jobs,
    }
    manifest = _manifest(folder)
    if {k: manifest.get(k) for k in wanted} == wanted and manifest.get("files") and _intact(folder, manifest["files"]):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    paths = generate(trace.format, folder, trace.synthetic.seed, trace.synthetic.jobs)
    write_json(folder / MANIFEST, {**wanted, "files": {p.name: sha256(p) for p in paths}})
    return folder


def _downloaded(name: str, downloads: list[Download], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    recorded = dict(_manifest(folder).get("files", {}))
    for item in downloads:
        expected = item.sha256 or recorded.get(item.file)
        path = folder / item.file
        if path.name != item.file or item.file == MANIFEST:
            raise ConfigError(
                f"config/traces/{name}.yaml, downloads.file: found {item.file!r}, expected a plain file name."
            )
        if path.is_file() and expected is None:
            # Put there by hand, and no checksum is published: it counts as the first download.
            expected = sha256(path)
        if not (path.is_file() and sha256(path) == expected):
            _download(name, item, expected, folder)
        if item.bytes is not None and path.stat().st_size != item.bytes:
            raise DataError(_advice(name, item, path, f"{path.stat().st_size} bytes came, expected {item.bytes}"))
        recorded[item.file] = expected or sha256(path)
    write_json(folder / MANIFEST, {"files": recorded})
    return folder


def _download(name: str, item: Download, expected: str | None, folder: Path) -> None:
    """Download from the address or its mirrors, in order; the file appears under its name only when whole and right."""
    faults = []
    for url in (item.url, *item.mirrors):
        local = urllib.parse.urlsplit(url).scheme == "file"
        store = pooch.create(
            path=folder,
            base_url="",
            registry={item.file: f"sha256:{expected}" if expected else None},
            urls={item.file: url},
            retry_if_failed=0 if local else RETRIES,
        )
        try:
            store.fetch(item.file, downloader=_copy if local else _downloader(item.file))
            return
        # pooch raises what requests, the file system or its hash check raise; requests' errors are OSErrors.
        except (OSError, ValueError) as error:
            faults.append(f"{url}: {' '.join(str(error).split())[:300]}")
    raise DataError(_advice(name, item, folder / item.file, "; ".join(faults)))


class _Lines:
    """Progress of a download as a line every few seconds; has the methods pooch asks of a progress bar."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.total = 0
        self.reset()

    def update(self, size: int) -> None:
        self.done += size
        if time.monotonic() - self.said >= EVERY_S:
            self.said = time.monotonic()
            share = f" of {self.total / 1e6:.0f} MB ({self.done / self.total:.0%})" if self.total else " MB"
            print(f"downloading {self.name}: {self.done / 1e6:.0f}{share}", flush=True)

    def reset(self) -> None:
        self.done, self.said = 0, time.monotonic()

    def close(self) -> None:
        pass


def _downloader(name: str) -> pooch.HTTPDownloader:
    return pooch.HTTPDownloader(progressbar=_Lines(name), timeout=TIMEOUT_S)


def _copy(url: str, output_file: str, _: Any) -> None:
    """pooch's downloader for file:// addresses."""
    shutil.copyfile(urllib.request.url2pathname(urllib.parse.urlsplit(url).path), output_file)


def _advice(name: str, item: Download, path: Path, fault: str) -> str:
    checksum = f" (sha256 {item.sha256})" if item.sha256 else ""
    return (
        f"trace {name}: could not obtain {item.file}: {fault}. By hand: download {item.url}{checksum} "
        f"and put it at {path}; or add a mirror under downloads in config/traces/{name}.yaml."
    )


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        value = read_json(folder / MANIFEST)
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _intact(folder: Path, files: dict[str, str]) -> bool:
    return all((folder / f).is_file() and sha256(folder / f) == checksum for f, checksum in files.items())


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
