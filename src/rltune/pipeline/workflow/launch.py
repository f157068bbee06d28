"""Start the workflow: one run a folder at a time, mend what a killed run left, hand over to Snakemake, watch it."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TextIO

import psutil

from rltune.config import Workspace
from rltune.pipeline.workflow.jobs import Job, Record, runs_folder
from rltune.pipeline.workflow.live import Live
from rltune.pipeline.workflow.profile import Profile
from rltune.pipeline.workflow.snakemake import WorkflowError, command, environment, find_own_files, only_asks, would_run

POLL_S = 0.5
LOCK = Path(".snakemake") / "rltune.lock"
"""Locked by the run that is at work in a folder; holds the process ids of the run and of its Snakemake, and is empty
after an orderly end."""


def launch(
    workspace: Workspace,
    cores: int | None,
    arguments: Sequence[str] = (),
    verbose: bool = False,
    agreed: Callable[[list[Job]], bool] = lambda jobs: True,
    profile: Profile | None = None,
    asking: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> int:
    """Run the workflow in the workspace's base folder; Snakemake's exit status, 2 where the plan was not agreed to.

    ``agreed`` is asked with the jobs that are to do. With ``verbose`` all that Snakemake and the stages say is shown;
    otherwise it goes to a file, and a line says how far the run is. Arguments with which Snakemake runs nothing are
    passed on as they are. With a profile the stages run as jobs of a scheduler, on ``cores`` cores at once or, where
    that is None, as many as the profile says. ``asking`` is open while Snakemake makes its plan.

    Raises WorkflowError when another run is at work there, or Snakemake cannot say what is to do; ConfigError or
    DataError, before the first job, when a trace's own file cannot be found.
    """
    find_own_files(workspace)
    at_once = cores or (profile.jobs if profile else 1)
    with alone(workspace) as lock:
        if only_asks(arguments):
            return _run([*command(workspace, cores, profile=profile), *arguments], workspace, lock)
        with asking():
            (jobs,) = would_run(workspace, at_once, arguments)
        if not jobs:
            print("nothing to be done", flush=True)
            return 0
        if not agreed(jobs):
            return 2
        record = Record(runs_folder(workspace) / time.strftime("%Y%m%d-%H%M%S.jsonl"))
        record.add(
            "planned",
            config=workspace.config_path,
            cores=at_once,
            scheduler=profile.name if profile else "",
            jobs=[asdict(job) for job in jobs],
        )
        started = [*command(workspace, cores, record.path, profile), *arguments]
        if verbose:
            status = _run(started, workspace, lock, record)
        else:
            live = Live(workspace, record, sys.stdout)
            with open(record.log, "w", encoding="utf-8") as log:
                status = _run(started, workspace, lock, record, log, live.tick)
            live.close(status)
        record.add("ended", status=status)
        return status


def at_work(base: Path) -> int | None:
    """Process id of the run that is at work in a folder (of its Snakemake where the run itself was killed), 0 while it
    makes its plan; None where there is none."""
    try:
        with open(base / LOCK, encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _owner(lock.read())
    except FileNotFoundError:
        pass
    return None


def _run(
    started: list[str],
    workspace: Workspace,
    lock: TextIO,
    record: Record | None = None,
    log: TextIO | None = None,
    tick: Callable[[], None] = lambda: None,
) -> int:
    """Run Snakemake to its end.

    Asked to stop (SIGTERM, or SIGINT, which Snakemake and its stages get from a terminal as well) it waits for the
    stages that run; asked again it kills them.
    """
    process = subprocess.Popen(
        started,
        cwd=workspace.base,
        env=environment(workspace),
        stdout=log,
        stderr=log,
        pass_fds=(lock.fileno(),),  # Snakemake holds the lock too, so it lasts as long as either of us
    )
    _write(lock, f"{os.getpid()} {process.pid} {platform.node()}")
    if record is not None:
        record.add("process", id=os.getpid(), host=platform.node())
    asked = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            print("stopping at once", file=sys.stderr, flush=True)
            _kill(process.pid)
            return
        print(
            "\nstopping: waiting for the stages that run to end; once more stops them at once, and a training goes "
            "on from its last checkpoint next time",
            file=sys.stderr,
            flush=True,
        )
        process.terminate()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    while True:
        try:
            status = process.wait(POLL_S)
            break
        except subprocess.TimeoutExpired:
            tick()
    for number, handler in before.items():
        signal.signal(number, handler)
    if asked < 2:  # killed, it leaves its lock, which the next run clears
        _write(lock, "")
    return status


def _kill(pid: int) -> None:
    """Kill a process and all that it started."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()


@contextmanager
def alone(workspace: Workspace) -> Iterator[TextIO]:
    """Hold the folder's lock, and undo Snakemake's own where a killed run of ours left it."""
    path = workspace.base / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8") as lock:
        _acquire(lock, workspace.base)
        _clear_stale_lock(lock, workspace)
        _write(lock, "")
        yield lock


def _acquire(lock: TextIO, base: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        text = lock.read()
        owner, host = _owner(text), _host(text)
        where = "" if host in ("", platform.node()) else f" on {host}"
        stop = f" (process {owner}{where}): wait for it, or stop it{where} with: kill {owner}"
        how = stop if owner else ": wait for it"
        raise WorkflowError(f"another run is at work in {base}{how}") from None


def _owner(text: str) -> int:
    """The first of these process ids that lives; 0 where none is named, or none does. Of those of another machine it is
    not known which live: the first."""
    elsewhere = _host(text) not in ("", platform.node())
    pids = [int(word) for word in text.split()[:2]]
    return next((pid for pid in pids if elsewhere or psutil.pid_exists(pid)), 0)


def _host(text: str) -> str:
    """The machine that a lock's processes are on; nothing where it does not say."""
    return (text.split()[2:] or [""])[0]


def _clear_stale_lock(lock: TextIO, workspace: Workspace) -> None:
    """Unlock the folder when the Snakemake that locked it was ours and is gone."""
    base, locks = workspace.base, workspace.base / ".snakemake" / "locks"
    lock.seek(0)
    ours = lock.read().strip()  # emptied by a run that ended in order
    if not (locks.is_dir() and any(locks.iterdir())):
        return
    if not ours:
        raise WorkflowError(
            f"{base} is locked by a Snakemake that was not started through rltune; if none is running there, "
            f"remove the lock with: rm -r {locks}"
        )
    print("clearing the lock of a run that was killed", flush=True)
    unlocked = subprocess.run(
        [*command(workspace, 1), "--unlock"], cwd=base, env=environment(workspace), capture_output=True, text=True
    )
    if unlocked.returncode:
        raise WorkflowError(f"could not unlock {base}: {unlocked.stderr.strip()}")


def _write(lock: TextIO, text: str) -> None:
    lock.seek(0)
    lock.truncate()
    lock.write(text)
    lock.flush()
