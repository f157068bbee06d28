"""What a controller leaves on disk: which jobs it has touched, what it decided, figures for Prometheus, a lock.

``touched.json`` is written before Slurm is, so that after a crash it names every job that may have a priority of ours.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rltune.errors import DataError, RLTuneError
from rltune.files import write_json, write_text

FORMAT = 1
JOURNAL_BYTES = 100_000_000
"""Length of decisions.jsonl from which a new one is begun; the one before is kept, older ones are not."""


@dataclass(frozen=True)
class Touch:
    """What a job was given."""

    priority: int
    """0 where only its over-subscription was changed."""
    before: int = 0
    """The controller's own priority that it had until then, and has still where this one did not arrive; 0 for none."""
    alone: bool = False
    """Whether it was given whole nodes."""
    missed: int = 0
    """Answers in a row that did not show it waiting with this priority, or running."""

    def gave(self, priority: int) -> bool:
        """Whether a priority is one that the controller gave this job."""
        return priority > 0 and priority in (self.priority, self.before)


def _touch(told: Mapping[str, Any]) -> Touch:
    return Touch(int(told["priority"]), int(told["before"]), bool(told["alone"]), int(told.get("missed", 0)))


class Busy(RLTuneError):
    """Another controller is at work."""


class Folder:
    """The files of one controller."""

    def __init__(self, path: Path) -> None:
        self.path = path

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
                raise Busy(f"{self.path}: a controller (process {who}) is at work with this folder; stop that one first, "
                           "or give this one another `folder` and other partitions") from None  # fmt: skip
            with suppress(OSError):  # on a full disk the lock holds all the same, without a name to tell
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), str(os.getpid()).encode())
            yield

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

    def touched(self) -> dict[int, Touch]:
        """Job → what it was last given.

        Raises DataError where the file is not one of this version: then nobody can say what was touched.
        """
        if not self.touched_path.is_file():
            return {}
        try:
            content = json.loads(self.touched_path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise ValueError(f"format {content['format']}, expected {FORMAT}")
            return {int(job): _touch(told) for job, told in content["jobs"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{self.touched_path}: cannot be read ({error}); give the jobs with a priority of the "
                            "controller's band back with `rltune slurm release --band`, then delete it") from None  # fmt: skip

    def write_touched(self, jobs: Mapping[int, Touch]) -> None:
        """Replace the list at once."""
        write_json(self.touched_path, {"format": FORMAT, "jobs": {str(job): asdict(jobs[job]) for job in sorted(jobs)}})

    def write_journal(self, *lines: dict[str, Any]) -> None:
        """Add lines, in one write; a file of JOURNAL_BYTES is put aside as ``decisions.1.jsonl`` first."""
        if not lines:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        if self.journal_path.is_file() and self.journal_path.stat().st_size > JOURNAL_BYTES:
            os.replace(self.journal_path, self.path / "decisions.1.jsonl")
        with open(self.journal_path, "a", encoding="utf-8") as file:
            file.write("".join(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n" for line in lines))

    def write_metrics(self, figures: Mapping[str, tuple[str, str, float]]) -> None:
        """Name → (kind, what it is, value)."""
        lines = [text for name, (kind, about, value) in figures.items() for text in (
            f"# HELP rltune_{name} {about}", f"# TYPE rltune_{name} {kind}", f"rltune_{name} {float(value)!r}")]
        write_text(self.metrics_path, "\n".join(lines) + "\n")


def told(folder: Folder) -> str:
    """The state of a controller's folder in lines; nothing is written."""
    who = folder.at_work()
    lines = [f"{folder.path}: {f'a controller (process {who}) is at work' if who else 'no controller is at work'}"]
    lines.append(f"{len(folder.touched())} jobs have been given priorities or nodes to themselves")
    if folder.metrics_path.is_file():
        figures = [line for line in folder.metrics_path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
        lines += [f"  {_figure(*line.removeprefix('rltune_').rsplit(' ', 1))}" for line in figures]
    return "\n".join(lines)


def _figure(name: str, value: str) -> str:
    """A figure for people: a time on this machine's clock, seconds to the millisecond, other numbers as they are."""
    if name.endswith("_time_seconds"):
        return f"{name.removesuffix('_seconds')} {datetime.fromtimestamp(float(value)):%Y-%m-%d %H:%M:%S}"
    return f"{name} {float(value):{'.3f' if name.endswith('_seconds') else '.10g'}}"
