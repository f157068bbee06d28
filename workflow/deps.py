"""Install the system packages of the emulated Slurm cluster, or say what is needed: `make slurm-deps`, `make test`.

Installs as root, or through sudo, with apt (Debian, Ubuntu). With --quiet, as `make test` calls it, only as root, and
without a word where nothing is to be done or nothing can be: the tests that need the packages say what is missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys

from rltune.slurm.emulate.packages import ACCOUNTING, CLOCK, SLURM, Group, install_command, missing

GROUPS = [SLURM, ACCOUNTING, CLOCK]
LIMIT_S = 900


def run(command: list[str]) -> str:
    """Run one command, quietly; what it said where it failed, else nothing."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT_S)  # fmt: skip
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quiet", action="store_true")
    quiet = parser.parse_args().quiet
    lacking = missing(GROUPS)
    if not lacking:
        if not quiet:
            print("Slurm's packages for the emulated cluster are here")
        return 0
    root = os.geteuid() == 0
    sudo = shutil.which("sudo")
    by_hand = "as root on Debian or Ubuntu: apt-get update && " + install_command(lacking)
    if not shutil.which("apt-get") or not (root or (sudo and not quiet)):
        if not quiet:
            why = "this needs root" if shutil.which("apt-get") else "there is no apt here"
            print(f"the emulated Slurm cluster needs packages, and {why}; {by_hand}\n"
                  "(elsewhere: Slurm 22.05 or later with slurmctld, slurmd, slurmdbd; MUNGE; MariaDB; libfaketime)",
                  file=sys.stderr)  # fmt: skip
        return 0 if quiet else 1
    names = ", ".join(name for group in lacking for name in group.packages)
    print(f"installing {names} with apt, for the emulated Slurm cluster …", flush=True)
    if wrong := install(lacking, [] if root else [sudo or "sudo"]):
        print(f"not installed: {wrong}\n{by_hand}", file=sys.stderr)
        return 0 if quiet else 1
    if still := missing(GROUPS):
        print(f"installed, but not found: {', '.join(p for g in still for p in g.programs)}", file=sys.stderr)
        return 0 if quiet else 1
    print("installed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
