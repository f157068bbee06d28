"""The experiment on real daemons: submissions, accounts, the written order, and clusters that fail."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from slurm_workload import DEPLOYMENT, need, wait_for
from workload_cases import cluster, group

from rltune.errors import ClusterDied, SlurmError
from rltune.slurm.emulate import Emulation, configure, packages
from rltune.slurm.emulate.machine import make_database
from rltune.slurm.emulate.processes import Processes
from rltune.slurm.experiment import accounts, conduct as conducting, submission
from rltune.slurm.experiment.accounts import FIELDS, read
from rltune.slurm.experiment.conduct import Conducted, conduct, policy_of_rule
from rltune.slurm.experiment.submission import CALM_S, Submission, account_of, submit, submit_all

SPEED = 100.0
FULL_S = 1500.0
"""How long all GPUs are taken at first: fifteen true seconds, in which a dozen jobs are submitted and ordered."""


def job(name: str, at_s: float, gpus: int, run_s: float, limit_s: float, account: str = "ann") -> Submission:
    return Submission(name, at_s, account, "all", gpus, -(-gpus // 4), 4 * gpus, limit_s, run_s)


SMALL = [job(f"small{k}", 0, gpus, FULL_S, 3600, "ben") for k, gpus in enumerate((2, 2, 1))]
FULL = [job("both", 0, 8, FULL_S, 3600), *SMALL]
LIMITS_S = (5400.0, 1200.0, 7200.0, 2400.0, 600.0, 3600.0)
QUEUE = [job(f"queued{k}", 60.0 + k, 4, 200.0 if limit > 1000 else 190.0, limit) for k, limit in enumerate(LIMITS_S)]


Run = Callable[..., Conducted]


@pytest.fixture
def run(slurm_packages: None, tmp_path: Path) -> Run:
    """Runs jobs on the cluster of paper §5.6, in Slurm's order or in that of a rule."""
    need(accounting=True, speed=SPEED)

    def run(jobs: list[Submission], rule: str | None = None, say: Any = print) -> Conducted:
        policy = None if rule is None else policy_of_rule(rule)
        return conduct(DEPLOYMENT, jobs, policy, SPEED, tmp_path / "run.log", {8: 24.0}, say)

    return run


@pytest.mark.parametrize("rule", [None, "saf", "fifo"])
def test_a_dozen_jobs_run_in_the_order_that_was_written(run, rule, tmp_path):
    done = run([*FULL, *QUEUE], rule)
    jobs = done.jobs.set_index("job")
    assert list(jobs.index) == [job.name for job in (*FULL, *QUEUE)] and set(jobs["state"]) == {"COMPLETED"}
    assert list(jobs["asked_gpus"]) == [8, 2, 2, 1, *[4] * 6] and set(jobs["account"]) == {"ann", "ben"}
    started = jobs.dropna(subset=["start_s"])
    assert len(started) >= len(jobs) - 1, "slurmdbd now and then loses a start, seldom two of a dozen"
    assert (started["gpus"] == started["asked_gpus"]).all()
    assert (started["nodes"] == np.where(started["gpus"] == 8, 2, 1)).all()
    late = jobs["submit_s"] - jobs["at_s"]  # a true second early where the clock's start was read badly, six late
    assert late.between(-100, 600).all() and (started["start_s"] >= started["submit_s"]).all()
    assert (started["end_s"] - started["start_s"] >= started["run_s"] - 2).all()
    queued = jobs.loc[[job.name for job in QUEUE]]
    assert (queued["start_s"].dropna() >= FULL_S - 100).all(), "no node of four GPUs was free before"
    assert done.facts["simulated_s"] == jobs["end_s"].max() and abs(done.facts["drift_s"]) < 100
    if rule is None:
        assert not len(done.cycles)
        return
    assert done.cycles["ok"].all() and done.cycles["changed"].sum() >= 6 and not done.cycles["refused"].sum()
    assert (done.cycles["took_s"] > 0).all() and "released " in (tmp_path / "run.log").read_text()
    # of one size: the shortest limit, the smallest area
    wanted = np.argsort(LIMITS_S) if rule == "saf" else np.arange(6)
    start_s = queued["start_s"].to_numpy()[wanted]  # two at a time, on two nodes; backfilling may change the middle
    assert np.nanmax(start_s[:2]) < np.nanmin(start_s[4:])


def test_the_error_of_a_cluster_that_dies_names_the_log(run, tmp_path, monkeypatch):
    def dies(slurm: Emulation, *_: object) -> None:
        next(child for child in psutil.Process(slurm.supervisor).children() if child.name() == "slurmctld").kill()
        wait_for(lambda: bool(slurm.ended()))
        raise SlurmError("sbatch: Unable to contact slurm controller")

    monkeypatch.setattr(conducting, "submit_all", dies)
    said = r"Unable to contact .* slurmctld of the emulated cluster ended .* slurmctld\.log"
    with pytest.raises(ClusterDied, match=said):
        run(QUEUE)
    assert (tmp_path / "run.daemons" / "slurmctld.log").read_text()


SHORT = [job("short", 0, 1, 60, 600)]


def test_a_controller_that_fails_is_no_fault_of_the_cluster(run, monkeypatch):
    def fails(_: object) -> None:
        raise KeyError("a mistake of its own")

    monkeypatch.setattr(conducting._Timed, "cycle", fails)
    with pytest.raises(SlurmError, match="the controller .*a mistake of its own") as raised:
        run([*SHORT, *QUEUE], "fifo")
    assert not isinstance(raised.value, ClusterDied)


def test_a_cluster_that_does_not_stop_after_its_run_is_reported(run, monkeypatch):
    really_end = Processes.end

    def hangs(processes: Processes, timeout_s: float = 120.0) -> None:
        really_end(processes, timeout_s)
        raise SlurmError("still ending daemons")

    monkeypatch.setattr(Processes, "end", hangs)
    said: list[str] = []
    done = run(SHORT, say=said.append)
    assert list(done.jobs["state"]) == ["COMPLETED"] and said[-1].endswith("still ending daemons")


def test_a_supervisor_that_takes_long_is_an_error_that_names_it():
    processes = Processes()
    with pytest.raises(SlurmError, match=rf"supervisor \(process {processes.pid}\) .* after 0 s"):
        processes.end(0)
    processes.end()


def test_a_supervisor_that_has_died_is_ended_without_an_error():
    processes = Processes()
    os.kill(processes.pid, signal.SIGKILL)
    wait_for(lambda: Path(f"/proc/{processes.pid}/stat").read_text().split()[2] == "Z")
    with pytest.raises(ClusterDied):
        processes.states()
    processes.end()


def test_a_database_that_is_not_made_in_time_is_an_error(monkeypatch, tmp_path):
    def late(argv: list[str], timeout: float, **_: Any) -> None:
        raise subprocess.TimeoutExpired(argv, timeout)

    monkeypatch.setattr(subprocess, "run", late)
    monkeypatch.setattr(packages, "found", Path)
    with pytest.raises(SlurmError, match="mariadb-install-db failed: no end within 120 s"):
        make_database(configure.Folders(tmp_path, tmp_path), "me")


def test_a_daemon_that_outlives_its_signal_is_still_known(tmp_path):
    processes, log = Processes(), tmp_path / "log"
    try:
        processes.start("deaf", ["sh", "-c", "trap '' TERM; echo ready; exec sleep 600"], os.environ, log)
        wait_for(lambda: "ready" in log.read_text())
        assert processes.kill("deaf", signal.SIGTERM, 0.1) is None and processes.states() == {"deaf": None}
        assert processes.kill("deaf", signal.SIGKILL) == -signal.SIGKILL and processes.states() == {}
    finally:
        processes.end()


def test_nodes_taken_out_of_service_for_a_hanging_process_work_again(idle):
    idle.set_node("p100-1", "DRAIN", conducting.HANGING)
    idle.set_node("k80-1", "DRAIN", "a fan is broken")
    said: list[str] = []
    watch = conducting._Watch(idle, None, 60.0, 0.0, said.append)
    watch.resume_nodes()
    watch.resume_nodes()
    states = dict(line.split() for line in idle.run("sinfo", "-N", "-h", "-o", "%N %T").splitlines())
    idle.set_node("k80-1", "RESUME")
    assert (states["p100-1"].rstrip("*"), states["k80-1"], states["m40-1"]) == ("idle", "drained", "idle")
    assert watch.resumed == ["p100-1"] and len(said) == 1


class Answering:
    """A cluster whose commands give these answers, the last one again and again; the last command is in ``argv``."""

    speed = SPEED
    ended = staticmethod(dict)

    def __init__(self, *answers: str, now: Callable[[], float] = lambda: 0.0) -> None:
        self.answers, self.now = list(answers), now

    def run(self, *argv: str, stdin: str = "") -> str:
        self.argv, self.stdin = argv, stdin
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.mark.parametrize("states", ["PENDING RUNNING", "PENDING"])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_standstill_is_an_error_of_the_cluster(states, ordered, monkeypatch):
    """Or of the controller, where it orders jobs and none runs."""
    monkeypatch.setattr(conducting, "STALLED_S", -100.0)
    driver = SimpleNamespace(check=lambda: None) if ordered else None  # a controller at work
    watch = conducting._Watch(Answering(states), driver, 60.0, 0.0, print)
    with pytest.raises(SlurmError, match="nothing has started or ended") as raised:
        watch.look()
    assert isinstance(raised.value, ClusterDied) == (not ordered or "RUNNING" in states)


def test_nothing_else_is_done_right_before_a_submission(monkeypatch):
    true_s, looked_s, submitted_s = [0.0], [], []

    def passes(seconds: float) -> None:
        true_s[0] += seconds

    def looks() -> None:
        looked_s.append(true_s[0])
        passes(0.8 * CALM_S)

    monkeypatch.setattr(submission, "time", SimpleNamespace(sleep=passes))
    monkeypatch.setattr(Submission, "options", lambda self: submitted_s.append(true_s[0]) or [])
    jobs = [job("a", 300, 1, 1, 60), job("b", 330, 1, 1, 60), job("c", 500, 1, 1, 60)]
    submit_all(Answering("1", now=lambda: SPEED * true_s[0]), jobs, 0.0, looks)
    assert looked_s and all(min(abs(at - s) for s in (3.0, 5.0) if s > at) >= CALM_S - 1e-9 for at in looked_s)
    assert not any(3.0 <= at < 3.3 for at in looked_s)


def sacct(**changes: str) -> str:
    """sacct's line of the first queued job."""
    values = ("7", "1060", "1100", "1300", "ann", "all-short", "high", "p100-1", "cpu=16,gres/gpu=4", "COMPLETED")
    row = dict(zip(FIELDS, (*values, "queued0"), strict=True))
    return "|".join((row | changes).values()) + "\n"


NEVER = {"State": "CANCELLED by 0", "Start": "None", "AllocTRES": "", "NodeList": "None assigned"}
LOST = {"Start": "Unknown", "AllocTRES": "", "NodeList": "None assigned"}


@pytest.mark.parametrize(
    ("changes", "timed", "expected"),
    [
        ({}, True, ("COMPLETED", 100.0, 300.0, 4, 1)),
        ({"NodeList": "p100-[1-2]"}, True, ("COMPLETED", 100.0, 300.0, 4, 2)),
        (NEVER, True, ("CANCELLED", np.nan, 300.0, 0, 0)),
        (LOST, False, ("COMPLETED", np.nan, 300.0, 0, 0)),
    ],
)
def test_accounts_are_read(changes, timed, expected):
    """A start that the accounting has lost is done without once it had the time."""
    (row,) = read(sacct(JobName="a pipe|queued0") + sacct(**changes), QUEUE[:1], 1000.0, timed).to_dict("records")
    assert (row["slurm_id"], row["account"], row["submit_s"], row["limit_s"]) == (7, "ann", 60.0, 5400.0)
    assert (row["partition"], row["qos"]) == ("all-short", "high")
    np.testing.assert_equal(tuple(row[key] for key in ("state", "start_s", "end_s", "gpus", "nodes")), expected)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no job queued0"),
        (sacct(State="RUNNING", End="Unknown"), "is RUNNING"),
        (sacct() + "1|2\n", "found 2 fields in '1|2', expected JobIDRaw, Submit, "),
        (
            sacct(Start="Unknown"),
            "(Slurm's 7) is COMPLETED: found Start Unknown and NodeList p100-1, expected a time and",
        ),
        (sacct(JobIDRaw="7_1"), "queued0: JobIDRaw: found '7_1', expected a number"),
        (sacct(Submit="Unknown"), "queued0: Submit: found 'Unknown', expected seconds since 1970"),
        (sacct(AllocTRES="gres/gpu=two"), "queued0: AllocTRES"),
    ],
)
def test_accounts_that_are_not_complete_or_cannot_be_read_are_an_error(text, what):
    with pytest.raises(SlurmError, match=re.escape(what)):
        read(text, QUEUE[:1], 1000.0)


def test_accounts_are_asked_again_for_a_while(monkeypatch):
    slurm = Answering(sacct(**LOST), sacct())
    assert accounts.jobs_of(slurm, QUEUE[:1], 1000.0)["start_s"].tolist() == [100.0]
    monkeypatch.setattr(accounts, "LATE_S", 0.0)
    with pytest.raises(ClusterDied, match="queued0 .* is COMPLETED: found Start Unknown"):
        accounts.jobs_of(Answering(sacct(**LOST)), QUEUE[:1], 1000.0)


def test_what_sbatch_is_asked_for():
    options = job("x", 0, 8, 10, 61.0).options()
    assert {"--nodes=2", "--gres=gpu:4", "--time=2", "--cpus-per-task=16"} <= set(options)
    assert {"--account=ann", "--partition=all"} <= set(options)
    assert "--qos=high" in replace(job("x", 0, 8, 10, 61.0), qos="high").options() and "--qos=" not in options
    assert "--gpus=5" in Submission("x", 0, "ann", "all", 5, 2, 5, 60, 10).options()
    assert account_of("User 07@Lab") == "user_07_lab" and account_of("") == "nobody"


def test_a_job_sleeps_as_long_as_on_the_type_of_its_node(tmp_path):
    """The script, run with a sleep that prints its argument."""
    times_s = {"p100": 10.0, "k80": 45.4, "a100": 5.0, "a100-40gb": 20.0}
    typed = {"times_s": times_s, "types": "p100|k80", "model": "A3C"}
    slurm = Answering("17;emulated\n")
    assert submit(slurm, replace(job("x", 0, 1, 10.0, 60), **typed)) == 17
    assert {"--constraint=p100|k80", "--comment=A3C"} <= set(slurm.argv)
    (tmp_path / "sleep").write_text("#!/bin/sh\necho $1\n")
    (tmp_path / "sleep").chmod(0o755)
    for node, seconds in (("k80-12", "45"), ("p100-1", "10"), ("a100-1", "5"), ("a100-40gb-1", "20"), ("m40-1", "10")):
        env = {"SLURMD_NODENAME": node, "PATH": f"{tmp_path}:{os.defpath}"}
        said = subprocess.run(["sh"], input=slurm.stdin, env=env, capture_output=True, text=True, check=True)
        assert said.stdout == f"{seconds}\n"


@pytest.mark.parametrize(("limit_s", "minutes"), [(60.0, 1), (60.5, 2), (1.0, 1), (7200.0, 120)])
def test_a_limit_is_rounded_up_to_minutes(limit_s, minutes):
    assert job("x", 0, 1, 10.0, limit_s).limit_min == minutes


def test_an_answer_of_sbatch_without_an_id_is_quoted():
    with pytest.raises(SlurmError, match="job x of the experiment: found 'welcome' from sbatch"):
        submit(Answering("welcome"), job("x", 0, 1, 10.0, 60))


def test_gpu_types_that_slurm_cannot_distinguish_are_an_error():
    mixed = cluster([group(1, 8, "A100 40GB"), group(1, 8, "A100-40GB")])
    with pytest.raises(SlurmError, match="GPU types a100 40gb, a100-40gb: the same once written"):
        configure.nodes_of(mixed, list(range(2)))


def test_the_memory_of_nodes_is_in_slurms_mib():
    p100, *_ = configure.nodes_of(DEPLOYMENT, list(range(10)))
    assert p100.mem_mb == 244_140, "256 GB, as the controller reads them"


def test_small_nodes_are_taken_first():
    folders, nodes = configure.Folders(Path("/x"), Path("/x")), configure.nodes_of(DEPLOYMENT, list(range(10)))
    plain, small = (
        configure.slurm_conf(DEPLOYMENT, nodes, folders, "root", 1, small_first=first) for first in (False, True)
    )
    assert " Weight=" not in plain
    weights = dict(re.findall(r"^NodeName=(\S+) .* Weight=(\d+)$", small, re.MULTILINE))
    assert sorted(weights, key=lambda name: int(weights[name])) == ["m40-1", "k80-1", "k80-2", "p100-1", "p100-2"]
