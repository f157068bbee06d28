"""What a controller leaves on disk: which jobs it has touched, what it decided, figures for Prometheus, a lock.

``touched.json`` is written before Slurm is, so that after a crash it names every job that may have a priority of ours.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rltune.errors import DataError, RLTuneError
from rltune.files import write_json, write_text

FORMAT = 1


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
        return self.path / "rltune.prom"

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
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def touched(self) -> dict[int, int]:
        """Job → priority it was last given.

        Raises DataError where the file is not one of this version: then nobody can say what was touched.
        """
        if not self.touched_path.is_file():
            return {}
        try:
            content = json.loads(self.touched_path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise ValueError(f"format {content['format']}, expected {FORMAT}")
            return {int(job): int(priority) for job, priority in content["jobs"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{self.touched_path}: cannot be read ({error}); give the jobs with a priority of the "
                            "controller's band back with `rltune slurm release --band`, then delete it") from None  # fmt: skip

    def write_touched(self, jobs: Mapping[int, int]) -> None:
        """Replace the list, at once and durably."""
        write_json(self.touched_path, {"format": FORMAT, "jobs": {str(job): jobs[job] for job in sorted(jobs)}})

    def write_journal(self, line: dict[str, Any]) -> None:
        """Add a line."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.journal_path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n")

    def write_metrics(self, figures: Mapping[str, tuple[str, str, float]]) -> None:
        """Name → (kind, what it is, value)."""
        lines = [text for name, (kind, about, value) in figures.items() for text in (
            f"# HELP rltune_{name} {about}", f"# TYPE rltune_{name} {kind}", f"rltune_{name} {value:g}")]
        write_text(self.metrics_path, "\n".join(lines) + "\n")
