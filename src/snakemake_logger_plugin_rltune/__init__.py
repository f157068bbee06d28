"""Snakemake's logger plugin `rltune`: how far a run is, in one line, with the time left; and why a job failed.

Snakemake finds it by the name of this package: ``--logger rltune``. On a terminal the line is rewritten, elsewhere it is
printed now and then. The time left is from the mean of what jobs of each rule took, in this run or in earlier ones here.
"""

import json
import shutil
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from logging import LogRecord
from pathlib import Path
from textwrap import shorten

from snakemake_interface_logger_plugins.base import LogHandlerBase

from rltune.files import write_json

SECONDS = Path(".cache") / "rltune" / "seconds.json"
"""Mean seconds of a job by rule, of earlier runs in this folder."""
TYPICAL_S = {"train": 45.0, "example_schedules": 40.0, "deploy": 80.0, "baselines": 20.0}
"""The same on two cores, of rules that have not run here; the default run."""
OTHER_S = 10.0
FIRST_S, LONGEST_S = 15.0, 600.0
"""Without a terminal: the first pause between two lines, which doubles each time, and the longest."""
INTERRUPTED = "Terminating processes on user request"
"""How Snakemake says that it got Ctrl-C: it stops its jobs."""
TERMINATED = "Will exit after finishing"
"""How it says, whenever a job ends, that it got SIGTERM: it starts no other job."""
MOST_JOBS = 1000
"""So many jobs, at most, are assumed to run side by side on a cluster: Snakemake may set no limit."""
LAST_LINES = 15
"""So many lines of the log of a failed job are shown."""


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 5 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def failure(log: Path) -> str:
    """The error in an executed notebook, or the end of a log, and where it is."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    lines = [line for line in text.splitlines() if line.strip()][-LAST_LINES:]
    if log.suffix == ".ipynb":
        lines = []
        with suppress(ValueError):  # cut off, on a full disk
            outputs = [o for cell in json.loads(text)["cells"] for o in cell.get("outputs", ())]
            lines = [f"{o['ename']}: {o['evalue']}" for o in outputs if o["output_type"] == "error"]
    return "\n".join(f"  {line}" for line in [*lines, log])


class LogHandler(LogHandlerBase):
    """Prints what Snakemake would, shorter."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.pause = 2.0 if self.terminal else FIRST_S
        self.left: Counter[str] = Counter()
        self.jobs: dict[int, tuple[str, str]] = {}  # id → rule, message
        self.running: dict[int, float] = {}  # id → started
        self.report = ""
        self.done = self.planned = 0
        self.cores = 1
        self.took: dict[str, list[float]] = {}
        self.known: dict[str, float] = {}
        with suppress(OSError, ValueError):  # none yet, or cut off
            self.known = json.loads(SECONDS.read_text())
        self.stopping = False
        self.closing = threading.Event()
        threading.Thread(target=self._tick, daemon=True).start()

    def emit(self, record: LogRecord) -> None:
        """Take in one event of Snakemake's."""
        given = vars(record)
        match str(given.get("event") or ""):
            case "run_info":
                counts = {rule: n for rule, n in given["stats"].items() if rule not in ("all", "total")}
                self.left, self.planned = Counter(counts), sum(counts.values())
                if self.planned and not self.common_settings.dryrun:
                    like = "in earlier runs here" if "train" in self.known else "in the default run"
                    assumed = f" if an agent trains as long as {like}" * ("train" in self.left)
                    self._say(f"{self.planned} jobs, about {duration(self._left_s())}{assumed}")
            case "resources_info":
                self.cores = given.get("cores") or min(given.get("nodes") or self.cores, MOST_JOBS)
            case "job_info":
                self.jobs[given["jobid"]] = given["rule_name"], given["rule_msg"] or given["rule_name"]
                if given["rule_name"] == "report":
                    self.report = str(given["output"][0])
                if self.common_settings.dryrun:
                    why = shorten(str(given["reason"]), 160, placeholder=" …", break_on_hyphens=False)
                    self._say(f"would run: {self.jobs[given['jobid']][1]}: {why}")
            case "job_started":
                self.running |= dict.fromkeys(given["jobs"], time.monotonic())
            case "job_finished":
                self._finished(given["job_id"])
            case "job_error":
                self.running.pop(given["jobid"], None)
                name = self.jobs.get(given["jobid"], ("", given["rule_name"]))[1]
                if self.stopping:
                    return
                self._say("\n".join([f"FAILED: {name}", *(failure(Path(log)) for log in given["log"])]))
            case "" if record.getMessage().startswith(INTERRUPTED):
                self.stopping = True
                self._say_stopping("seconds here, on a cluster until they are over; Ctrl-C again does not wait")
            case "" if record.getMessage().startswith(TERMINATED):
                self._say_stopping("no other is started")
            case "error" if given.get("exception") != "RuleException" and "did not complete" not in record.getMessage():
                self._say(record.getMessage().removeprefix("WorkflowError: "))
            case "" if record.levelname in ("ERROR", "CRITICAL", "WARNING"):
                self._say(record.getMessage())

    def close(self) -> None:
        """End the line, and keep what jobs took for the next run."""
        self.closing.set()
        if self.terminal:
            sys.stderr.write("\r\x1b[2K")
        if self.took:
            self.known |= {rule: sum(took) / len(took) for rule, took in self.took.items()}
            with suppress(OSError):  # no room: the next run knows less of its time
                write_json(SECONDS, self.known)
        super().close()

    def _finished(self, job: int) -> None:
        rule, name = self.jobs.get(job, ("", ""))
        if rule not in self.left:  # the target `all`
            return
        seconds = time.monotonic() - self.running.pop(job, time.monotonic())
        self.took[rule] = [*self.took.get(rule, []), seconds]  # _tick reads it in its own thread
        self.left[rule] -= 1
        self.done += 1
        self._say(f"done: {name}, {duration(seconds)}")
        if rule == "report":
            self._say(f"report: {self.report}")

    def _say_stopping(self, how: str) -> None:
        if self.running:
            number = f"{len(self.running)} job{'s' * (len(self.running) != 1)}"
            self._say(f"stopping: waiting for {number} to end, {how}. The same command goes on from there")

    def _left_s(self) -> float:
        """Seconds until the end: what is left, less what running jobs have done, on all cores.

        Until a job of a rule has ended, others of it are expected to take as long as the oldest has run by now.
        """
        now = time.monotonic()
        expected = TYPICAL_S | self.known
        at_work = [(self.jobs[job][0], now - started) for job, started in [*self.running.items()]]
        for rule, seconds in at_work:
            expected[rule] = max(seconds, expected.get(rule, OTHER_S))
        expected |= {rule: sum(took) / len(took) for rule, took in [*self.took.items()]}
        whole = sum(n * expected.get(rule, OTHER_S) for rule, n in self.left.items())
        done = sum(min(seconds, expected[rule]) for rule, seconds in at_work)
        return max(whole - done, 0.0) / self.cores

    def _tick(self) -> None:
        while not self.closing.wait(self.pause):
            if not self.running:
                continue
            now = time.monotonic()
            names = [f"{self.jobs[job][1]} ({duration(now - started)})" for job, started in [*self.running.items()][:3]]
            line = f"{self.done} of {self.planned} jobs, about {duration(self._left_s())} left; {', '.join(names)}"
            if self.terminal:
                sys.stderr.write(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}")
                sys.stderr.flush()
            else:
                self.pause = min(2 * self.pause, LONGEST_S)
                self._say(line)

    def _say(self, text: str) -> None:
        """Print lines, above the one that is rewritten."""
        sys.stderr.write(("\r\x1b[2K" if self.terminal else "") + text + "\n")
        sys.stderr.flush()
