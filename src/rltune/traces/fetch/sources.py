"""Obtain a trace's raw files: generate them, download them, or find them where the configuration or the user says."""

from __future__ import annotations

from pathlib import Path

from rltune.config.trace import Download, TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.traces.fetch.addresses import media_address
from rltune.traces.fetch.content import WrongFile, checked
from rltune.traces.fetch.given import BY_HAND, by_hand, given_file
from rltune.traces.fetch.manifest import MANIFEST, Manifest, locked, sha256
from rltune.traces.fetch.part import Part
from rltune.traces.fetch.patience import Patience
from rltune.traces.fetch.progress import say
from rltune.traces.synthetic import GENERATOR_VERSION, generate

PATIENCE = Patience()


def obtain(
    name: str, trace: TraceConfig, cache: Path, root: Path, patience: Patience = PATIENCE, verify: bool = False
) -> Path:
    """The folder of a trace's raw files (or the one file ``path`` names), obtained if it is not there yet.

    Args:
        name: the trace's name (stem of its configuration file).
        trace: its configuration.
        cache: the project's cache folder.
        root: the project's root, to which a relative ``path`` is relative.
        patience: how long to insist on a download.
        verify: read files in full again even where size and time are as they were.

    Raises:
        ConfigError: a variable in ``path`` is not set, or a setting of a download is wrong.
        DataError: the file is not there, cannot be downloaded, or is not the one expected.
    """
    folder = Path(cache) / "raw" / name
    if trace.path is not None:
        return given_file(name, trace.path, Path(root))
    if trace.synthetic is not None:
        return _generated(trace, folder, verify)
    assert trace.downloads is not None
    return _downloaded(name, trace.downloads, folder, patience, verify)


def _generated(trace: TraceConfig, folder: Path, verify: bool) -> Path:
    assert trace.synthetic is not None
    made = {
        "generator": GENERATOR_VERSION,
        "format": trace.format,
        "part": trace.part,
        "seed": trace.synthetic.seed,
        "jobs": trace.synthetic.jobs,
    }
    manifest = Manifest.read(folder)
    if manifest.made == made and manifest.files and not verify and all(map(manifest.unchanged, manifest.files)):
        return folder
    with locked(folder):
        manifest = Manifest.read(folder)
        if manifest.made == made and manifest.files and all(map(manifest.intact, manifest.files)):
            checksums = manifest.files.copy()  # touched, or made by a process that was faster
        else:
            manifest = Manifest(folder, made)
            paths = generate(trace.format, folder, trace.synthetic.seed, trace.synthetic.jobs, trace.part)
            checksums = {path.name: sha256(path) for path in paths}
        for file, checksum in checksums.items():
            manifest.record(file, checksum, None)
        manifest.write()
    return folder


def _downloaded(name: str, downloads: list[Download], folder: Path, patience: Patience, verify: bool) -> Path:
    for item in downloads:
        if Path(item.file).name != item.file or item.file in ("", "..", MANIFEST):
            raise ConfigError(
                f"config/traces/{name}.yaml, downloads.file: found {item.file!r}, expected a plain file name."
            )
    manifest = Manifest.read(folder)
    for item in downloads:
        _tell_stale(item, manifest)
    if not manifest.made and not verify and all(_known(manifest, item) for item in downloads):
        return folder
    with locked(folder):
        manifest = Manifest.read(folder)
        if manifest.made:
            manifest = _cleared(manifest)
        for item in downloads:
            if verify or not _known(manifest, item):
                _one(name, item, manifest, patience)
                manifest.write()
    return folder


def _known(manifest: Manifest, item: Download) -> bool:
    """Whether a file is there, was right when it was last read, and has not changed since."""
    return manifest.unchanged(item.file, item.sha256) and item.bytes in (None, manifest.stamps[item.file][0])


def _tell_stale(item: Download, manifest: Manifest) -> None:
    """Say so where a file without a published checksum is there from an address that is no longer configured."""
    origin = manifest.origins.get(item.file, "")
    given = {address for url in (item.url, *item.mirrors) for address in (url, media_address(url))}
    if item.sha256 is None and "://" in origin and origin not in given and (manifest.folder / item.file).is_file():
        say(
            f"{item.file}: the one there is from {origin}, which the configuration does not name any more; to have "
            f"that of {item.url}, remove {manifest.folder / item.file} and {manifest.folder / MANIFEST}"
        )


def _cleared(manifest: Manifest) -> Manifest:
    """Make way where the trace was a generated one before: what we made, unchanged, goes."""
    for file in manifest.files:
        if manifest.intact(file):
            (manifest.folder / file).unlink()
    return Manifest(manifest.folder)


def _one(name: str, item: Download, manifest: Manifest, patience: Patience) -> None:
    """Have one file in the manifest's folder: as it lies there, from the folder of files fetched by hand, downloaded.

    What the user put somewhere is never overwritten or removed, right or wrong.
    """
    path = manifest.folder / item.file
    recorded = manifest.files.get(item.file)
    expected = item.sha256 or recorded
    if path.exists():
        checksum = _checked_by_user(name, item, expected, path, manifest)
        origin = manifest.origins.get(item.file, "put there by hand")
    elif (found := by_hand(name, item.file)) is not None:
        checksum, origin = _checked_by_user(name, item, expected, found, manifest), str(found)
        path.unlink(missing_ok=True)  # a link to where a file was once
        path.symlink_to(found)
        say(f"{item.file}: {found} is used")
    else:
        checksum, origin = _download(name, item, expected, manifest.folder, patience)
    if expected is None:
        say(f"{item.file}: no checksum is published; sha256 {checksum} is recorded and expected from now on")
    Part(path).discard()  # of a download that a file of the user's own has overtaken
    manifest.record(item.file, checksum, origin)


def _download(name: str, item: Download, expected: str | None, folder: Path, patience: Patience) -> tuple[str, str]:
    from rltune.traces.fetch.download import download  # its libraries take longer to load than a small trace to make

    return download(name, item, expected, folder, patience)


def _checked_by_user(name: str, item: Download, expected: str | None, path: Path, manifest: Manifest) -> str:
    """The sha256 of a file that lies at ``path``. Raises DataError, and leaves it alone, if it is not the right one."""
    if not path.is_file():
        raise DataError(f"trace {name}: {path} is a folder, expected the file {item.file} as it was downloaded.")
    try:
        return checked(path, item.file, item.bytes, expected)
    except WrongFile as wrong:
        first = f", recorded in {manifest.folder / MANIFEST} when the first one came" if expected != item.sha256 else ""
        here = path.parent == manifest.folder
        otherwise = "remove it" if here else f"unset {BY_HAND}"
        raise DataError(
            f"trace {name}: {path} is not the file expected: {wrong}{first}. It was left as it is. "
            f"Put the right one there (from {item.url}), or {otherwise} for it to be downloaded."
        ) from None
