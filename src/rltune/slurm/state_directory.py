"""What a controller keeps on disk: the jobs that it assigned priorities, what it decided, metrics for Prometheus, a lock.

``assigned.json`` is written before Slurm is, so that after a crash it names every job that may have a priority of the
controller's. The process that writes it also knows its content, and notices when somebody removes or changes list or lock.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rltune.errors import DataError, RLTuneError
from rltune.files import SECRET, write_text
from rltune.slurm.ownership import Ownership

GONE = (0, 0, 0)
"""Stamp of a file that is not there."""
JOURNAL_BYTES = 100_000_000
"""Length of decisions.jsonl from which a new file is started; the one before is kept, older ones are not."""


class StateDirectory:
    """The files of one controller."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.assigned_path = path / "assigned.json"
        self.journal_path = path / "decisions.jsonl"
        self.metrics_path = path / "metrics.prom"
        self._lock_path, self._pid_path = path / "lock", path / "controller.pid"
        self._locked: int | None = None
        self._known: Ownership | None = None
        self._written, self._stamp = Ownership(), GONE

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only controller here; the kernel releases the lock when a process ends, however it ends.

        Raises RLTuneError where another one is running.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._lock_path, mode=SECRET, blocking=False, is_singleton=False)
        try:
            lock.acquire()
        except Timeout:
            raise RLTuneError(
                f"{self.path}: a controller (process {self._process()}) is running with this directory; stop it first, "
                "or give this one another `state_directory` and other partitions"
            ) from None
        try:
            with suppress(OSError):  # on a full disk the lock holds all the same, without a process id
                self._pid_path.write_text(str(os.getpid()))
                self._lock_path.chmod(SECRET)  # whoever may read it could hold it
            self._locked = _stamp(self._lock_path)[0]
            yield
        finally:
            self._locked = None
            lock.release()

    def check_lock(self) -> None:
        """Raise DataError where the lock that this process holds is not the directory's any more."""
        if self._locked is not None and _stamp(self._lock_path)[0] != self._locked:
            raise DataError(
                f"{self._lock_path}: somebody has removed it, so that a second controller could have started"
            )

    def running(self) -> str:
        """Process id of the controller that holds the lock, "unknown" where it left none; "" where there is none."""
        if not self._lock_path.exists():
            return ""
        try:
            with FileLock(self._lock_path, mode=SECRET, blocking=False, is_singleton=False):
                return ""
        except Timeout:
            return self._process()
        except PermissionError:  # another user's lock cannot be tried
            process = self._process()
            return process if Path("/proc", process).exists() else ""

    def _process(self) -> str:
        with suppress(OSError):
            return self._pid_path.read_text(encoding="utf-8").strip() or "unknown"
        return "unknown"

    def ownership(self) -> Ownership:
        """The list: which jobs were assigned what. Empty where there is none and this process has known of none.

        Raises DataError where the file is not of this version, or has been removed or changed since this process read or
        wrote it: then nobody can tell from the file what was assigned.
        """
        stamp = _stamp(self.assigned_path)
        if self._known is not None and stamp == self._stamp:
            return self._known
        found = Ownership() if stamp == GONE else self._read()
        if self._known is not None and (stamp == GONE or found != self._written):
            verb = "removed" if stamp == GONE else "changed"
            raise DataError(f"{self.assigned_path}: somebody has {verb} the list while the controller was running")
        self._written, self._stamp = found, stamp
        self._known = found if self._known is None else self._known
        return self._known

    def known(self) -> Ownership:
        """What this process knows of the list, whatever became of the file. Raises DataError as :meth:`ownership` does where
        it has not read the list yet."""
        return self.ownership() if self._known is None else self._known

    def keep(self, ownership: Ownership) -> None:
        """Know a list that may not be on the disk yet."""
        self._known = ownership

    def write(self, ownership: Ownership) -> None:
        """Replace the list, on the disk when this returns; an equal list is not written again."""
        if ownership != self._written or self._stamp != _stamp(self.assigned_path):
            write_text(self.assigned_path, json.dumps(ownership.as_json(), separators=(",", ":")) + "\n", durable=True)
            self._written, self._stamp = ownership, _stamp(self.assigned_path)
        self._known = ownership

    def _read(self) -> Ownership:
        try:
            return Ownership.from_json(json.loads(self.assigned_path.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{self.assigned_path}: cannot be read ({error}); release the jobs with a priority of the "
                "controller's band with `rltune slurm release --band`, then delete it"
            ) from None

    def write_journal(self, *lines: dict[str, Any]) -> None:
        """Append lines, in one write; a file of JOURNAL_BYTES is renamed to ``decisions.1.jsonl`` first.

        A line that a full disk has cut off stays as it is, and these start on a line of their own.
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

    def write_metrics(self, metrics: Mapping[str, tuple[str, str, float]]) -> None:
        """Write metrics, name → (kind, description, value), for Prometheus' node exporter."""
        text = "".join(
            f"# HELP rltune_{name} {about}\n# TYPE rltune_{name} {kind}\nrltune_{name} {float(value)!r}\n"
            for name, (kind, about, value) in metrics.items()
        )
        new = self.path / "metrics.new"  # the exporter reads every name that ends in .prom
        new.write_text(text, encoding="utf-8")
        os.replace(new, self.metrics_path)

    def describe(self) -> str:
        """The directory's state in lines; nothing is written. Raises DataError where it is none or a file in it is damaged."""
        if not self.path.is_dir():
            raise DataError(
                f"{self.path}: {'a file' if self.path.exists() else 'no such directory'}; expected the state directory "
                "that a controller makes when it starts"
            )
        process, ownership = self.running(), self.ownership()
        lines = [f"{self.path}: {f'a controller (process {process}) is running' if process else 'no controller runs'}"]
        lines.append(f"{len(ownership.present)} jobs have been assigned priorities or nodes to themselves")
        if ownership.overridden:
            lines.append(
                f"somebody has set the priorities of {len(ownership.overridden)} jobs since; they are left to Slurm"
            )
        if self.metrics_path.is_file():
            try:
                metrics = [line for line in self.metrics_path.read_text("utf-8").splitlines() if line[:1] != "#"]
                lines += [f"  {_metric(*line.removeprefix('rltune_').rsplit(' ', 1))}" for line in metrics]
            except (ValueError, TypeError, OverflowError) as error:
                raise DataError(
                    f"{self.metrics_path}: cannot be read ({error}); a controller writes it again every cycle"
                ) from None
        return "\n".join(lines)


def _metric(name: str, value: str) -> str:
    """A metric for people: a time on this machine's clock, seconds to the millisecond, other numbers as they are."""
    if name.endswith("_time_seconds"):
        return f"{name.removesuffix('_seconds')} {datetime.fromtimestamp(float(value)):%Y-%m-%d %H:%M:%S}"
    return f"{name} {float(value):{'.3f' if name.endswith('_seconds') else '.10g'}}"


def _stamp(path: Path) -> tuple[int, int, int]:
    """A file's inode, time of change and size; GONE where there is no file."""
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
