"""Start the workflow: one run a folder at a time, mend what a killed run left, hand over to Snakemake."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rltune.config import Workspace
from rltune.errors import RLTuneError
from rltune.traces.fetch import given_file

class WorkflowError(RLTuneError):
    """The workflow could not be started."""


def launch(workspace: Workspace, cores: int, arguments: Sequence[str] = ()) -> int:
    """Run the workflow in the workspace's base folder; Snakemake's exit status.

    Raises WorkflowError when another run is at work there; ConfigError or DataError, before the first job, when a
    trace's own file cannot be found.
    """
    for name in workspace.config.traces():
        if (path := workspace.trace(name).path) is not None:
            given_file(name, path, workspace.root)
    state = workspace.base / ".snakemake"
    state.mkdir(parents=True, exist_ok=True)
    command = _snakemake(workspace, cores)
    environment = _environment(workspace)
    with open(state / "rltune.lock", "a+", encoding="utf-8") as lock:
        _acquire(lock, workspace.base)
        _clear_stale_lock(lock, workspace.base, command, environment)
        # Snakemake holds the lock too, so it lasts as long as either of us
        process = subprocess.Popen(
            [*command, *arguments], cwd=workspace.base, env=environment, pass_fds=(lock.fileno(),)
        )
        _write(lock, str(process.pid))
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        while True:
            try:
                status = process.wait()
                break
            except KeyboardInterrupt:
                continue  # Snakemake got it as well and is ending its jobs
        _write(lock, "")
        return status


def _snakemake(workspace: Workspace, cores: int) -> list[str]:
    workflow = workspace.root / "workflow"
    return [
        sys.executable, "-m", "snakemake", "--snakefile", str(workflow / "Snakefile"),
        "--workflow-profile", str(workflow / "profiles" / "default"), "--cores", str(cores),
        # --config takes all that follows up to the next option: it must not be the last
        "--config", f"run={workspace.config_path}", "--rerun-incomplete", "--directory", str(workspace.base),
    ]  # fmt: skip


def _environment(workspace: Workspace) -> dict[str, str]:
    """This process's environment, with our own commands found first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "RLTUNE_ROOT": str(workspace.root)}


def _acquire(lock: TextIO, base: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip()
        how = f" (process {owner}): wait for it, or stop it with: kill {owner}" if owner else ": wait for it"
        raise WorkflowError(f"another run is at work in {base}{how}") from None


def _clear_stale_lock(lock: TextIO, base: Path, command: list[str], environment: dict[str, str]) -> None:
    """Unlock the folder when the Snakemake that locked it was ours and is gone."""
    locks = base / ".snakemake" / "locks"
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
    unlocked = subprocess.run([*command, "--unlock"], cwd=base, env=environment, capture_output=True, text=True)
    if unlocked.returncode:
        raise WorkflowError(f"could not unlock {base}: {unlocked.stderr.strip()}")


def _write(lock: TextIO, text: str) -> None:
    lock.seek(0)
    lock.truncate()
    lock.write(text)
    lock.flush()
