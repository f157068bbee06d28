"""Install system packages that some tests need, or say which: `make slurm-deps`, `make test`.

`slurm`: the emulated Slurm cluster. `chromium`: the tests of the report's page. Installs as root, or through sudo, with apt
(Debian, Ubuntu). With --quiet, as `make test` calls it, only as root, it never fails, and says nothing where nothing is to
be done or nothing can be: the tests that need the packages say what is missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from rltune.report.pdf import find_chromium
from rltune.slurm.emulate.packages import ACCOUNTING, CLOCK, SLURM, Group, install_command, missing

CHROMIUM = Group("the tests of the report's page", ("chromium",), ("chromium",))
LACKING: dict[str, Callable[[], list[Group]]] = {
    "slurm": lambda: missing([SLURM, ACCOUNTING, CLOCK]),
    "chromium": lambda: [] if find_chromium() else [CHROMIUM],
}
"""What is asked for → the groups of packages of it that are not here."""
LIMIT_S = 900


def run(command: list[str]) -> str:
    """Run one command, quietly; what it said where it failed, else nothing."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return f"took more than {LIMIT_S} s"
    said = [line for line in done.stdout.splitlines() if line.startswith("E:")] or done.stdout.splitlines()[-1:]
    return f"exit status {done.returncode}: {' '.join(said)}" if done.returncode else ""


def install(groups: list[Group], prefix: list[str]) -> str:
    """Install packages; what went wrong, else nothing."""
    for command in (["apt-get", "-qq", "update"], [*install_command(groups).split(), "-qq", "-y"]):
        if wrong := run([*prefix, *command]):
            return f"{' '.join(command)}: {wrong}"
    return ""


def provide(names: list[str], quiet: bool) -> str:
    """Have the packages there; what is in the way, else nothing. With ``quiet`` only root installs."""
    lacking = [group for name in names for group in LACKING[name]()]
    if not lacking:
        return ""
    root, sudo = os.geteuid() == 0, shutil.which("sudo")
    by_hand = "as root on Debian or Ubuntu: apt-get update && " + install_command(lacking)
    if not shutil.which("apt-get"):
        return (
            "there is no apt here (elsewhere: Slurm 22.05 or later with slurmctld, slurmd, slurmdbd; MUNGE; MariaDB; "
            f"libfaketime; a Chromium or Chrome); {by_hand}"
        )
    if not (root or (sudo and not quiet)):
        return f"packages are missing, and this needs root; {by_hand}"
    packages = ", ".join(name for group in lacking for name in group.packages)
    print(f"installing {packages} with apt, for some of the tests …", flush=True)
    if wrong := install(lacking, [] if root else [sudo or "sudo"]):
        return f"not installed: {wrong}\n{by_hand}"
    if still := [group for name in names for group in LACKING[name]()]:
        return f"installed, but not found: {', '.join(p for g in still for p in g.programs)}"
    return ""


def main() -> int:
    """Provide what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(LACKING))
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    wrong = provide(args.names, args.quiet)
    if not wrong and not args.quiet:
        print("the packages are here")
    if wrong and not args.quiet or wrong.startswith(("not installed", "installed")):
        print(wrong, file=sys.stderr)
    return 1 if wrong and not args.quiet else 0


if __name__ == "__main__":
    sys.exit(main())
