"""Operators may write priorities, other users may not; on real daemons, with Slurm's accounting."""

import re
import shlex
from pathlib import Path

import pytest
from fake_slurm import assigned
from slurm_live import all_in_band, become, controller, none_in_band, priorities, stand_in
from slurm_workload import DEPLOYMENT, need, wait_behind, wait_for

from rltune.slurm.client import Client
from rltune.slurm.emulate import Emulation

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "controller.md"
USER = "nobody"
"""A user that every Debian has, and no job here is of."""


def as_user(slurm: Emulation, folder: Path) -> Client:
    """A client whose commands are USER's."""
    return stand_in(
        slurm, folder, "squeue", "sinfo", "scontrol", script=f'cd / && exec {" ".join(become(USER))} REAL "$@"'
    )


def set_level(slurm: Emulation, command: str) -> None:
    """Run sacctmgr, and wait until slurmctld knows."""
    slurm.run(*shlex.split(command.replace("sacctmgr", "sacctmgr -i")))
    level = command.rpartition("=")[2]
    of_user = re.compile(rf"UserName={USER}\(\d+\)[^\n]*AdminLevel={level}\b")
    wait_for(lambda: bool(of_user.search(slurm.run("scontrol", "show", "assoc_mgr", "flags=users"))))


@pytest.mark.daemons
def test_an_operator_ranks_the_jobs_of_others_and_no_other_user_does(tmp_path):
    need(accounting=True)
    become(USER)  # skips at once
    documented = re.search(r"`(sacctmgr modify user )rltune( set adminlevel=Operator)`", GUIDE.read_text())
    assert documented, f"{GUIDE} does not say any more how a user is made an operator"
    with Emulation(DEPLOYMENT, accounting=True, accounts=["lab"]) as slurm:
        waiting = wait_behind(slurm)
        made = controller(slurm, tmp_path, as_user(slurm, tmp_path / "bin"))
        set_level(slurm, f"sacctmgr add user {USER} account=lab adminlevel=None")
        done = made.cycle()
        assert (done.ranked, done.changed, done.refused) == (12, 0, 12) and none_in_band(slurm)
        set_level(slurm, f"{documented[1]}{USER}{documented[2]}")
        done = made.cycle()
        assert (done.ranked, done.changed, done.refused) == (12, 12, 0)
        assert priorities(slurm).keys() == set(waiting) and all_in_band(slurm)
        assert made.release_all("test") == (12, []) and none_in_band(slurm)
        made.cycle()
        set_level(slurm, f"sacctmgr modify user {USER} set adminlevel=None")
        given, refused = made.release_all("the right is gone")
        assert given == 0 and {outcome.job for outcome in refused} == set(waiting)
        assert set(assigned(made)) == set(waiting), "for an operator to release"
