"""The controller on real daemons: an emulated cluster of five nodes with made-up GPUs. Every fault is a real one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fake_slurm import BAND, write_policy
from slurm_live import controller, nobody_is_ours, priorities
from slurm_workload import state, submit, wait_for

from rltune.errors import RLTuneError
from rltune.slurm.client import Client
from rltune.slurm.emulate import Emulation
from rltune.slurm.folder import Folder
from rltune.slurm.service import FAILED, Service

ROOT = Path(__file__).resolve().parents[2]

def test_slurm_takes_the_ranking_and_gets_every_job_back(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    made, own, now_s = controller(slurm, tmp_path), priorities(slurm), slurm.now()
    made.clock = lambda: now_s  # waits are features: an order may change as they grow
    done = made.cycle()
    assert (done.ranked, done.changed, done.refused, done.faults) == (12, 12, 0, ())
    ours = priorities(slurm)
    assert set(ours) == set(waiting) and all(BAND.low <= priority <= BAND.high for priority in ours.values())
    assert made.cycle().changed == 0
    order = slurm.run("squeue", "-h", "-t", "PD", "-S", "-p", "-o", "%A").split()
    assert [int(job) for job in order] == sorted(ours, key=lambda job: -ours[job])
    assert made.hand_back("test")[0] == 12
    wait_for(lambda: priorities(slurm) == own)


def test_the_first_of_the_ranking_starts_first(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    made = controller(slurm, tmp_path)
    made.cycle()
    assert made.view is not None
    ours = priorities(slurm)
    small = [job.id for job in made.view.ranked if job.gpus == 1 and job.gpu_type is None]
    first = max(small, key=lambda job: ours[job])
    m40 = next(job.id for job in slurm.client().jobs().records if job.node_names == ("m40-1",))
    slurm.run("scancel", str(m40))
    wait_for(lambda: state(slurm, first) == "RUNNING")
    assert all(state(slurm, job) == "PENDING" for job in small if job != first)


def test_a_thousand_submissions_between_two_cycles(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    made = controller(slurm, tmp_path)
    made.cycle()
    for _ in range(20):  # tasks that are jobs of their own to Slurm take as long; twenty arrays of fifty do not
        slurm.run("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--gres=gpu:1", "--hold", "--array=1-50",
                  stdin="#!/bin/sh\nsleep 600\n")  # fmt: skip
    more = [submit(slurm, "--gres=gpu:1") for _ in range(200)]
    done = made.cycle()
    assert done.ranked == 212 and done.refused == 0
    ours = priorities(slurm)
    assert all(BAND.low <= ours[job] <= BAND.high for job in (*waiting, *more))
    made.hand_back("test")
    assert nobody_is_ours(slurm)


def test_slurmctld_is_restarted_and_killed_in_the_middle(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.restart_controller()
    wait_for(lambda: len(priorities(slurm)) == 12)
    assert made.cycle().refused == 0
    slurm.kill_controller()
    with pytest.raises(RLTuneError):
        controller(slurm, tmp_path, slurm.client(2.0)).cycle()
    slurm.start_controller()
    made.cycle()
    assert made.hand_back("test")[1] == [] and nobody_is_ours(slurm)


def test_killed_between_reading_and_writing(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    made = controller(slurm, tmp_path, slurm.client(2.0), failures=1)
    update = made.slurm.update

    def killed_first(changes: list) -> list:
        slurm.kill_controller()
        return update(changes)

    made.slurm.update = killed_first  # type: ignore[method-assign]
    service = Service(made, between_tries_s=0.0)
    assert service.run() == 3 and set(made.folder.touched()) == set(waiting)
    slurm.start_controller()  # what it knows is what it had saved last
    assert controller(slurm, tmp_path).hand_back("later")[1] == []
    assert nobody_is_ours(slurm) and not made.folder.touched()


def test_nodes_go_and_jobs_are_cancelled_meanwhile(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    made = controller(slurm, tmp_path)
    read = made.slurm.nodes

    def drains_first() -> object:
        found = read()
        slurm.set_node("k80-1", "DRAIN")
        slurm.run("scancel", str(waiting[0]))
        return found

    made.slurm.nodes = drains_first  # type: ignore[method-assign,assignment]
    try:
        done = made.cycle()
        assert done.refused == 1 and done.changed == 11
        made.slurm.nodes = read  # type: ignore[method-assign]
        made.cycle()
        assert made.view is not None and "k80-1" not in made.view.nodes
    finally:
        slurm.set_node("k80-1", "RESUME")
    made.hand_back("test")
    assert nobody_is_ours(slurm)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_command_is_ended(slurm: Emulation, waiting: list[int], tmp_path: Path, how: int) -> None:
    """By SIGTERM it hands back by itself; after SIGKILL `rltune slurm release` does."""
    own = priorities(slurm)
    write_policy(tmp_path / "policy.npz")
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({
        "policy": str(tmp_path / "policy.npz"), "scope": {"partitions": ["all"]}, "folder": str(tmp_path / "state"),
        "slurm_conf": str(slurm.conf), "interval_s": 1.0}))  # fmt: skip
    rltune = [sys.executable, "-c", "from rltune.cli import main; main()", "slurm"]
    env = {**os.environ, **slurm.env, "RLTUNE_ROOT": str(ROOT)}
    run = subprocess.Popen([*rltune, "run", "--live", "--config", str(path)], env=env)
    wait_for(lambda: all(p >= BAND.low for p in priorities(slurm).values()), 120)
    told = subprocess.run([*rltune, "status", "--config", str(path)], env=env, capture_output=True, text=True, check=True)
    assert "is at work" in told.stdout and "12 jobs" in told.stdout
    run.send_signal(how)
    status = run.wait(60)
    if how == signal.SIGKILL:
        assert not nobody_is_ours(slurm), "nobody was there to hand back"
        subprocess.run([*rltune, "release", "--config", str(path)], env=env, check=True)
    else:
        assert status == 0
    wait_for(lambda: priorities(slurm) == own)


def test_an_answer_that_cannot_be_read_is_a_failed_cycle(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    """squeue is replaced by one that prints half of its answer."""
    fake = tmp_path / "bin"
    fake.mkdir()
    real = subprocess.run(["which", "squeue"], capture_output=True, text=True, check=True).stdout.strip()
    (fake / "squeue").write_text(f'#!/bin/sh\n{real} "$@" | head -c 2000\n')
    (fake / "squeue").chmod(0o755)
    client = Client(slurm.conf, 10.0, {**slurm.env, "PATH": f"{fake}:{slurm.env['PATH']}"})
    made = controller(slurm, tmp_path, failures=2, interval_s=0.1)
    whole = made.slurm

    def say(line: str) -> None:
        made.slurm = client  # from the end of the first cycle on

    made.say = say
    assert Service(made, between_tries_s=0.0).run() == 3 and len(made.folder.touched()) == 12
    made.slurm, made.say = whole, print
    assert Service(made, once=True).run() == 0
    assert made.hand_back("test")[0] == 12 and nobody_is_ours(slurm)


def test_a_folder_that_cannot_be_written_to_stops_the_writing(
    slurm: Emulation, waiting: list[int], tmp_path: Path
) -> None:
    """A file system of a few kilobytes fills up."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False).returncode:
        pytest.skip("no right to mount a small file system here")
    try:
        made = controller(slurm, tmp_path, failures=2)
        made.folder = Folder(folder)
        assert Service(made, once=True).run() == 0
        with pytest.raises(OSError):  # noqa: PT011
            (folder / "fill").write_bytes(b"x" * 100_000)
        more = [submit(slurm, "--gres=gpu:1") for _ in range(3)]
        made.config = made.config.model_copy(update={"failures": 2})
        assert Service(made, between_tries_s=0.0).run() in (FAILED, 3)
        wait_for(lambda: nobody_is_ours(slurm))
        assert set(more) <= set(priorities(slurm))
    finally:
        subprocess.run(["umount", str(folder)], check=True)
