"""The client against stand-ins for Slurm's commands: what it sends, and how it handles their failures."""

import os
import re
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fake_slurm import assigned, controller

from rltune.errors import SlurmError, SlurmUnavailable
from rltune.slurm.client import FIRST_BATCH, LARGEST_BATCH, PAUSES_S, Client
from rltune.slurm.ownership import Assignment, Ownership
from rltune.slurm.records import Change, JobState, Outcome
from rltune.slurm.service import CyclesFailed, Service

RECORDED = Path(__file__).parent / "recorded" / "22.05"


class Commands:
    """A folder of stand-ins, each a few lines of Python that see argv as ``args`` and standard error as ``err``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls.txt"

    def make(self, name: str, code: str) -> None:
        path = self.folder / name
        path.write_text(
            f"#!{sys.executable}\nimport os, sys, time\nargs, err = sys.argv[1:], sys.stderr\n"
            f"open({str(self.calls)!r}, 'a').write(repr([{name!r}, *args]) + chr(10))\n{code}"
        )
        path.chmod(0o755)

    def client(self, timeout_s: float = 20.0, **env: str) -> Client:
        return Client(timeout_s=timeout_s, env={"PATH": str(self.folder), **env})

    def called(self, name: str) -> int:
        return sum(f"['{name}'" in line for line in self.calls.read_text().splitlines())


SCONTROL = """
state = {folder!r} + '/tries'
tries = int(open(state).read()) + 1 if os.path.exists(state) else 1
open(state, 'w').write(str(tries))
for k, line in enumerate(sys.stdin.read().splitlines()):
    words = line.split()
    if k == {silent_at} or tries > 1 and {silent_at}:
        print('Unable to contact slurm controller (connect failure)', file=err)
        break
    if words == ['show', 'job', '7']:
        print('slurm_load_jobs error: Invalid job id specified', file=err)
    elif words[:2] == ['show', 'job']:
        print('JobName=invalid job id')
    elif not words[0] in ('update', 'release'):
        print('invalid keyword:', line, file=err, flush=True)
    elif words[1] in ('jobid=7', '7'):
        print('Invalid job id specified for job 7', file=err)
        print('slurm_suspend error: Invalid job id specified', file=err)
    elif words[1] == 'jobid=8' and tries < {until}:
        print('Job update not available right now, the DB index is being set, try again in a bit for job 8', file=err)
    else:
        time.sleep({each_s})
        open({folder!r} + '/made', 'a').write(words[1].removeprefix('jobid=') + chr(10))
"""
"""Job 7 is not known, job 8 cannot be changed yet; ``silent_at``: the line from which it is silent."""


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


def scontrol(commands: Commands, until: int = 1, silent_at: int | None = None, each_s: float = 0.0) -> None:
    given = {"until": until, "silent_at": silent_at, "each_s": each_s}
    commands.make("scontrol", SCONTROL.format(folder=str(commands.folder), **given))


def test_each_change_has_its_outcome(commands):
    scontrol(commands)
    changes = [Change(5, 10), Change(7, 11), Change(6, None, True), Change(7, 12, False), Change(9, np.int64(13))]
    gone = Outcome(7, False, "Invalid job id specified for job 7; slurm_suspend error: Invalid job id specified")
    assert commands.client().update(changes) == [Outcome(5, True), gone, Outcome(6, True), gone, Outcome(9, True)]
    assert commands.client().release([7, 5]) == [gone, Outcome(5, True)] and commands.called("scontrol") == 2
    assert commands.client().update([]) == [] and commands.called("scontrol") == 2


def test_what_scontrol_says_at_its_start_is_no_answer_to_a_change(commands):
    """But for what says that Slurm does not answer."""
    code = SCONTROL.format(folder=str(commands.folder), until=1, silent_at=None, each_s=0.0)
    warning = "scontrol: error: Ignoring ControlMachine since SlurmctldHost is set."
    commands.make("scontrol", f"print({warning!r}, file=err, flush=True)\n{code}")
    first, second = commands.client().update([Change(5, 1), Change(7, 2)])
    assert first == Outcome(5, True) and second.over
    assert commands.client().unknown([5, 7]) == {7}
    commands.make("scontrol", f"print('Unable to contact slurm controller', file=err, flush=True)\n{code}")
    with pytest.raises(SlurmUnavailable, match="Unable to contact"):
        commands.client().update([Change(5, 1)])


def test_many_changes_go_in_batches_each_with_the_time_limit_to_itself(commands):
    """A small one first, to see how fast Slurm is."""
    scontrol(commands)
    wrong = {0, FIRST_BATCH, FIRST_BATCH + LARGEST_BATCH}
    outcomes = commands.client().update([Change(7 if k in wrong else 10 + k, 1) for k in range(max(wrong) + 1)])
    assert {k for k, outcome in enumerate(outcomes) if not outcome.ok} == wrong
    assert commands.called("scontrol") == 3


def test_batches_are_as_long_as_a_slow_slurm_lets_them_be(commands):
    """Fifty changes of 0.05 s take longer than the limit of 1 s: what was answered by then counts, and the rest follows."""
    scontrol(commands, each_s=0.05)
    client, made = commands.client(1.0), commands.folder / "made"
    assert client.update([Change(100 + k, 1) for k in range(60)]) == [Outcome(100 + k, True) for k in range(60)]
    assert 1 <= client.batch <= 8 and {int(job) for job in made.read_text().split()} == set(range(100, 160))


def test_what_a_slurm_that_falls_silent_has_answered_counts(commands):
    scontrol(commands, silent_at=7)
    outcomes = commands.client().update([Change(100 + k, 1) for k in range(5)])
    assert [outcome.ok for outcome in outcomes] == [True] * 3 + [False] * 2
    assert [outcome.unknown for outcome in outcomes] == [False] * 3 + [True] * 2 and "Unable" in outcomes[4].message
    with pytest.raises(SlurmUnavailable, match="Unable to contact"):
        commands.client().update([Change(100, 1)])


@pytest.mark.parametrize(("age", "expected"), [("300 sec", 420.0), ("0 sec", 7 * 86400.0)])
def test_ended_jobs_may_be_requeued_for_slurms_minjobage(commands, age, expected):
    commands.make("scontrol", f"print('MessageTimeout = 10 sec\\nMinJobAge               = {age}')")
    assert commands.client().requeue_s() == expected


def test_what_is_not_possible_right_now_is_tried_again(commands, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    scontrol(commands, until=3)
    assert commands.client().update([Change(5, 1), Change(8, 2)]) == [Outcome(5, True), Outcome(8, True)]
    assert commands.called("scontrol") == 3
    scontrol(commands, until=100)
    _, never = commands.client().update([Change(5, 1), Change(8, 2)])
    assert not never.ok and "not available right now" in never.message
    assert commands.called("scontrol") == 3 + 1 + len(PAUSES_S)


def test_of_a_change_tried_again_before_a_silence_nobody_knows_whether_it_was_made(commands, monkeypatch):
    client, silence = commands.client(), SlurmUnavailable("no answer")
    answers = iter([(["", "not available right now"], None), ([], silence)])
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(client, "_send", lambda commands: next(answers))
    assert client.update([Change(5, 1), Change(8, 2)]) == [
        Outcome(5, True),
        Outcome(8, False, "no answer", unknown=True),
    ]


@pytest.mark.parametrize("wrong", ["5; rm -rf /", "5\nshutdown", "9", 1.5])
def test_only_numbers_are_sent_and_asked(commands, wrong):
    scontrol(commands)
    client = commands.client()
    for ask in (client.release, client.states, client.unknown):
        with pytest.raises((ValueError, TypeError)):
            ask([wrong])  # type: ignore[list-item]
    for change in (Change(wrong, 1), Change(5, wrong)):  # type: ignore[arg-type]
        with pytest.raises(ValueError):
            client.update([Change(7, 1), change])
    assert not commands.calls.exists()


@pytest.mark.parametrize(
    "words",
    [
        "Unable to contact slurm controller (connect failure)",
        "slurm_load_jobs error: Incompatible versions of client and server code",
        "slurm_load_jobs error: Message receive failure",
        "slurm_load_jobs error: No route to host",
    ],
)
def test_a_controller_that_does_not_answer(words, commands):
    said = f"print({words!r}, file=err); sys.exit(1)"
    for name in ("squeue", "sinfo"):
        commands.make(name, said)
    commands.make(
        "scontrol",
        "sys.stdin.readline(); print('Unexpected message received for job 5', file=err)\n"
        "print('invalid keyword: rltune-mark-0', file=err); sys.exit(1)",
    )
    client = commands.client()
    for ask in (client.jobs, client.nodes, lambda: client.states([5]), lambda: client.update([Change(5, 1)])):
        with pytest.raises(SlurmUnavailable, match=f"{re.escape(words)}|Unexpected message"):
            ask()


def test_a_silent_command_is_killed_in_time(commands):
    # a shell has begun by then
    script = f"#!/bin/sh\necho $$ > {commands.folder}/pid\nexec {shutil.which('sleep')} 600\n"
    for name in ("squeue", "scontrol"):
        (commands.folder / name).write_text(script)
        (commands.folder / name).chmod(0o755)
    for ask in (commands.client(2.0).jobs, lambda: commands.client(2.0).update([Change(5, 1)])):
        with pytest.raises(SlurmUnavailable, match=r"no answer within 2 s"):
            ask()
        with pytest.raises(ProcessLookupError):
            os.kill(int((commands.folder / "pid").read_text()), 0)


def test_no_commands_no_configuration_and_no_json(commands):
    with pytest.raises(SlurmUnavailable, match="scontrol: no such command"):
        commands.client().version()
    with pytest.raises(SlurmUnavailable, match="no such file, expected Slurm's slurm.conf"):
        Client(commands.folder / "slurm.conf")
    commands.make("squeue", "print(\"squeue: unrecognized option '--json'\", file=err); sys.exit(1)")
    with pytest.raises(SlurmError, match="needs Slurm 22.05 or later, built with JSON"):
        commands.client().jobs()
    commands.make("scontrol", "print('slurm-wlm 23.11.4')")
    assert commands.client().version() == "23.11.4"
    commands.make("scontrol", "print('Segmentation fault')")
    with pytest.raises(SlurmError, match="found 'Segmentation fault', expected slurm and its version"):
        commands.client().version()


def recorded(commands: Commands, name: str, part: float = 1.0) -> None:
    """A command that says what a real one said, or the beginning of it."""
    text = (RECORDED / f"{name}.json").read_text()
    commands.make(name, f"sys.stdout.write({text[: int(part * len(text))]!r})")


@pytest.mark.parametrize("cut_off", ["squeue", "sinfo"])
def test_half_an_answer_fails_the_cycle_before_anything_is_changed(commands, cut_off):
    for name in ("squeue", "sinfo"):
        recorded(commands, name, 0.5 if name == cut_off else 1.0)
    made = controller(commands.client(), commands.folder, eligible={"partitions": ["all"]}, max_failures=2)
    made.directory.write(Ownership({7: Assignment(5)}))
    with pytest.raises(SlurmError, match=f"{cut_off} --json: the answer is not JSON"):
        made.cycle()
    with pytest.raises(CyclesFailed, match="not JSON"):
        Service(made)._cycles()
    assert commands.called("scontrol") == 0 and assigned(made) == {7: Assignment(5)}


def test_jobs_that_ended_are_left_out(commands):
    recorded(commands, "squeue")
    read = commands.client().jobs()
    assert len(read.records) == 25 and {job.state for job in read.records} == {"PENDING", "RUNNING"}


MIXED = "print('16_5: Invalid job id specified', '16_6-99: No error', 'invalid keyword: rltune-mark-0', sep=chr(10), file=err)"


def test_of_an_array_only_the_waiting_rest_is_changed(commands):
    """Its id alone would mean every task. A task that has ended since does not make the change a refused one."""
    recorded(commands, "squeue")
    scontrol(commands)
    client = commands.client()
    client.jobs()
    assert client.update([Change(16, 10), Change(9, 11)]) + client.release([8]) == [
        Outcome(k, True) for k in (16, 9, 8)
    ]
    assert (commands.folder / "made").read_text().split() == ["16_[0-99]", "9", "8_[2]"]
    commands.make("squeue", r"print('16|16|PENDING|9|6|.\n16|16|PENDING|9|7|.\n42|16|PENDING|0|5|.')")
    client.states([16, 42])  # task 5 was held meanwhile
    assert client.release([16, 42]) == [Outcome(16, True), Outcome(42, True)]
    assert (commands.folder / "made").read_text().split()[3:] == ["16_[6-7]", "42"]
    commands.make("scontrol", MIXED)
    assert client.update([Change(16, 12)]) == [Outcome(16, True)]


STATES = """
wanted = next(a for a in args if a.startswith('--jobs=')).split('=')[1].split(',')
lines = {'5': '5|5|PENDING|1000007|N/A|.', '6': '6|6|CANCELLED|12|N/A|.', '50': '50|50|COMPLETED|9|0|.\\n51|50|RUNNING|8|1|.',
         '60': '61|60|RUNNING|7|1|.\\n60|60|PENDING|6|0|.', '61': '61|60|RUNNING|7|1|.', '70': '71|70|COMPLETED|5|1|.'}
if wanted == ['7'] or any(name.startswith('SQUEUE_') for name in os.environ):
    print('slurm_load_jobs error: Invalid job id specified', file=err)
    sys.exit(1)
for job in wanted:
    if job in lines:
        print(lines[job])
"""


@pytest.mark.parametrize("batch", [LARGEST_BATCH, 1])
def test_states_of_jobs_by_id(commands, monkeypatch, batch):
    """Of an array its waiting rest, else a task that is not over; whatever variables the user has set."""
    commands.make("squeue", STATES)
    client = commands.client(SQUEUE_FORMAT="%j", SQUEUE_STATES="RUNNING")
    monkeypatch.setattr("rltune.slurm.client.LARGEST_BATCH", batch)
    assert client.states([60, 5, 6, 7, 50, 61, 70]) == {
        5: JobState("PENDING", 1_000_007),
        6: JobState("CANCELLED", 12),
        50: JobState("RUNNING", 8),
        60: JobState("PENDING", 6),
        61: JobState("RUNNING", 7),
    }
    assert client.states([7]) == {} and client.states([]) == {}
    assert len(client.states([5, *range(1000, 1000 + 2 * batch)])) == 1
    assert commands.called("squeue") == (5 if batch == LARGEST_BATCH else 11)


@pytest.mark.parametrize(
    "said", ["5|5|PENDING|10000", "5|5|PEND", "x|x|PENDING|xxxxxxx|N/A|.", "slurm_load_jobs error"]
)
def test_half_a_line_about_a_job_is_an_error(commands, said):
    commands.make("squeue", f"print({said!r})")
    with pytest.raises(SlurmError, match="expected ids, a state and a priority"):
        commands.client().states([5])


def test_jobs_that_slurm_does_not_know(commands):
    """Half an answer is an error, for changes too."""
    scontrol(commands)
    assert commands.client().unknown([5, 7, 9]) == {7} and commands.client().unknown([]) == frozenset()
    half = "print('invalid keyword: rltune-mark-0', file=err)\nprint('Segmentation fault', file=err)"
    commands.make("scontrol", half)
    for ask in (lambda client: client.unknown([5, 7]), lambda client: client.update([Change(5, 1), Change(6, 1)])):
        with pytest.raises(SlurmError, match="answered 1 of 2 changes, then 'Segmentation fault'"):
            ask(commands.client())
