"""Faults around real daemons while the controller writes: accounting, clock, nodes."""

import signal
import time

import pytest
from fake_slurm import BAND, assigned, serve
from slurm_live import all_in_band, controller, first_of_m40, kill, meanwhile, none_in_band, priorities
from slurm_workload import DEPLOYMENT, need, state, submit, wait_behind, wait_for

from rltune.slurm.emulate import Emulation
from rltune.slurm.service import DONE, Service

HOUR_S = 3600.0


def test_a_job_starts_between_reading_and_writing(slurm, waiting, tmp_path):
    made, started = controller(slurm, tmp_path), []
    meanwhile(made, "update", lambda: started.append(first_of_m40(slurm, waiting)))
    done = made.cycle()
    assert (done.refused, done.changed) == (0, 12) and state(slurm, started[0]) == "RUNNING"
    assert started[0] in assigned(made), "Slurm takes a running job's priority, too"
    slurm.run("scontrol", "requeue", str(started[0]))
    wait_for(lambda: state(slurm, started[0]) == "PENDING")
    made.cycle()
    assert made.release_all("test")[1] == []
    pending = priorities(slurm).keys()  # asked first: one may start meanwhile
    runs = {job for job in waiting if state(slurm, job) == "RUNNING"}  # another may have got the M40 in its stead
    assert len(runs) <= 1 and set(waiting) - runs <= pending
    assert none_in_band(slurm) and assigned(made).keys() <= runs


def test_a_node_goes_down_during_a_cycle(slurm, waiting, tmp_path):
    """Slurm puts the job back into the queue with the controller's priority, and lets it wait some time first."""
    made = controller(slurm, tmp_path)
    made.cycle()
    job, more = first_of_m40(slurm, waiting), submit(slurm, "--gres=gpu:1")

    def goes_down() -> None:
        kill(slurm, "slurmd m40-1")
        slurm.set_node("m40-1", "DOWN")
        wait_for(lambda: state(slurm, job) == "PENDING")

    meanwhile(made, "nodes", goes_down, after=True)
    try:
        done = made.cycle()
        assert done.refused == 0 and priorities(slurm)[more] >= BAND.low
        assert priorities(slurm)[job] == assigned(made)[job].priority >= BAND.low
        made.cycle()
        assert "m40-1" not in made.view.cluster.index
        assert made.view.left[job] == "begins later" and priorities(slurm)[job] < BAND.low, "it was released"
    finally:
        slurm.start_node("m40-1")
        wait_for(lambda: all(node.usable for node in slurm.client().nodes().records))
    made.release_all("test")
    found = {job.id: job.state for job in slurm.client().jobs().records}  # the node back, the next one may have started
    assert none_in_band(slurm) and {*waiting, more} <= found.keys()
    assert all(found[number] == "RUNNING" for number in assigned(made))


@pytest.mark.daemons
def test_accounting_is_away_for_a_while(tmp_path):
    """slurmdbd and its database end; jobs are ranked all the same, and those submitted meanwhile are accounted later."""
    need(accounting=True)
    with Emulation(DEPLOYMENT, accounting=True) as slurm:
        waiting, made = wait_behind(slurm), controller(slurm, tmp_path)
        assert made.cycle().refused == 0
        kill(slurm, "slurmdbd", "mariadbd", number=signal.SIGTERM)
        slurm.folders.mysql.unlink(missing_ok=True)
        meanwhile = [submit(slurm, "--gres=gpu:1") for _ in range(3)]
        for _ in range(2):
            done = made.cycle()
            assert (done.ranked, done.refused, done.faults) == (15, 0, ())
        assert all_in_band(slurm)
        assert made.release_all("away") == (15, []) and none_in_band(slurm)
        assert made.cycle().ranked == 15
        slurm.start_accounting()
        after = submit(slurm, "--gres=gpu:1")
        assert made.cycle().refused == 0, "a change that is not possible right now is made again"
        jobs = {*waiting, *meanwhile, after}
        assert priorities(slurm).keys() == jobs and min(priorities(slurm).values()) >= BAND.low
        assert made.release_all("test") == (16, []) and none_in_band(slurm)
        wait_for(lambda: jobs <= {int(j) for j in slurm.run("sacct", "-n", "-X", "-P", "-o", "JobIDRaw").split()}, 60)


@pytest.mark.daemons
def test_the_clock_is_set_forward_and_back(tmp_path):
    """That of the daemons, the commands and the controller, by two hours, while the controller is at work."""
    need(settable=True)
    with Emulation(DEPLOYMENT, settable=True) as slurm:
        waiting = wait_behind(slurm)
        computed, seen, later = priorities(slurm), [], []
        made = controller(slurm, tmp_path, interval_s=0.1)
        made.clock, made.steady = slurm.now, time.monotonic

        def then(line: str, service: Service) -> None:
            seen.append((line, min(priorities(slurm).values())))
            match len(seen):
                case 2:
                    slurm.set_clock(2 * HOUR_S)
                case 5:
                    later.append(submit(slurm, "--gres=gpu:1"))
                case 7:
                    slurm.set_clock(0.0)
                case 11:
                    service.stop.set()

        assert serve(made, then) == DONE
        lines = [line for line, _ in seen]
        assert "ranked=12" in lines[1] and "jumped by +7200 s" in lines[2] and "ranked=12" in lines[3]
        assert "ranked=13" in lines[5] and "jumped by -7200 s" in lines[7] and "cycle failed" not in lines[8]
        assert all(least >= BAND.low for _, least in seen[:8])
        assert made.view.left == {later[0]: "begins later"}, "to Slurm, too, until then"
        assert priorities(slurm).keys() == {*waiting, *later} and none_in_band(slurm) and not assigned(made)
        assert {job: p for job, p in priorities(slurm).items() if job in waiting} == computed
