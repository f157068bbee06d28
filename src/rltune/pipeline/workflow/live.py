"""How far a run is, in one line: rewritten on a terminal, printed now and then elsewhere; and how it went wrong."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import TextIO

from rltune.config import Workspace
from rltune.pipeline.notebook import stopped_at
from rltune.pipeline.workflow.costs import Costs
from rltune.pipeline.workflow.jobs import Job, Record
from rltune.traces.fetch.progress import time_text

FIRST_S, LONGEST_S = 15.0, 600.0
"""Without a terminal: the first pause between two lines, which doubles each time, and the longest."""
REWRITE_S = 2.0
"""On a terminal: how often the line is rewritten where nothing happened."""
MOST_NAMED = 4
"""So many of the jobs that run are named in the line."""
SCHEDULER = re.compile(
    r"(srun|slurmstepd|slurmd|bash|/usr/bin/bash)\b.*(error|fatal|kill|not found|limit)", re.IGNORECASE
)
"""Lines of a job's log in which the scheduler, or the shell that it started, says what went wrong."""
CLOCKS_S = 5.0
"""So far may the clocks of a cluster's machines be apart."""
LAST_LINES = 15
"""So much is shown of the log of a stage that failed."""


class Live:
    """Watches a run's record and says what happens; :meth:`tick` is called again and again."""

    def __init__(self, workspace: Workspace, record: Record, out: TextIO) -> None:
        self.workspace, self.record, self.out = workspace, record, out
        self.costs = Costs(workspace)
        self.terminal = out.isatty()
        self.pause = REWRITE_S if self.terminal else FIRST_S
        self.said = time.monotonic()
        record.read()

    def tick(self) -> None:
        """Say what is new, and from time to time how far the run is."""
        news = self.record.read()
        for event, job in news:
            name = job.label(self.workspace.config)
            if event == "finished":
                seconds = self.costs.took(job, self.record.finished[job.key])
                self.costs.learn(job, seconds)
                self._say(f"done: {name}, {time_text(seconds)}")
            elif event == "again":
                self._say(f"again: {name}")
            else:
                self._say(f"FAILED: {name}\n{failure(self.workspace, self.record, job)}")
        if time.monotonic() - self.said >= self.pause or (self.terminal and news):
            self.said = time.monotonic()
            line = progress(self.workspace, self.record, self.costs)
            if self.terminal:
                width = shutil.get_terminal_size().columns - 1
                self.out.write(f"\r\x1b[2K{line if len(line) <= width else line[: width - 1] + '…'}")
                self.out.flush()
            else:
                self.pause = min(2 * self.pause, LONGEST_S)
                self._say(line)

    def close(self, status: int) -> None:
        """Say the last: after a failure where to look."""
        self.pause = float("inf")
        self.tick()
        if self.terminal:
            self._say("")
        if status:
            if not self.record.failed and not self.record.finished:
                self._say(_end(self.record.log))
            self._say(f"stopped; all that was said is in {self.record.log}")

    def _say(self, text: str) -> None:
        """Print lines, above the line that is rewritten where there is one."""
        start = "\r\x1b[2K" if self.terminal else ""
        self.out.write(start + text + ("\n" if text else ""))
        self.out.flush()


def cells_text(workspace: Workspace, left: list[Job]) -> str:
    """How many of the run's cells are trained and judged, given the jobs that are not done (maybe of a part of it)."""
    cells = workspace.config.cells()
    undone = {job.wildcards["cell"] for job in left if "cell" in job.wildcards}
    done = sum(cell.name not in undone and workspace.windows(cell).is_file() for cell in cells)
    return f"{done} of {len(cells)} cells done"


def progress(workspace: Workspace, record: Record, costs: Costs) -> str:
    """How far a run at work is: cells, stages, what runs, time left."""
    left = record.left
    parts = [cells_text(workspace, left), f"{len(record.planned) - len(left)} of {len(record.planned)} stages"]
    if running := running_text(workspace, record, costs):
        parts.append(running)
    began = at_work_s(workspace, record)
    parts.append(f"about {time_text(costs.time(left, record.cores, began))} left")
    return "; ".join(parts)


def at_work_s(workspace: Workspace, record: Record) -> dict[str, float]:
    """For how long each job has run, by key, seconds; of those with a scheduler only what left its queue is here, and
    the time in the queue is counted with it."""
    now = time.time()
    return {
        key: now - started
        for key, started in record.running.items()
        if not record.scheduler or _left_queue(workspace, record.planned[key], started)
    }


def _left_queue(workspace: Workspace, job: Job, sent: float) -> bool:
    """Whether a job that was sent to a scheduler runs: it has written to its log since."""
    logs = [workspace.base / name for name in job.log]
    return any(path.is_file() and path.stat().st_mtime > sent - CLOCKS_S for path in logs)


def running_text(workspace: Workspace, record: Record, costs: Costs) -> str:
    """What runs, since when, and how far trainings are; with a scheduler also how many wait there."""
    at_work, told = at_work_s(workspace, record), []
    for key in list(at_work)[:MOST_NAMED]:
        job = record.planned[key]
        epochs = f"epoch {done[0]} of {done[1]}, " if (done := costs.epochs(job)) else ""
        told.append(f"{job.label(workspace.config)} ({epochs}{time_text(at_work[key])})")
    if len(at_work) > MOST_NAMED:
        told.append(f"and {len(at_work) - MOST_NAMED} more")
    if waiting := len(record.running) - len(at_work):
        told.append(f"{waiting} in the queue of {record.scheduler}")
    return ", ".join(told)


def failure(workspace: Workspace, record: Record, job: Job) -> str:
    """Why a job failed: the error in its executed notebook, or the end of its log; and where that is."""
    for name in job.log:
        path = workspace.base / name
        if not path.is_file() or path.stat().st_mtime < record.failed.get(job.key, 0.0):
            continue  # it ended before it wrote any
        if said := stopped_at(path) if path.suffix == ".ipynb" else _end(path):
            return f"{said}\n  {path}"
    for path in map(Path, record.scheduler_logs.get(job.key, ())):
        if said := _of_scheduler(workspace.base / path):
            return f"{said}\n  {path}"
    return f"{_said(record.log) or '  it left no error of its own: it was killed, or stopped'}\n  {record.log}"


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return [line for line in text.splitlines() if line.strip()]


def _end(path: Path) -> str:
    return "\n".join(f"  {line}" for line in _lines(path)[-LAST_LINES:])


def _of_scheduler(path: Path) -> str:
    """What a job's log at the scheduler says of its end: our own explanation, the scheduler's errors, or its last
    lines."""
    lines = _lines(path)
    told = [line for line in lines if line.startswith("rltune: ")] or [line for line in lines if SCHEDULER.match(line)]
    return "\n".join(f"  {line}" for line in (told or lines)[-LAST_LINES:])


def _said(log: Path) -> str:
    """The last of our own explanations among all that was said."""
    return next((f"  {line}" for line in reversed(_lines(log)) if line.startswith("rltune: ")), "")
