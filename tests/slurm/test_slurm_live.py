"""The controller on real daemons, an emulated cluster of five nodes: real faults, and other users at work."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml
from fake_slurm import BAND, assigned, write_policy
from slurm_live import all_in_band, controller, first_of_m40, kill, meanwhile, none_in_band, priorities, rltune
from slurm_workload import submit, wait_for

from rltune.slurm.emulate import Emulation
from rltune.slurm.records import JobState
from rltune.slurm.service import FAILED, Service
from rltune.slurm.state_directory import StateDirectory

ROOT = Path(__file__).resolve().parents[2]


def test_slurm_takes_the_ranking_and_gets_every_job_back(slurm, waiting, tmp_path):
    made, computed, now_s = controller(slurm, tmp_path), priorities(slurm), slurm.now()
    made.clock = lambda: now_s  # waits are features: an order may change as they grow
    done = made.cycle()
    assert (done.ranked, done.changed, done.refused, done.faults) == (12, 12, 0, ())
    ranked = priorities(slurm)
    assert set(ranked) == set(waiting) and all_in_band(slurm)
    assert made.cycle().changed == 0
    order = slurm.run("squeue", "-h", "-t", "PD", "-S", "-p", "-o", "%A").split()
    assert [int(job) for job in order] == sorted(ranked, key=lambda job: -ranked[job])
    small = [job.id for job in made.view.ranked if job.gpus == 1 and job.gpu_type is None]
    first = max(small, key=lambda job: ranked[job])
    assert first_of_m40(slurm, small) == first, "the first of the ranking that may use the GPU starts first"
    assert made.release_all("test")[0] == 11
    del computed[first]
    wait_for(lambda: priorities(slurm) == computed)


def test_a_thousand_submissions_between_two_cycles(slurm, waiting, tmp_path):
    made = controller(slurm, tmp_path)
    made.cycle()
    with ThreadPoolExecutor(4) as users:
        more = list(users.map(lambda _: submit(slurm, "--gres=gpu:1"), range(1000)))
    done = made.cycle()
    assert (done.ranked, done.refused, done.faults) == (1012, 0, ()) and done.changed >= 1000
    ranked = priorities(slurm)
    assert ranked.keys() == {*waiting, *more} and all_in_band(slurm)
    assert len(set(ranked.values())) == 1012, "an order of all of them"
    assert made.release_all("test") == (1012, []) and not assigned(made)
    assert none_in_band(slurm) and priorities(slurm).keys() == ranked.keys()


def test_restarted_between_reading_and_writing(slurm, waiting, tmp_path):
    """The slurmctld that is written to is another than the one that was read, and has the jobs from its saved state."""
    made, computed = controller(slurm, tmp_path), priorities(slurm)
    meanwhile(made, "update", slurm.restart_controller)
    done = made.cycle()
    assert (done.ranked, done.changed, done.refused) == (12, 12, 0)
    assert priorities(slurm).keys() == set(waiting) and all_in_band(slurm)
    assert made.release_all("test") == (12, []) and not assigned(made)
    wait_for(lambda: priorities(slurm) == computed)


def test_killed_between_reading_and_writing(slurm, waiting, tmp_path):
    client = slurm.client()
    made = controller(slurm, tmp_path, client)

    def killed() -> None:
        kill(slurm, "slurmctld")
        client.timeout_s = 2.0  # of commands that nobody answers any more

    meanwhile(made, "update", killed)
    assert Service(made, once=True).run() == FAILED and set(assigned(made)) == set(waiting)
    slurm.start_controller()  # what it knows is what it had saved last, perhaps without these jobs
    assert controller(slurm, tmp_path).release_all("later")[1] == []
    left = {job: priority for job, priority in priorities(slurm).items() if job in waiting}
    assert not any(priority in BAND for priority in left.values())
    assert all(given.ended_s for job, given in assigned(made).items() if job not in left)


def test_nodes_go_and_jobs_are_cancelled_meanwhile(slurm, waiting, tmp_path):
    made = controller(slurm, tmp_path)
    gone = lambda: (slurm.set_node("k80-1", "DRAIN"), slurm.run("scancel", str(waiting[0])))  # noqa: E731
    meanwhile(made, "nodes", gone, after=True)
    try:
        done = made.cycle()
        assert done.refused == 1 and done.changed == 11
        assert f'"event":"refused","job":{waiting[0]},' in (tmp_path / "decisions.jsonl").read_text()
        made.cycle()
        assert "k80-1" not in made.view.cluster.index
    finally:
        slurm.set_node("k80-1", "RESUME")
    made.release_all("test")
    assert none_in_band(slurm)


class Command:
    """`rltune slurm` in a process of its own, with a configuration for an emulated cluster."""

    def __init__(self, slurm: Emulation, folder: Path) -> None:
        write_policy(folder / "policy.npz")
        self.path, self.state = folder / "mine.yaml", folder / "state"
        settings = {"policy": str(folder / "policy.npz"), "eligible": {"partitions": ["all"]}, "interval_s": 1.0}
        settings |= {"state_directory": str(self.state), "slurm_conf": str(slurm.conf)}
        self.path.write_text(yaml.safe_dump(settings))
        self.env = {**os.environ, **slurm.env, "RLTUNE_ROOT": str(ROOT)}

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """Begin a command."""
        return rltune(*argv, "--config", self.path, env=self.env, stderr=subprocess.STDOUT)

    def output(self, *argv: str) -> str:
        """What a command says that ends well."""
        run = self.start(*argv)
        text = run.communicate(timeout=300)[0]
        assert run.returncode == 0, text
        return text


def test_the_command_is_asked_to_stop(slurm, waiting, tmp_path):
    computed, command = priorities(slurm), Command(slurm, tmp_path)
    run = command.start("run", "--live")
    wait_for(lambda: all_in_band(slurm), 300)
    printed = command.output("status")
    assert "is running" in printed and "12 jobs" in printed
    run.terminate()
    assert "SIGTERM" in run.communicate(timeout=120)[0] and run.returncode == 0
    wait_for(lambda: priorities(slurm) == computed)


def test_the_command_is_killed_and_another_one_goes_on(slurm, waiting, tmp_path):
    """Jobs come and go while nobody is there; the next start has them all ranked, and `release` releases all of them."""
    computed, command = priorities(slurm), Command(slurm, tmp_path)
    run = command.start("run", "--live")
    wait_for(lambda: all_in_band(slurm), 300)
    run.kill()
    run.communicate(timeout=60)
    assert all_in_band(slurm), "nobody was there to release them"
    more = [submit(slurm, "--gres=gpu:1") for _ in range(3)]
    computed |= {job: priorities(slurm)[job] for job in more}
    slurm.run("scancel", str(waiting[0]))
    slurm.run("scontrol", "hold", str(waiting[1]))
    del computed[waiting[0]]
    computed[waiting[1]] = 0
    printed = command.output("run", "--live", "--once")
    assert "going on with" in printed and "ranked=13" in printed
    ranked = priorities(slurm)
    assert ranked.pop(waiting[1]) == 0 and all(BAND.low <= priority <= BAND.high for priority in ranked.values())
    assert ranked.keys() == {*waiting[2:], *more}
    assert "rltune_live 0.0" in (command.state / "metrics.prom").read_text()
    assert "released 13 jobs" in command.output("release")
    wait_for(lambda: priorities(slurm) == computed)
    assert not StateDirectory(command.state).ownership().present, "but for the one that was cancelled"


SET = "somebody has set its priority"


def test_jobs_asked_for_by_id(slurm, waiting):
    """Waiting, cancelled, an array, and some that there have never been."""
    slurm.run("scancel", str(waiting[0]))
    array, client = submit(slurm, "--gres=gpu:1", "--array=1-5"), slurm.client()
    computed = priorities(slurm)
    slurm.run("scontrol", "update", f"jobid={array}_2", "priority=777")
    task = next(job.id for job in client.jobs().records if job.array_id == array != job.id)
    assert client.states([*waiting[:2], array, task, 999_998, 999_999]) == {
        waiting[0]: JobState("CANCELLED", computed[waiting[1]]),
        waiting[1]: JobState("PENDING", computed[waiting[1]]),
        array: JobState("PENDING", computed[array]),
        task: JobState("PENDING", 777),
    }
    assert client.states([999_999]) == {}
    assert client.unknown([*waiting[:2], array, 999_998, 999_999]) == {999_998, 999_999}


def test_a_priority_that_an_administrator_sets_stays(slurm, waiting, tmp_path):
    made, higher, lower, held = controller(slurm, tmp_path), *waiting[:3]
    computed = priorities(slurm)
    made.cycle()
    slurm.run("scontrol", "update", f"jobid={lower}", "priority=778")
    assert made.cycle().ranked == 12 and all_in_band(slurm), "set before the controller has read its own back"
    made.cycle()
    slurm.run("scontrol", "update", f"jobid={higher}", "priority=5000000")
    slurm.run("scontrol", "update", f"jobid={lower}", "priority=777")
    slurm.run("scontrol", "hold", str(held))
    for _ in range(3):
        done = made.cycle()
        assert done.left == {higher: SET, lower: SET, held: "held"}
    slurm.run("scontrol", "release", str(held))
    assert made.cycle().ranked == 10 and priorities(slurm)[held] in BAND, "its user's hold is over"
    assert made.release_all("test") == (10, [])
    wait_for(lambda: priorities(slurm) == {**computed, higher: 5_000_000, lower: 777})
    assert controller(slurm, tmp_path).cycle().ranked == 10, "after a new start, too"
    slurm.run("scontrol", "hold", str(lower))
    again = controller(slurm, tmp_path)
    again.cycle()
    slurm.run("scontrol", "release", str(lower))
    assert again.cycle().ranked == 11, "given to the controller again by a hold of one cycle"
    for word in ("hold", "release"):
        slurm.run("scontrol", word, str(waiting[3]))
    assert again.cycle().left[waiting[3]] == SET, "a hold that no cycle has seen"
    again.release_all("test")
    assert {job: p for job, p in priorities(slurm).items() if p > BAND.low} == {higher: 5_000_000}
