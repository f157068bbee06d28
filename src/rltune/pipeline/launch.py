"""Start the workflow: check the configuration first, mend what a killed run left, hand over to Snakemake."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rltune.config import Workspace
from rltune.errors import RLTuneError
from rltune.files import write_text


CACHES = {
    "MPLCONFIGDIR": "matplotlib", "XDG_CACHE_HOME": "xdg", "IPYTHONDIR": "ipython",
    "JUPYTER_CONFIG_DIR": "jupyter/config", "JUPYTER_DATA_DIR": "jupyter/data",
}  # fmt: skip
"""Where libraries keep their own files: in the project's cache folder, not in the user's home (see also Makefile)."""


class WorkflowError(RLTuneError):
    """The workflow could not be started."""


def launch(workspace: Workspace, cores: int, arguments: Sequence[str] = ()) -> int:
    """Run the workflow in the workspace's base folder; Snakemake's exit status.

    Raises WorkflowError when another run of ours is at work there.
    """
    base = workspace.base
    base.mkdir(parents=True, exist_ok=True)
    for name, folder in CACHES.items():
        os.environ.setdefault(name, str(workspace.root / ".cache" / folder))
    command = _snakemake(workspace, cores)
    pid_file = base / ".snakemake" / "rltune.pid"
    _clear_stale_lock(base, pid_file, command)
    write_text(pid_file, f"{os.getpid()}\n")
    try:
        return subprocess.run([*command, *arguments], cwd=base).returncode
    finally:
        pid_file.unlink(missing_ok=True)


def _snakemake(workspace: Workspace, cores: int) -> list[str]:
    root = workspace.root
    return [
        sys.executable, "-m", "snakemake", "--snakefile", str(root / "workflow" / "Snakefile"),
        "--workflow-profile", str(root / "workflow" / "profiles" / "default"), "--cores", str(cores),
        "--rerun-incomplete", "--directory", str(workspace.base), "--config", f"run={workspace.config_path}",
    ]  # fmt: skip


def _clear_stale_lock(base: Path, pid_file: Path, command: list[str]) -> None:
    """Unlock the folder when the run that locked it is gone."""
    locks = base / ".snakemake" / "locks"
    if not (locks.is_dir() and any(locks.iterdir())):
        return
    owner = pid_file.read_text().strip() if pid_file.is_file() else ""
    if owner.isdigit() and _alive(int(owner)):
        raise WorkflowError(
            f"another run (process {owner}) is at work in {base}; wait for it, or stop it with: kill {owner}"
        )
    if not owner:
        raise WorkflowError(
            f"{base} is locked by a Snakemake that was not started through rltune; if none is running there, "
            f"remove the lock with: rm -r {locks}"
        )
    print("clearing the lock of a run that was killed", flush=True)
    unlocked = subprocess.run([*command, "--unlock"], cwd=base, capture_output=True, text=True)
    if unlocked.returncode:
        raise WorkflowError(f"could not unlock {base}: {unlocked.stderr.strip()}")


def _alive(pid: int) -> bool:
    """Whether a process of this number exists and is one of ours (not a later one that got the number)."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        try:  # no /proc here (macOS): only the number can be asked about
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return "rltune" in command or "snakemake" in command
