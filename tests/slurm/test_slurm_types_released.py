"""Whatever happens to jobs with a GPU type and to the controller, the exclusions are removed, and users keep their own."""

from contextlib import suppress

import numpy as np
import pytest
from fake_slurm import FakeSlurm, assigned, controller, cycled, job, no_answer
from slurm_live import controller as live_controller, on
from slurm_types import K80S, LATE_S, LIMIT_S, P100S, SOON_S, cluster, made, restricted, until
from slurm_workload import state, submit, wait_for

from rltune.errors import SlurmUnavailable
from rltune.slurm.controller import Controller
from rltune.slurm.eligibility import OVERRIDDEN
from rltune.slurm.emulate import Emulation
from rltune.slurm.records import Change


def set_priority(slurm: FakeSlurm, control: Controller) -> None:
    control.cycle()
    slurm.change(10, priority=7)
    control.cycle()
    assert control.view.left[10] == OVERRIDDEN


def without_speeds(slurm: FakeSlurm, control: Controller) -> None:
    controller(slurm, control.directory.path, speeds=None).cycle()


def release(slurm: FakeSlurm, control: Controller) -> None:
    assert control.release_all("test") == (1, []) and not assigned(control)


def requeue(slurm: FakeSlurm, control: Controller) -> None:
    slurm.start(10, "p100-1")
    control.cycle()
    slurm.requeue(10)
    release(slurm, control)


def lose_the_change(slurm: FakeSlurm, control: Controller) -> None:
    """The list differs from Slurm: the job still has what it had before."""
    slurm.queue[1], slurm.before_update = until(LATE_S), no_answer
    with pytest.raises(SlurmUnavailable):
        control.cycle()
    assert assigned(control)[10].excluded == "p100-1" and slurm.queue[10].excluded == K80S
    slurm.before_update = lambda: None
    release(slurm, control)


def forget_the_release(slurm: FakeSlurm, control: Controller) -> None:
    """slurmctld ends before it has saved what it answered, and begins with what it had."""
    states = [slurm.queue[10]]
    control.pause = lambda seconds: slurm.queue.update({10: states.pop()} if states else {})
    release(slurm, control)
    assert not states


@pytest.mark.parametrize("what", [set_priority, without_speeds, release, requeue, lose_the_change, forget_the_release])
def test_every_type_is_released(tmp_path, what):
    slurm, control = restricted(tmp_path)
    what(slurm, control)
    assert slurm.queue[10].excluded == frozenset()


def test_the_user_excludes_nodes_that_the_controller_once_excluded(tmp_path):
    """The plan has changed, and Slurm has shown the new nodes; then its user excludes the first ones."""
    slurm, control = restricted(tmp_path)
    slurm.queue[1] = until(LATE_S)
    cycled(control, 3)
    slurm.change(10, excluded=K80S)
    control.cycle()
    control.release_all("test")
    assert slurm.queue[10].excluded == K80S


def test_a_change_that_is_late_is_found(tmp_path):
    """It takes effect after another one was sent, as no answer had come."""
    slurm = cluster()
    control = made(slurm, tmp_path)
    slurm.before_update = no_answer
    with pytest.raises(SlurmUnavailable):
        control.cycle()
    late = Change(10, assigned(control)[10].priority, exclude=assigned(control)[10].excluded)
    slurm.queue[1], slurm.before_update = until(LATE_S), lambda: None
    control.cycle()
    assert slurm.queue[10].excluded == P100S
    slurm.update([late])
    assert slurm.queue[10].excluded == K80S
    release(slurm, control)
    assert slurm.queue[10].excluded == frozenset()


def test_a_job_that_cannot_be_read_stays_on_the_list_with_its_exclusion(tmp_path):
    """Its priority is released by its id. What it excludes by now is unknown, and may be its user's."""
    slurm, control = restricted(tmp_path)
    slurm.hidden, slurm.faults = {10}, ("record 1 (job 10): time_limit: found 'x'",)
    for released in (1, 0):
        found, refused = control.release_all("test")
        assert (found, [o.job for o in refused]) == (released, [10]) and "cannot be read" in refused[0].message
        assert slurm.all_released() and set(assigned(control)) == {10}
    slurm.hidden, slurm.faults = set(), ()
    assert control.release_all("again") == (0, []) and not slurm.queue[10].excluded and not assigned(control)


def test_a_job_with_a_type_alone_is_an_earlier_controllers(tmp_path):
    """Its owner has lowered the priority since the controller was killed: a dry run must not leave the job so."""
    slurm, control = restricted(tmp_path)
    slurm.change(10, priority=7)
    control.jobs = tuple(slurm.queue.values())
    assert control.has_jobs() and made(slurm, tmp_path, live=False).jobs_at_start()[0] == {10}


@pytest.mark.parametrize("seed", range(20))
def test_a_release_leaves_only_what_users_exclude(tmp_path, seed):
    """Jobs come, start, are requeued, held and released, users exclude nodes, answers are lost."""
    rng = np.random.default_rng(seed)
    slurm = cluster()
    control, given, of_users = made(slurm, tmp_path), slurm.update, {}

    def lost(changes: list[Change]) -> list:
        if rng.random() < 0.5:
            given(changes)
        raise SlurmUnavailable("scontrol: no answer")

    for number in range(11, 40):
        slurm.add(job(number, time_limit_s=float(rng.integers(1, 9)) * LIMIT_S))
        some = int(rng.choice([k for k in slurm.queue if k > 1]))
        now = slurm.queue[some]
        event = rng.choice(["start", "requeue", "hold", "exclude", "plan", "lost", "none"])
        if event == "start" and now.state == "PENDING":
            slurm.start(some, "k80-1")
        elif event == "requeue" and now.state == "RUNNING":
            slurm.requeue(some)
        elif event == "hold" and now.state == "PENDING":
            slurm.hold(some)
        elif event == "exclude" and now.state == "PENDING":
            of_users[some] = frozenset({"p100-1", "k80-x"})
            slurm.change(some, excluded=of_users[some])
        elif event == "plan":
            slurm.queue[1] = until(float(rng.choice([SOON_S, LATE_S])))
        slurm.update = lost if event == "lost" else given  # type: ignore[method-assign]
        with suppress(SlurmUnavailable):
            control.cycle()
        if rng.random() < 0.2:  # another process goes on
            control = made(slurm, tmp_path)
    slurm.update = given  # type: ignore[method-assign]
    control.release_all("test")
    waiting = {k: one.excluded for k, one in slurm.queue.items() if one.state == "PENDING"}
    assert waiting == {k: of_users.get(k, frozenset()) for k in waiting}


def excluded(slurm: Emulation, number: int) -> set[str]:
    """What a job excludes, as Slurm reports it."""
    return set(next(one for one in slurm.client().jobs().records if one.id == number).excluded)


def test_a_job_waits_for_its_type_on_real_daemons(idle, tmp_path):
    """The K80s are expected to be free in two days and the P100s in ten minutes; the K80s turn out to be free at once."""
    sizes = {"k80:2": "2-0", "p100:4": "10", "m40:1": "10"}
    for gpus, time in sizes.items():
        for _ in range(1 if gpus.startswith("m40") else 2):
            submit(idle, f"--gres=gpu:{gpus}", f"--time={time}")
    wait_for(lambda: len({one.node_names for one in idle.client().jobs().records if one.state == "RUNNING"}) == 5)
    number, other = submit(idle, "--gres=gpu:2", "--time=600"), {"k80-1", "k80-2", "m40-1"}
    control = live_controller(idle, tmp_path, speeds={"P100": 4, "K80": 1, "M40": 2})
    assert control.cycle().changed == 1 and excluded(idle, number) == other
    idle.run("scancel", str(on(idle, "k80-1")), str(on(idle, "k80-2")))
    later = submit(idle, "--gres=gpu:2", "--time=1")
    wait_for(lambda: state(idle, later) == "RUNNING")
    assert state(idle, number) == "PENDING", "it would have started before the later one"
    assert control.cycle().changed == 0
    idle.run("scancel", str(on(idle, "p100-2")))
    wait_for(lambda: state(idle, number) == "RUNNING")
    assert on(idle, "p100-2") == number
    idle.run("scontrol", "requeue", str(number))
    wait_for(lambda: state(idle, number) == "PENDING")
    assert excluded(idle, number) == other, "a requeued job has what it had"
    control.cycle()
    control.release_all("test")
    assert not excluded(idle, number) and not assigned(control)
