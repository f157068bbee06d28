"""Where the stages run: on this machine, or as jobs of a scheduler that one of Snakemake's profiles describes."""

from __future__ import annotations

import difflib
import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from rltune.errors import ConfigError

FOLDER = Path("workflow") / "profiles"
DEFAULT = "default"
"""Profile of every run, which says nothing of where."""
COMMANDS = {"slurm": "sbatch"}
"""Executor → a command that has to be there where the run is started."""


@dataclass(frozen=True)
class Profile:
    """A folder with a ``config.yaml`` of Snakemake's options that names an executor."""

    name: str
    path: Path
    executor: str
    jobs: int
    """So many jobs are with the scheduler at once."""

    def arguments(self, cores: int | None) -> list[str]:
        """What Snakemake is told besides; ``cores``: so many at once in all, None: as many as the jobs have."""
        return ["--profile", str(self.path), *(["--cores", str(cores)] if cores else [])]


def find_profile(root: Path, name: str) -> Profile:
    """The profile of this name in ``workflow/profiles``, or the one in a folder elsewhere.

    Raises ConfigError where there is none, it names no executor or number of jobs, or what it needs is not installed.
    """
    known = sorted(p.parent.name for p in (root / FOLDER).glob("*/config.yaml") if p.parent.name != DEFAULT)
    path = root / FOLDER / name if name in known else Path(name).expanduser().resolve()
    file = path / "config.yaml"
    if not file.is_file():
        close = difflib.get_close_matches(name, known, n=1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise ConfigError(
            f"--profile: found {name!r}{meant}; expected {' or '.join(known)}, which are in {FOLDER}, or a folder of "
            "yours with a config.yaml like theirs"
        )
    try:
        told = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from None
    told = told if isinstance(told, dict) else {}
    executor, jobs = told.get("executor"), told.get("jobs")
    if not isinstance(executor, str) or not isinstance(jobs, int) or jobs < 1:
        raise ConfigError(
            f"{file}: found executor: {executor!r} and jobs: {jobs!r}; a profile needs both, such as executor: slurm "
            "and jobs: 50 (so many jobs with the scheduler at once)"
        )
    _see_installed(file, executor)
    return Profile(path.name, path, executor, jobs)


def _see_installed(file: Path, executor: str) -> None:
    package = f"snakemake-executor-plugin-{executor}"
    if executor != "local" and importlib.util.find_spec(package.replace("-", "_")) is None:
        raise ConfigError(
            f"{file}: executor {executor} needs the package {package}, which is not installed; install it with: "
            f"{sys.executable} -m pip install {package}"
        )
    command = COMMANDS.get(executor)
    if command and shutil.which(command) is None:
        raise ConfigError(
            f"{file}: executor {executor} needs the command {command}, which is not on PATH here; start the run on a "
            "machine from which jobs are submitted (a login node)"
        )
