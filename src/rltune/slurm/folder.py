"""What a controller leaves on disk: which jobs it has touched, what it decided, figures for Prometheus, a lock.

``touched.json`` is written before Slurm is, so that after a crash it names every job that may have a priority of ours.
The process that writes it knows its content besides, and sees when somebody takes list or lock away.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from rltune.errors import DataError, RLTuneError
from rltune.files import write_text
from rltune.slurm.touched import Owned, Touch, from_json

GONE = (0, 0, 0)
"""Stamp of a file that is not there."""
JOURNAL_BYTES = 100_000_000
"""Length of decisions.jsonl from which a new one is begun; the one before is kept, older ones are not."""


class Busy(RLTuneError):
    """Another controller is at work."""


class Folder:
    """The files of one controller."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._locked: tuple[int, int] | None = None
        self._kept: Owned | None = None
        self._written, self._stamp = Owned(), GONE

    @property
    def touched_path(self) -> Path:
        """Jobs that have a priority of the controller's."""
        return self.path / "touched.json"

    @property
    def journal_path(self) -> Path:
        """Decisions, a JSON object a line."""
        return self.path / "decisions.jsonl"

    @property
    def metrics_path(self) -> Path:
        """Figures in the text format that Prometheus' node exporter collects."""
        return self.path / "metrics.prom"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only controller here; the kernel lets go of the lock when a process ends, however it does.

        Raises Busy where another one is at work.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / "lock", "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                who = file.read().strip() or "unknown"
                raise Busy(
                    f"{self.path}: a controller (process {who}) is at work with this folder; stop that one first, "
                    "or give this one another `folder` and other partitions"
                ) from None
            with suppress(OSError):  # on a full disk the lock holds all the same, without a name to tell
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), str(os.getpid()).encode())
            self._locked = _same(os.fstat(file.fileno()))
            try:
                yield
            finally:
                self._locked = None

    def check_lock(self) -> None:
        """Raise DataError where the lock that this process holds is not the folder's any more."""
        if self._locked is None:
            return
        path = self.path / "lock"
        try:
            there = _same(os.stat(path)) == self._locked
        except FileNotFoundError:
            there = False
        if not there:
            raise DataError(f"{path}: somebody has removed it, so that a second controller could have started")

    def at_work(self) -> str:
        """Process id of the controller that holds the lock, "unknown" where it left none; "" where there is none."""
        try:
            with open(self.path / "lock", encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return file.read().strip() or "unknown"
        except FileNotFoundError:
            return ""
        return ""

    def owned(self) -> Owned:
        """The list: which jobs were given what. Empty where there is none and this process has known of none.

        Raises DataError where the file is not one of this version, or has been removed or changed since this process read
        or wrote it: then nobody can say from the file what was touched.
        """
        stamp = self._stamp_now()
        if self._kept is not None and stamp == self._stamp:
            return self._kept
        if stamp == GONE and self._kept is None:
            found = Owned()
        elif stamp == GONE:
            raise DataError(f"{self.touched_path}: somebody has removed the list while the controller was at work")
        else:
            found = self._read()
            if self._kept is not None and found != self._written:
                raise DataError(f"{self.touched_path}: somebody has changed the list while the controller was at work")
        self._written, self._stamp = found, stamp
        self._kept = found if self._kept is None else self._kept
        return self._kept

    def kept(self) -> Owned:
        """What this process knows of the list, whatever became of the file. Raises DataError as :meth:`owned` does where it
        has not read it yet."""
        return self.owned() if self._kept is None else self._kept

    def keep(self, owned: Owned) -> None:
        """Know a list that may not be on the disk yet."""
        self._kept = owned

    def touched(self) -> dict[int, Touch]:
        """Job → what it was last given, as the file says now, whoever wrote it; raises DataError where it cannot be read."""
        return {} if self._stamp_now() == GONE else self._read().touched

    def write_touched(self, jobs: Mapping[int, Touch], theirs: Mapping[int, int] | None = None) -> None:
        """Replace the list at once, so that it is on the disk when this returns; nothing is written that is there."""
        owned = Owned(dict(jobs), dict(theirs or {}))
        if owned != self._written or self._stamp != self._stamp_now():
            write_text(self.touched_path, json.dumps(owned.as_json(), separators=(",", ":")) + "\n", durable=True)
            self._written, self._stamp = owned, self._stamp_now()
        self._kept = owned

    def _read(self) -> Owned:
        try:
            return from_json(json.loads(self.touched_path.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{self.touched_path}: cannot be read ({error}); give the jobs with a priority of the "
                "controller's band back with `rltune slurm release --band`, then delete it"
            ) from None

    def _stamp_now(self) -> tuple[int, int, int]:
        try:
            stat = os.stat(self.touched_path)
        except (FileNotFoundError, NotADirectoryError):
            return GONE
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def write_journal(self, *lines: dict[str, Any]) -> None:
        """Add lines, in one write; a file of JOURNAL_BYTES is put aside as ``decisions.1.jsonl`` first.

        A line that a full disk has cut off before is left as it is, and these begin on one of their own.
        """
        if not lines:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        if self.journal_path.is_file() and self.journal_path.stat().st_size > JOURNAL_BYTES:
            os.replace(self.journal_path, self.path / "decisions.1.jsonl")
        text = "".join(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n" for line in lines)
        with open(self.journal_path, "ab+") as file:
            if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                text = "\n" + text
            file.write(text.encode())

    def write_metrics(self, figures: Mapping[str, tuple[str, str, float]]) -> None:
        """Name → (kind, what it is, value)."""
        lines = [
            text
            for name, (kind, about, value) in figures.items()
            for text in (
                f"# HELP rltune_{name} {about}",
                f"# TYPE rltune_{name} {kind}",
                f"rltune_{name} {float(value)!r}",
            )
        ]
        write_text(self.metrics_path, "\n".join(lines) + "\n")


def told(folder: Folder) -> str:
    """The state of a controller's folder in lines; nothing is written."""
    who = folder.at_work()
    lines = [f"{folder.path}: {f'a controller (process {who}) is at work' if who else 'no controller is at work'}"]
    owned = folder.owned()
    lines.append(f"{len(owned.touched)} jobs have been given priorities or nodes to themselves")
    if owned.theirs:
        lines.append(f"{len(owned.theirs)} jobs had theirs set by somebody else since, and are left to Slurm")
    if folder.metrics_path.is_file():
        figures = [line for line in folder.metrics_path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
        lines += [f"  {_figure(*line.removeprefix('rltune_').rsplit(' ', 1))}" for line in figures]
    return "\n".join(lines)


def _figure(name: str, value: str) -> str:
    """A figure for people: a time on this machine's clock, seconds to the millisecond, other numbers as they are."""
    if name.endswith("_time_seconds"):
        return f"{name.removesuffix('_seconds')} {datetime.fromtimestamp(float(value)):%Y-%m-%d %H:%M:%S}"
    return f"{name} {float(value):{'.3f' if name.endswith('_seconds') else '.10g'}}"


def _same(stat: os.stat_result) -> tuple[int, int]:
    """What two names of one file have in common."""
    return stat.st_dev, stat.st_ino
