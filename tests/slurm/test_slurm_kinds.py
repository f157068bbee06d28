"""Jobs of all kinds on real daemons: which are left to Slurm, and that these do not change."""

from fake_slurm import BAND, assigned, cycled
from slurm_live import controller, created, first_of_m40, meanwhile, none_in_band, priorities
from slurm_workload import state, submit, wait_behind, wait_for

from rltune.slurm.records import Change
from rltune.slurm.release import release

SETTINGS = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE", "Licenses": "solver:1"}
"""Licences, and partitions of a higher tier that take nodes from the others."""


def test_kinds_that_no_priority_could_start(slurm, waiting, tmp_path):
    """A reservation's, a dependent one, a later one, parts of a heterogeneous job, an array, one without a licence free."""
    when = ["StartTime=now+1hour", "Duration=60", f"Users={slurm.user}", "Nodes=k80-1", "Flags=IGNORE_JOBS"]
    with created(slurm, "reservation", "ReservationName=later", *when):
        licensed = [submit(slurm, "--licenses=solver:1", "--gres=gpu:1", "--time=5") for _ in range(2)]
        kinds = {
            "Reservation": submit(slurm, "--reservation=later", "--gres=gpu:1", "--time=5"),
            "depends on other jobs": submit(slurm, f"--dependency=afterok:{waiting[0]}", "--gres=gpu:1"),
            "begins later": submit(slurm, "--begin=now+1hour", "--gres=gpu:1"),
            "task of an array": submit(slurm, "--array=1-3", "--gres=gpu:1"),
            "held": submit(slurm, "--hold", "--gres=gpu:1"),
            "part of a heterogeneous job": submit(slurm, "--gres=gpu:p100:1", ":", "--gres=gpu:k80:1"),
        }
        made, computed = controller(slurm, tmp_path), priorities(slurm)
        done = cycled(made, 2)
        assert done.ranked == 14 and set(licensed) <= assigned(made).keys()
        left = {why: done.left[job] for why, job in kinds.items()}
        assert left.pop("Reservation") in ("waits for Reservation", "begins later") and left == {k: k for k in left}
        now = priorities(slurm)
        assert all(now[job] == computed[job] for job in done.left)
        assert all(now[job] in BAND for job in (*waiting, *licensed))
        made.release_all("test")
        assert none_in_band(slurm) and priorities(slurm).keys() == computed.keys()


def test_tasks_of_a_ranked_array_that_others_hold_or_set(slurm, waiting, tmp_path):
    """The waiting rest alone is ranked and released, also where its tasks are at intervals, or the last one has the array's
    id."""
    array, steps, two = (submit(slurm, f"--array={n}", "--gres=gpu:1") for n in ("1-9%3", "0-8:2", "1-2"))
    computed = priorities(slurm)
    made = controller(slurm, tmp_path, eligible={"partitions": ["all"], "also": ["arrays"]})
    assert made.cycle().ranked == 15
    slurm.run("scontrol", "update", f"jobid={array}_4", "comment=apart from the rest")
    cycled(made, 2)
    (apart,) = priorities(slurm).keys() - computed.keys()
    for task in (f"{array}_3", f"{steps}_4", f"{two}_1"):
        slurm.run("scontrol", "hold", task)
    slurm.run("scontrol", "update", f"jobid={apart}", "priority=777")
    others = {number: at for number, at in priorities(slurm).items() if at in (0, 777)}
    assert sorted(others.values()) == [0, 0, 0, 777]
    made.cycle()
    moved = made.slurm.update([Change(number, BAND.low + number) for number in (array, steps, two)])
    assert all(outcome.ok for outcome in moved) and others.items() <= priorities(slurm).items()
    assert made.cycle().refused == 0
    meanwhile(made, "states", lambda: slurm.run("scontrol", "hold", f"{array}_9"))
    assert [one.ok for one in release(made.slurm, {array: BAND.low}, BAND, fresh=False)] == [True]
    (held,) = priorities(slurm).keys() - computed.keys() - others.keys()
    others[held] = 0
    assert priorities(slurm)[held] == 0 and priorities(slurm)[array] == computed[array]
    assert made.release_all("test")[1] == [] and none_in_band(slurm)
    assert priorities(slurm) == {**computed, **others}


def test_a_ranked_job_that_is_preempted(slurm, idle, tmp_path):
    """It is put back with the controller's priority, and is ranked or released; the other partition's job runs."""
    waiting = wait_behind(slurm)
    with created(slurm, "PartitionName=urgent", "Nodes=ALL", "State=UP", "PriorityTier=10"):
        made = controller(slurm, tmp_path)
        made.cycle()
        ranked = first_of_m40(slurm, waiting)
        made.cycle()
        urgent = submit(slurm, "--partition=urgent", "--gres=gpu:m40:1")
        wait_for(lambda: state(slurm, urgent) == "RUNNING")
        wait_for(lambda: state(slurm, ranked) == "PENDING")
        assert priorities(slurm)[ranked] == assigned(made)[ranked].priority
        done = cycled(made, 2)
        assert ranked in assigned(made) or done.left[ranked] == "begins later"
        assert made.release_all("test")[1] == [] and none_in_band(slurm)
        assert {*waiting} <= {job.id for job in slurm.client().jobs().records}
