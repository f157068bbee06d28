"""The database behind an emulated cluster's accounts: a private MariaDB that listens on a socket alone."""

from __future__ import annotations

import subprocess

from rltune.errors import SlurmError
from rltune.slurm.emulate import packages
from rltune.slurm.emulate.configure import Folders, filled


def make_database(folders: Folders, user: str) -> None:
    """Make an empty database. Raises SlurmError with the installer's words where it fails."""
    folders.database.mkdir()
    folders.database_conf.write_text(filled("mariadb.conf", folders=folders, user=user))
    options = ("--auth-root-authentication-method=socket", f"--auth-root-socket-user={user}", "--skip-test-db")
    argv = [packages.found("mariadb-install-db"), f"--defaults-file={folders.database_conf}", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SlurmError(f"mariadb-install-db failed: {(done.stderr or done.stdout).strip()[-800:]}")
