"""Read Slurm's queue and nodes and write priorities with its own commands, never through a shell.

Changes go to the standard input of one ``scontrol``, a line each. A line that is no command comes first, and follows each:
scontrol's complaint about it ("invalid keyword: ...") separates its answers from one another, and from what it says at its
start. scontrol gets only numbers and names of nodes, never a name that a user chose.
"""

import os
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rltune.errors import SlurmError, SlurmUnavailable
from rltune.slurm import answers
from rltune.slurm.records import ENDED_STATES, UNFINISHED_STATES, Change, JobState, Outcome, Parsed, SlurmJob, SlurmNode
from rltune.slurm.systemd import notify
from rltune.slurm.values import ranges

SPEED = "RLTUNE_CLOCK_SPEED"
"""Environment variable that an emulated cluster sets for programs on its fast clock."""
MARK = "rltune-mark-"
START = f"{MARK}start"
"""The line before the first change."""
MARKED = re.compile(rf"{MARK}(\d+)\s*$")
VERSION = re.compile(r"\d+\.\d\S*$", re.ASCII)
STATE_LINE = re.compile(r"(\d+)\|(\d+)\|([A-Z_]+)\|(\d+)\|(\d+|N/A)\|\.", re.ASCII)
MADE = ": No error"
"""End of scontrol's line about tasks of an array that a change has reached, where others have ended or been held since."""
NOT_NOW = "not available right now"
"""scontrol of a job that slurmdbd does not know yet, just after sbatch."""
FIRST_BATCH, LARGEST_BATCH = 50, 500
"""Changes that one scontrol is given before any was timed, and at most: each batch has the time limit to itself."""
PART_OF_LIMIT = 1 / 3
"""Part of the time limit that a batch is expected to take, by the time that the changes before it took."""
LIMITS = 10
"""Time limits after which no further batch is sent: what is left follows in the next cycle."""
TIMED_OUT = -1000
"""In place of the exit status of a command that was killed at the time limit."""
MIN_JOB_AGE = re.compile(r"^MinJobAge\s*=\s*(\d+)", re.MULTILINE)
PURGE_S = 120.0
"""Longest time that slurmctld takes to drop a job whose MinJobAge is over: it looks once a minute."""
FOREVER_S = 7 * 86400.0
"""How long ended jobs are followed where MinJobAge is 0, with which Slurm never drops them."""
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 3.0)
"""Pauses between tries of changes that are not possible yet."""
UNKNOWN = re.compile(r"invalid job id", re.IGNORECASE)
"""Slurm's words for a job that it does not know."""
UNCONFIGURED = re.compile(r"fetch_config|resolve_ctls_from_dns|establish_config_source", re.IGNORECASE)
"""What a command says that finds no slurm.conf."""
SILENCE = re.compile(
    r"unable to contact|connect failure|connection refused|socket timed out|unexpected message received|zero bytes|"
    r"controller .*not responding|could not (load|establish) (a )?conf|protocol authentication|"
    r"communication connection failure|in standby mode|can't find an address|incompatible versions|"
    r"message (send|receive) failure|connection (reset|timed out)|no route to host",
    re.IGNORECASE,
)
"""Slurm's words when its controller does not answer."""
NO_JSON = re.compile(r"unrecognized option.*json|serializer|data_parser", re.IGNORECASE)
"""Words of a build without JSON when asked for it."""
OUTPUT_VARIABLES = ("SQUEUE_", "SINFO_", "SCONTROL_", "SLURM_CLUSTERS", "SLURM_JSON", "SLURM_YAML", "SLURM_BITSTR_LEN")
"""Beginnings of environment variables that change what the commands print."""


class Client:
    """One Slurm cluster, reached through the commands squeue, sinfo and scontrol.

    ``config``: its slurm.conf; default: where Slurm looks for it (``SLURM_CONF``, /etc/slurm). ``timeout_s``: how long
    a command may take, in seconds of the true clock. ``env``: environment of the commands; default: this process's.

    Methods raise :class:`rltune.errors.SlurmUnavailable` where Slurm does not answer (the command is absent, the
    controller is down or silent for ``timeout_s``) and :class:`rltune.errors.SlurmError` where its answer as a whole
    cannot be read.
    """

    def __init__(
        self, config: Path | str | None = None, timeout_s: float = 30.0, env: Mapping[str, str] | None = None
    ) -> None:
        if config is not None and not Path(config).is_file():
            raise SlurmUnavailable(f"{config}: no such file, expected Slurm's slurm.conf")
        given = dict(os.environ if env is None else env)
        self.env = {name: value for name, value in given.items() if not name.startswith(OUTPUT_VARIABLES)}
        self.env |= {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C.UTF-8"}
        if config is not None:
            self.env["SLURM_CONF"] = str(Path(config).resolve())
        self.timeout_s = timeout_s
        self._speed = clock_speed()  # waits here are by this process's clock
        self._change_s: float | None = None  # what the last changes took, each
        self._tasks: dict[int, str] = {}  # of the jobs that were read last, those of arrays' rests

    def version(self) -> str:
        """Slurm's version, such as 22.05.8, as its commands report it (without the controller)."""
        text = self._run(["scontrol", "--version"]).stdout.strip()
        if (found := VERSION.search(text)) is None:
            raise SlurmError(f"scontrol --version: found {text[:80]!r}, expected slurm and its version")
        return found[0]

    def jobs(self) -> Parsed[SlurmJob]:
        """Every job that waits or holds nodes; the waiting rest of an array is one of them."""
        read = answers.jobs_from_json(self._run(["squeue", "--all", "--json"]).stdout)
        unfinished = tuple(job for job in read.records if job.state in UNFINISHED_STATES)
        self._tasks = {job.id: job.tasks for job in unfinished if job.tasks}
        return Parsed(unfinished, read.faults)  # without jobs that ended recently

    def nodes(self) -> Parsed[SlurmNode]:
        """Every node."""
        return answers.nodes_from_json(self._run(["sinfo", "--all", "-N", "--json"]).stdout)

    def update(self, changes: Sequence[Change]) -> list[Outcome]:
        """Change waiting jobs; one outcome a change, in their order.

        A job that has started, ended or gone in the meantime is an outcome, not an error; so is a change without an answer
        after others had one.
        """
        return self._execute([(change.job, _update_line(change, self._address(change.job))) for change in changes])

    def release(self, ids: Iterable[int]) -> list[Outcome]:
        """Let Slurm compute the priorities of jobs again. Releases jobs that their users hold, too."""
        return self._execute([(job, f"release {self._address(job)}") for job in ids])

    def states(self, ids: Iterable[int]) -> dict[int, JobState]:
        """State and priority of jobs, including those that ended recently; without jobs that Slurm does not show.

        Under the id of an array is its waiting rest, or one of its tasks where that is all there is of it.
        """
        wanted = sorted(set(ids))
        found: dict[int, JobState] = {}
        for k in range(0, len(wanted), LARGEST_BATCH):
            found |= self._states(wanted[k : k + LARGEST_BATCH])
        return found

    def requeue_s(self) -> float:
        """How long a job that has ended may be put back into the queue: Slurm's MinJobAge and some time, s."""
        found = MIN_JOB_AGE.search(self._run(["scontrol", "show", "config"]).stdout)
        if found is None:
            raise SlurmError("scontrol show config: found no MinJobAge")
        return int(found[1]) + PURGE_S if int(found[1]) else FOREVER_S

    def unknown(self, ids: Iterable[int]) -> frozenset[int]:
        """Those of these jobs that Slurm says it does not know; an empty answer does not say so."""
        commands = [(job, f"show job {job:d}") for job in ids]
        said, error = self._send(commands)
        if error is not None:
            raise error
        return frozenset(job for (job, _), text in zip(commands, said, strict=True) if UNKNOWN.search(text))

    def _states(self, wanted: list[int]) -> dict[int, JobState]:
        """States of one batch; among several ids Slurm ignores those it does not know."""
        ids, form = ",".join(f"{job:d}" for job in wanted), "%A|%F|%T|%Q|%K|."  # the dot marks a complete line
        # --array: otherwise waiting tasks hide behind their array
        argv = ["squeue", "--all", "--array", "--noheader", "--states=all", "-o", form, f"--jobs={ids}"]
        done = self._run(argv, check=False)
        if done.returncode and not UNKNOWN.search(done.stderr):
            raise _failure(argv, done)
        by_id: dict[int, JobState] = {}
        tasks: dict[int, JobState] = {}
        rests: dict[int, list[str]] = defaultdict(list)
        for line in done.stdout.splitlines():
            parts = STATE_LINE.fullmatch(line.strip())
            if parts is None:
                raise SlurmError(f"squeue -o {form!r}: found {line[:80]!r}, expected ids, a state and a priority")
            found = JobState(parts[3], int(parts[4]))
            by_id[int(parts[1])] = found
            if parts[1] == parts[2]:
                rests[int(parts[1])].append(parts[5])
            if found.state not in ENDED_STATES:
                tasks[int(parts[2])] = found
        # tasks that were held since the queue was read are in the rest no more; a record without tasks is of no array
        self._tasks |= {job: ranges(map(int, rest)) for job, rest in rests.items() if rest != ["N/A"]}
        states = by_id | tasks | {job: state for job, state in by_id.items() if state.state not in ENDED_STATES}
        return {job: states[job] for job in wanted if job in states}  # an array's answer has tasks of other batches

    def _address(self, job: int) -> str:
        """A job for scontrol. For it the id of an array alone means all tasks, also those that others have held or changed."""
        tasks = self._tasks.get(job)
        return f"{job:d}_[{tasks}]" if tasks else f"{job:d}"

    @property
    def batch(self) -> int:
        """Changes that Slurm is likely to make well within the time limit."""
        if self._change_s is None:
            return FIRST_BATCH
        most = PART_OF_LIMIT * self.timeout_s * self._speed / max(self._change_s, 1e-6)
        return int(min(max(most, 1), LARGEST_BATCH))

    def _execute(self, commands: list[tuple[int, str]]) -> list[Outcome]:
        """Send commands, and again those that are not possible yet; an outcome each, in their order."""
        said, error = self._send(commands)
        if error is not None and not said:
            raise error
        lost = set(range(len(said), len(commands)))
        for pause in PAUSES_S:
            again = [k for k, text in enumerate(said) if NOT_NOW in text]
            if not again or error is not None:
                break
            time.sleep(pause * self._speed)
            more, error = self._send([commands[k] for k in again])
            for k, text in zip(again, more):
                said[k] = text
            lost.update(again[len(more) :])
        return [
            Outcome(job, False, str(error), unknown=True) if k in lost else Outcome(job, not said[k], said[k])
            for k, (job, _) in enumerate(commands)
        ]

    def _send(self, commands: list[tuple[int, str]]) -> tuple[list[str], SlurmError | None]:
        """(What scontrol answers to each command, empty where it succeeded; why the others have no answer)."""
        said: list[str] = []
        until_s = time.monotonic() + LIMITS * self.timeout_s * self._speed
        while len(said) < len(commands):
            if time.monotonic() > until_s:
                made = f"{len(said)} of {len(commands)} changes in {LIMITS * self.timeout_s:g} s"
                return said, SlurmUnavailable(f"scontrol: Slurm is slow, {made}")
            notify("WATCHDOG=1")
            try:
                said += self._send_batch(commands[len(said) : len(said) + self.batch])
            except SlurmError as error:
                return said, error
        return said, None

    def _send_batch(self, commands: list[tuple[int, str]]) -> list[str]:
        """What one scontrol answers to commands; only to the first ones if it timed out or Slurm fell silent."""
        lines = f"{START}\n" + "".join(f"{command}\n{MARK}{k}\n" for k, (_, command) in enumerate(commands))
        started = time.monotonic()
        done = run_command(["scontrol"], self.env, self.timeout_s * self._speed, lines)
        said: list[str] = []
        before: list[str] = []
        for line in done.stderr.splitlines():
            mark = MARKED.search(line)
            if line.rstrip().endswith(START):
                before = [text for text in before if SILENCE.search(text)]
            elif mark is None:
                before.append(line.strip())
            elif int(mark[1]) == len(said):
                made = any(line.endswith(MADE) for line in before)
                said.append("" if made else "; ".join(dict.fromkeys(filter(None, before))))
                before = []
        self._change_s = (time.monotonic() - started) / max(len(said), 1)
        silent = next((k for k, text in enumerate([*said, *before]) if SILENCE.search(text)), None)
        if silent is not None and not said[:silent]:
            raise SlurmUnavailable(f"scontrol: {[*said, *before][silent]}")
        if silent is None and len(said) < len(commands):
            if done.returncode != TIMED_OUT:
                raise SlurmError(
                    f"scontrol: answered {len(said)} of {len(commands)} changes, then {' '.join(before)[-300:]!r}; "
                    "the outcomes of the others are unknown"
                )
            if not said:
                raise self._late("scontrol")
        return said[:silent]

    def _late(self, command: str) -> SlurmUnavailable:
        return SlurmUnavailable(f"{command}: no answer within {self.timeout_s:g} s")

    def _run(self, argv: list[str], check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one command to its end. Raises where it is killed at the time limit or, with ``check``, fails."""
        done = run_command(argv, self.env, self.timeout_s * self._speed)
        if done.returncode == TIMED_OUT:
            raise self._late(argv[0])
        if check and done.returncode:
            raise _failure(argv, done)
        return done


def run_command(
    argv: Sequence[str], env: Mapping[str, str], timeout_s: float, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one of Slurm's commands to its end; killed at the time limit, its status is TIMED_OUT, with what it said on
    standard error by then. Raises SlurmUnavailable where there is no such command."""
    given: dict[str, Any] = {"env": env, "input": stdin, "timeout": timeout_s}
    try:
        return subprocess.run(argv, capture_output=True, encoding="utf-8", errors="replace", **given)
    except subprocess.TimeoutExpired as late:
        said = late.stderr or b""  # bytes, whatever the encoding
        return subprocess.CompletedProcess(argv, TIMED_OUT, "", said.decode(errors="replace"))
    except FileNotFoundError:
        raise SlurmUnavailable(f"{argv[0]}: no such command; are Slurm's commands installed and on PATH?") from None


def clock_speed() -> float:
    """Seconds of this process's clock in one true second; 1 outside an emulated cluster with compressed time."""
    return float(os.environ.get(SPEED) or 1.0) if os.environ.get("FAKETIME_SHARED") else 1.0


def _failure(argv: list[str], done: subprocess.CompletedProcess[str]) -> SlurmError:
    """The error for a command that failed."""
    text = " ".join(done.stderr.split())[-400:] or "no message"
    if UNCONFIGURED.search(text):
        text += " (where is slurm.conf? name it under `slurm_conf:`, or in SLURM_CONF)"
    if NO_JSON.search(text):
        text += " (this needs Slurm 22.05 or later, built with JSON)"
    kind = SlurmUnavailable if SILENCE.search(text) else SlurmError
    return kind(f"{' '.join(argv[:3])}: exit status {done.returncode}: {text}")


def _update_line(change: Change, address: str) -> str:
    """The command for scontrol."""
    priority = "" if change.priority is None else f" priority={change.priority:d}"
    shares = "" if change.oversubscribe is None else f" oversubscribe={'YES' if change.oversubscribe else 'NO'}"
    excludes = "" if change.exclude is None else f" excnodelist={change.exclude}"
    return f"update jobid={address}{priority}{shares}{excludes}"
