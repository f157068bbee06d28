"""What the emulated cluster needs of the system, and the command that installs it."""

import os
import shutil
from dataclasses import dataclass

from rltune.errors import SlurmError

SYSTEM_PATH = ("/usr/sbin", "/sbin", "/usr/local/sbin")
"""Folders of daemons that a user's PATH does not have."""


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
    """Path of a program, looked for on PATH and in SYSTEM_PATH; None where it is absent."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_PATH]))


def found(name: str) -> str:
    """Path of a program. Raises SlurmError where it is absent."""
    path = program(name)
    if path is None:
        raise SlurmError(f"{name}: not found; install it: {install_command([SLURM, ACCOUNTING, CLOCK])}")
    return path


def install_command(groups: list[Group]) -> str:
    """The command that installs groups on Debian and Ubuntu."""
    names = " ".join(name for group in groups for name in group.packages)
    return f"apt-get install --no-install-recommends {names}"


def missing(accounting: bool = False, speed: float = 1.0, settable: bool = False) -> list[Group]:
    """Groups that an emulation with these options needs and of which a program is absent."""
    groups = [SLURM, *([ACCOUNTING] if accounting else []), *([CLOCK] if speed != 1 or settable else [])]
    return [group for group in groups if any(program(name) is None for name in group.programs)]


def absent(accounting: bool = False, speed: float = 1.0) -> list[str]:
    """Packages of the groups that an emulation with these options needs and that are not complete here."""
    return [name for group in missing(accounting, speed) for name in group.packages]


def lacking(groups: list[Group]) -> str:
    """What is not installed of these groups, and the command that installs it."""
    what = "; ".join(f"{group.purpose} (packages {', '.join(group.packages)})" for group in groups)
    return f"what it needs is not installed: {what}. On Debian or Ubuntu, as root: {install_command(groups)}"


def check(accounting: bool = False, speed: float = 1.0, settable: bool = False) -> None:
    """Raises SlurmError that names what an emulation with these options lacks and the command that installs it."""
    if groups := missing(accounting, speed, settable):
        raise SlurmError(f"the emulated cluster: {lacking(groups)}")
