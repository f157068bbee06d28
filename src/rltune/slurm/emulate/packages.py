"""What the emulated cluster needs of the system, and the command that installs it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from rltune.errors import SlurmError

SYSTEM_PATH = ("/usr/sbin", "/sbin", "/usr/local/sbin")
"""Where daemons lie that a user's PATH does not have."""


@dataclass(frozen=True)
class Group:
    """Packages that belong together, and the programs by which they are found."""

    purpose: str
    packages: tuple[str, ...]
    programs: tuple[str, ...]


SLURM = Group(
    "Slurm's daemons and commands",
    ("slurmctld", "slurmd", "slurm-client", "munge"),
    ("slurmctld", "slurmd", "squeue", "munged"),
)
ACCOUNTING = Group(
    "accounts and fair share (--accounting)",
    ("slurmdbd", "mariadb-server"),
    ("slurmdbd", "mariadbd", "mariadb-install-db"),
)
CLOCK = Group("compressed or set time (--speed)", ("libfaketime", "faketime"), ("faketime",))


def program(name: str) -> str | None:
    """Path of a program, looked for on PATH and where daemons lie."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_PATH]))


def found(name: str) -> str:
    """Path of a program. Raises SlurmError where it is absent."""
    path = program(name)
    if path is None:
        raise SlurmError(f"{name}: not found; install it: {install_command([SLURM, ACCOUNTING, CLOCK])}")
    return path


def missing(groups: list[Group]) -> list[Group]:
    """Those of the groups of which a program is absent."""
    return [group for group in groups if any(program(name) is None for name in group.programs)]


def install_command(groups: list[Group]) -> str:
    """The command that installs groups on Debian and Ubuntu."""
    names = " ".join(name for group in groups for name in group.packages)
    return f"apt-get install --no-install-recommends {names}"


def needed(accounting: bool = False, speed: float = 1.0, settable: bool = False) -> list[Group]:
    """Groups that an emulation with these options needs."""
    return [SLURM, *([ACCOUNTING] if accounting else []), *([CLOCK] if speed != 1 or settable else [])]


def absent(accounting: bool = False, speed: float = 1.0) -> list[str]:
    """Packages of the groups that an emulation with these options needs and that are not complete here."""
    return [name for group in missing(needed(accounting, speed)) for name in group.packages]


def lacking(groups: list[Group]) -> str:
    """What is missing of the groups, and the command that installs it; "" where nothing is."""
    absent_groups = missing(groups)
    what = "; ".join(f"{group.purpose} (packages {', '.join(group.packages)})" for group in absent_groups)
    install = f"On Debian or Ubuntu, as root: {install_command(absent_groups)}"
    return f"what it needs is not installed: {what}. {install}" if what else ""


def check(groups: list[Group]) -> None:
    """Raises SlurmError that names what is missing and the command that installs it."""
    if text := lacking(groups):
        raise SlurmError(f"the emulated cluster: {text}")
