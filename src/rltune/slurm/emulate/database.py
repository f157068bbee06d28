"""The database behind an emulated cluster's accounts: a private MariaDB that listens on a socket alone."""

from __future__ import annotations

import subprocess

from rltune.errors import SlurmError
from rltune.slurm.emulate import packages
from rltune.slurm.emulate.configure import Folders


def make(folders: Folders, user: str) -> None:
    """Make an empty database. Raises SlurmError with the installer's words where it fails."""
    folders.database.mkdir()
    done = subprocess.run(
        [
            packages.found("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={folders.database}",
            f"--user={user}",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={user}",
            "--skip-test-db",
            f"--tmpdir={folders.run}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise SlurmError(f"mariadb-install-db failed: {(done.stderr or done.stdout).strip()[-800:]}")


def command(folders: Folders, user: str) -> list[str]:
    """Command of the database's daemon: small, and in no hurry to write to disk, since it is made to be thrown away."""
    return [
        packages.found("mariadbd"),
        "--no-defaults",
        f"--datadir={folders.database}",
        f"--socket={folders.mysql}",
        f"--user={user}",
        "--skip-networking",
        f"--pid-file={folders.run}/mariadb.pid",
        f"--tmpdir={folders.run}",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=32M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-lock-wait-timeout=900",
        "--performance-schema=OFF",
        "--skip-log-bin",
    ]
