"""What an emulated cluster uses of the machine: a user, free ports, device files, a private database."""

import os
import pwd
import socket
import stat
from pathlib import Path
from random import SystemRandom

from rltune.errors import SlurmError
from rltune.slurm.client import TIMED_OUT, run_command
from rltune.slurm.emulate import packages
from rltune.slurm.emulate.configure import Folders, filled

NULL_DEVICE = os.makedev(1, 3)
PORTS = range(10000, 32000)
"""Where free ports are looked for: below those that the system hands out to clients."""


def user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise SlurmError(f"user {os.getuid()} has no name in /etc/passwd, and Slurm needs one") from None


def free_ports(number: int) -> list[int]:
    """So many different TCP ports on which nobody listens now. Raises SlurmError where there are too few."""
    found: list[int] = []
    for port in SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == number:
            return found
    raise SlurmError(f"found {len(found)} free TCP ports in {PORTS.start}-{PORTS.stop}, the cluster needs {number}")


def make_device(path: Path) -> None:
    """An emulated GPU's device: a second /dev/null where that is allowed, else a plain file."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, NULL_DEVICE)
        path.chmod(0o666)
    except PermissionError:
        path.touch()


def make_database(folders: Folders, user: str) -> None:
    """Make an empty database for accounts: a private MariaDB that is to listen on a socket alone.

    Raises SlurmError with the installer's words where it fails.
    """
    folders.database.mkdir()
    folders.database_conf.write_text(filled("mariadb.conf", folders=folders, user=user))
    options = ("--auth-root-authentication-method=socket", f"--auth-root-socket-user={user}", "--skip-test-db")
    argv = [packages.found("mariadb-install-db"), f"--defaults-file={folders.database_conf}", *options]
    done = run_command(argv, os.environ, 120.0)
    if done.returncode:
        said = "no end within 120 s" if done.returncode == TIMED_OUT else (done.stderr or done.stdout).strip()[-800:]
        raise SlurmError(f"mariadb-install-db failed: {said}")
