"""Real daemons: the emulated cluster starts, can be controlled, and leaves nothing behind; the client reads and writes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from slurm_live import priorities, rltune
from slurm_record import many_kinds
from slurm_workload import DEPLOYMENT, need, state, submit, wait_for

from rltune.errors import SlurmError
from rltune.slurm.emulate import Emulation, clock, packages
from rltune.slurm.emulate.configure import Folders
from rltune.slurm.records import Change

DAEMONS = ("munged", "slurmctld", *["slurmd"] * 5)


def below(pid: int) -> list[psutil.Process]:
    """Processes below one, and it itself."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def all_daemons(pid: int) -> bool:
    """Whether just the daemons are below a process: for a moment there is one more, as a slurmd that starts a job forks."""
    names = []
    for process in below(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            names.append(process.name())
    return sorted(name for name in names if name in DAEMONS) == sorted(DAEMONS)


def all_gone(processes: list[psutil.Process], timeout_s: float = 60.0) -> bool:
    return not psutil.wait_procs(processes, timeout=timeout_s)[1]


def test_a_job_gets_its_gpus_of_the_papers_nodes(idle):
    job = submit(idle, "--gres=gpu:p100:3", "--time=10")
    wait_for(lambda: state(idle, job) == "RUNNING")
    client = idle.client()
    (found,) = client.jobs().records
    assert (found.id, found.gpus, found.gpu_type, found.state) == (job, 3, "p100", "RUNNING")
    assert abs(found.start_s - idle.now()) < 30 and found.gpus_of_node == {found.node_names[0]: 3}
    read = client.nodes()
    (node,) = (n for n in read.records if n.gpus_alloc)
    assert [(n.name, n.gpus) for n in read.records] == [
        *(("k80-1", {"k80": 2}), ("k80-2", {"k80": 2}), ("m40-1", {"m40": 1})),
        *(("p100-1", {"p100": 4}), ("p100-2", {"p100": 4})),
    ]
    assert node.name == found.node_names[0] and node.gpus_alloc == {"p100": 3} and client.version()[:2].isdigit()


def test_priorities_are_written_and_released(idle):
    client = idle.client()
    blocker = submit(idle, "--exclusive", "--nodes=5", "--time=10")
    wait_for(lambda: state(idle, blocker) == "RUNNING")
    first, second = (submit(idle, "--gres=gpu:p100:4", "--time=10", "--nodes=1") for _ in range(2))
    held = submit(idle, "--hold", "--time=10")
    computed = priorities(idle)
    done = client.update(
        [Change(first, 5), Change(second, 70000, False), Change(99999, 1), Change(held, 9), Change(blocker, None, True)]
    )
    assert [outcome.ok for outcome in done] == [True, True, False, False, False]
    assert "Invalid job id" in done[2].message and "held state" in done[3].message and "pending" in done[4].message
    now = {job.id: job for job in client.jobs().records}
    assert (now[first].priority, now[second].priority) == (5, 70000) and now[held].held
    assert (now[first].shared, now[second].shared) == ("OK", "NO")
    assert client.update([Change(second, None, True)])[0].ok
    assert next(job.shared for job in client.jobs().records if job.id == second) == "YES"
    assert [outcome.ok for outcome in client.release([first, second, 99999])] == [True, True, False]
    wait_for(lambda: priorities(idle) == computed)


def test_every_kind_of_job_can_be_read(slurm_packages):
    with Emulation(DEPLOYMENT) as slurm:
        jobs = many_kinds(slurm)
        read = slurm.client().jobs()
    assert not read.faults
    assert set(jobs.values()) - {jobs["cancelled"]} <= {job.id for job in read.records}


def test_settings_reach_slurm_and_nothing_but_a_kept_folder_is_left(slurm_packages, tmp_path):
    settings, kept = {"OverSubscribe": "YES:4", "PriorityWeightAge": "77"}, tmp_path / "kept"
    with Emulation(DEPLOYMENT, settings=settings, directory=kept) as slurm:
        assert "OverSubscribe=YES:4" in slurm.run("scontrol", "show", "partition")
        assert "PriorityWeightAge       = 77" in slurm.run("scontrol", "show", "config")
        job = submit(slurm, "--gres=gpu:p100:1", "--time=10")
        wait_for(lambda: state(slurm, job) == "RUNNING")
        wait_for(lambda: all_daemons(slurm.supervisor))
        processes = below(slurm.supervisor)
    assert all_gone(processes) and not slurm.folders.sockets.exists()
    assert (kept / "slurm.conf").is_file() and (kept / "log" / "slurmctld.log").is_file()
    with pytest.raises(SlurmError, match="expected a new or empty folder"):
        Emulation(DEPLOYMENT, directory=kept).start()


def test_a_wrong_setting_is_explained_and_nothing_is_left(slurm_packages):
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    with pytest.raises(SlurmError, match="slurmctld of the emulated cluster ended with status 1; .*bogus"):
        Emulation(DEPLOYMENT, settings={"SelectType": "bogus"}).start()
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before


@pytest.mark.daemons
def test_accounts_and_a_fast_clock():
    need(accounting=True, speed=60)
    more = {"partitions": {"short": {"PriorityJobFactor": "0"}}, "qos": {"low": 0, "high": 100}}
    with Emulation(DEPLOYMENT, accounting=True, accounts=["physics", "biology"], speed=60, **more) as slurm:
        simulated_s, begin, started = slurm.now(), time.time(), time.monotonic()
        job = submit(slurm, "--account=physics", "--gres=gpu:p100:2", "--time=600", sleep_s=36_000)
        held = submit(slurm, "--hold", "--account=biology")
        client = slurm.client()
        found = {record.id: record for record in client.jobs().records}
        assert found[job].account == "physics" and found[held].account == "biology"
        assert found[job].gpus_by_type == {"p100": 2}
        assert client.update([Change(held, 5)])[0].message  # held
        both = "--account=physics", "--gres=gpu:p100:4", "--nodes=2", "--time=600"
        where = [(f"all{end}", f"--qos={qos}") for end in ("", "-short") for qos in ("low", "high")]
        waiting = [submit(slurm, *both, f"--partition={name}", qos) for name, qos in where]
        assert len(set(client.nodes().records[0].partitions)) == 2
        wait_for(lambda: all(job.priority > 1 for job in client.jobs().records if job.id in waiting))
        priority = {job.id: job.priority for job in client.jobs().records}
        low, high, short, first = (priority[number] for number in waiting)
        # within what age, and the fair share of one account, change meanwhile
        assert np.allclose([high - low, short - low, first - low], [1000, -1000, 0], atol=50)
        slurm.run("scancel", *map(str, waiting))
        slurm.run("scancel", str(job))
        wait_for(lambda: "CANCELLED" in slurm.run("sacct", "-n", "-X", "-j", str(job), "-o", "State"))
        before, true_s, after = slurm.now(), float(slurm.run("date", "+%s.%N")), slurm.now()
        assert before - 60 < true_s < after + 60  # a true second: its start was read by such a command, too
        assert slurm.now() - simulated_s > 50 * (time.monotonic() - started) > time.time() - begin
        number = slurm.env["FAKETIME_SHARED"].rpartition("_")[2]  # another cluster may be at work, too
        shared = list(Path("/dev/shm").glob(f"*faketime*_{number}"))
        assert shared
    assert not any(path.exists() for path in shared)


@pytest.mark.daemons
def test_processes_that_die_with_the_clocks_lock_stop_nobody():
    need(speed=60)
    with Emulation(DEPLOYMENT, speed=60) as slurm:
        library, lock = clock.semaphore(int(slurm.env["FAKETIME_SHARED"].rpartition("_")[2]))
        for _ in range(100):  # as many as were killed while they had it
            assert library.sem_trywait(lock) == 0
        library.sem_close(lock)
        assert slurm.run("sinfo", "-h", "-o", "%D").strip() == "5" and slurm.run("ls", "-l", slurm.conf)


# The command


Command = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def command() -> Iterator[Command]:
    """Starts ``rltune slurm emulate`` in a process of its own; what a failed test leaves running is ended."""
    started = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        started.append(rltune("emulate", *arguments, stderr=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        with process:  # closes its pipes, and waits
            if process.poll() is None:
                process.terminate()


def marked(mark: str) -> list[psutil.Process]:
    """Processes with a word in their command lines."""
    return [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] and mark in " ".join(p.info["cmdline"])]


def test_a_command_runs_inside_and_its_status_is_passed_on(slurm_packages, command):
    script = "sinfo -h -o %D; echo $SLURM_CONF; (sleep 98765.1 &); sbatch -o /dev/null --wrap 'sleep 98765.2'; exit 7"
    process = command("--", "sh", "-c", script)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 7 and out.startswith("5\n") and "slurmctld" in err and "Traceback" not in err
    assert not Path(out.split()[1]).exists() and not marked("sleep 98765")


def test_a_cluster_file_anywhere_and_what_is_not_there(slurm_packages, command, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "title: Mine\npools:\n  - name: all\n    groups:\n"
        "      - {nodes: 2, gpus: 3, gpu_type: h100, cpus: 4, mem_gb: 8}\n"
    )
    out, err = command("--cluster", path, "--", "sinfo", "-h", "-o", "%D %G").communicate(timeout=120)
    assert out == "2 gpu:h100:3\n", err
    process = command("--", "no-such-command-here")
    assert "no such command" in process.communicate(timeout=120)[1] and process.returncode == 127
    process = command("--cluster", tmp_path / "none.yaml", "--", "true")
    assert f"{tmp_path / 'none.yaml'}: no such file" in process.communicate(timeout=120)[1] and process.returncode == 1


@pytest.mark.parametrize(("number", "starting"), [(number, False) for number in (15, 2, 1, 9)] + [(15, True)], ids=str)
def test_signals_end_command_and_cluster(slurm_packages, command, number, starting):
    """Also while it starts, and where it is killed outright."""
    process = command("--", "sh", "-c", "echo $SLURM_CONF; exec sleep 98765.3")
    if starting:
        while "munged" not in process.stderr.readline():
            assert process.poll() is None
    else:
        conf = Path(process.stdout.readline().strip())
        wait_for(lambda: all_daemons(process.pid))
    processes = below(process.pid)[1:]
    process.send_signal(number)
    assert process.wait(60) == (-number if number == signal.SIGKILL else 128 + number)
    assert all_gone(processes) and not marked("sleep 98765.3")
    if not starting:
        wait_for(lambda: not conf.parent.exists())


def test_a_daemon_that_dies_is_reported(slurm_packages, command, tmp_path):
    go = tmp_path / "go"
    process = command("--", "sh", "-c", f"echo $SLURM_CONF; until [ -e {go} ]; do sleep 0.1; done; exit 3")
    process.stdout.readline()
    processes = below(process.pid)[1:]
    next(p for p in processes if p.name() == "slurmctld").kill()
    while "slurmctld has ended with status -9" not in (line := process.stderr.readline()):
        assert line, "the command ended without a word of it"
    go.touch()
    process.communicate(timeout=120)
    assert process.returncode == 3 and all_gone(processes)


@pytest.mark.daemons
def test_the_client_inside_a_fast_clock_waits_by_the_true_one(command):
    need(speed=100)
    code = (
        "import time; from rltune.slurm.client import Client; client = Client(timeout_s=20); begin = time.time()\n"
        "print(len(client.nodes().records), len(client.jobs().records), time.time() - begin)"
    )
    process = command("--speed", 100, "--", sys.executable, "-c", code)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    nodes, jobs, seconds = out.split()
    assert (nodes, jobs) == ("5", "0") and float(seconds) > 1  # the three commands take longer than 10 true ms


def test_missing_packages_and_how_to_install_them(monkeypatch):
    from rltune.slurm.emulate import packages

    monkeypatch.setattr(packages, "program", lambda name: None if name in ("slurmctld", "slurmdbd") else f"/bin/{name}")
    with pytest.raises(SlurmError) as caught:
        Emulation(DEPLOYMENT, accounting=True).start()
    expected = "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge slurmdbd mariadb-server"
    assert expected in str(caught.value)


def test_nobody_else_reads_the_key_or_may_send_jobs_that_run_as_this_user(tmp_path, monkeypatch):
    def mode(path: Path) -> int:
        return path.stat().st_mode & 0o777

    folders, seen, write = Folders(tmp_path / "cluster", tmp_path), [], Path.write_bytes
    for user, expected in ((1000, 0o700), (0, 0o711)):
        monkeypatch.setattr(os, "getuid", lambda user=user: user)
        folders.make()
        assert mode(tmp_path) == mode(folders.root) == mode(folders.run) == expected
    slurm = Emulation(DEPLOYMENT)
    slurm.folders = folders
    monkeypatch.setattr(packages, "found", str)
    monkeypatch.setattr(slurm, "_launch", lambda *arguments: None)
    monkeypatch.setattr(Path, "write_bytes", lambda path, data: (seen.append(mode(path)), write(path, data)))
    slurm._start_munge({})
    assert seen == [0o600], "before there is anything in it"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"speed": 0.5}, "speed: found 0.5"),
        ({"speed": float("nan")}, "speed"),
        ({"accounts": ["a"]}, "accounting"),
        ({"qos": {"a": 1}}, "QOS a: .* accounting"),
    ],
)
def test_options_that_cannot_be(options, words):
    with pytest.raises(SlurmError, match=words):
        Emulation(DEPLOYMENT, **options)


def test_set_needs_a_key_and_a_value(cli):
    cli("slurm", "emulate", "--set", "OverSubscribe", "--", "true").explains("--set", "'OverSubscribe'", "KEY=VALUE")
    cli("slurm", "emulate", "--cluster", "deploymint", "--", "true").explains("deploymint", "deployment")


def zombies(parent: psutil.Process) -> list[str]:
    """Names of a process's children that have ended and were not waited for; one may vanish while it is looked at."""
    found = []
    for child in parent.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE and child.name() != "slurmd":
                found.append(child.name())
    return found


def test_jobs_that_ended_leave_no_processes_behind(idle):
    """Each leaves a process that its supervisor adopts: let go one by one, else the end of a day of jobs takes minutes."""
    for _ in range(3):
        submit(idle, "--time=1", name="short")
    wait_for(lambda: idle.run("squeue", "-h", "-t", "R", "-o", "%A").count("\n") == 3)
    idle.run("scancel", f"--user={idle.user}")
    adopted = psutil.Process(idle.supervisor)
    wait_for(lambda: not zombies(adopted))
    assert not idle.ended()
