"""The controller's files: the list of assigned jobs, which must not be lost, and the journal of changes and reasons."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from fake_slurm import assigned, busy, controller, job, no_answer, partly_used_node, ranked, serve

from rltune.errors import DataError, SlurmUnavailable
from rltune.slurm.client import SPEED
from rltune.slurm.ownership import Assignment, Ownership
from rltune.slurm.service import DONE, GAVE_UP, Service
from rltune.slurm.state_directory import StateDirectory

TAKEN = {
    "folder": lambda folder: shutil.rmtree(folder),
    "lock": lambda folder: (folder / "lock").unlink(),
    "lock, for another's": lambda folder: ((folder / "lock").unlink(), (folder / "lock").touch()),
    "list": lambda folder: (folder / "assigned.json").unlink(),
    "content": lambda folder: (folder / "assigned.json").write_text('{"format": 2, "jobs": {}, "overridden": {}}'),
    "half": lambda folder: (folder / "assigned.json").write_text("{half"),
}
"""What somebody may remove or change."""


@pytest.mark.parametrize("stopped_first", [False, True])
@pytest.mark.parametrize("what", TAKEN)
def test_files_removed_while_it_runs_make_it_release_all(tmp_path, what, stopped_first):
    """By what it remembers; a stop that comes first is an ordinary end."""
    slurm, state = busy(), tmp_path / "state"
    made = controller(slurm, tmp_path, state=state)

    def then(line: str, service: Service) -> None:
        if "ranked=6" in line:
            TAKEN[what](state)
            if stopped_first:
                service.stop.set()

    assert serve(made, then) == (DONE if stopped_first else GAVE_UP) and slurm.all_released()
    assert "released 6 jobs" in made.said[-1] and (stopped_first or str(state) in made.said[-1])
    assert len([line for line in made.said if "ranked" in line]) == 1, "no further cycle"
    assert not assigned(made), "and the list is written again"


def test_the_list_comes_back_as_it_was_written(tmp_path):
    assert StateDirectory(tmp_path / "none").ownership() == Ownership() and not (tmp_path / "none").exists()
    written = Ownership(
        {
            7: Assignment(5, 6, True, "a,b", ("a",), missed=1, seen=True),
            8: Assignment(4, ended_s=1e9),
            12: Assignment(9),
        },
        {3: 1},
    )
    StateDirectory(tmp_path).write(written)
    assert StateDirectory(tmp_path).ownership() == written
    described = StateDirectory(tmp_path).describe()
    assert "2 jobs have been assigned" in described and "priorities of 1 jobs" in described
    (tmp_path / "assigned.json").write_text('{"format": 2, "jobs": {}}')
    with pytest.raises(DataError, match="format 2, expected 4"):
        StateDirectory(tmp_path).ownership()


def test_metrics_that_are_half_written_are_not_read(tmp_path, monkeypatch):
    """Prometheus' exporter reads every file whose name ends in .prom."""
    kept = StateDirectory(tmp_path)
    kept.write_metrics({"live": ("gauge", "Whether.", 0.0)})
    there: list[str] = []
    monkeypatch.setattr(os, "replace", lambda *paths: there.extend(os.listdir(tmp_path)))
    kept.write_metrics({"live": ("gauge", "Whether.", 1.0)})
    assert [name for name in there if name.endswith(".prom")] == ["metrics.prom"]
    assert kept.metrics_path.read_text().endswith("rltune_live 0.0\n")


def test_a_profile_of_speeds_that_is_gone_stops_only_who_needs_it(project, cli, monkeypatch):
    """Jobs can be released all the same; and every path of the configuration starts from the project."""
    text = "policy: policy.npz\neligible: {partitions: [gpu]}\nspeeds: gone.csv\nslurm_conf: slurm.conf\nstate_directory: state"
    (project.root / "mine.yaml").write_text(text)
    (project.root / "slurm.conf").touch()
    (project.root / "state").mkdir()
    monkeypatch.chdir(project.root / "config")
    outcome = cli("slurm", "status", "--config", "mine.yaml")
    assert outcome.status == 0 and "no controller runs" in outcome.out
    outcome = cli("slurm", "run", "--config", "mine.yaml")
    assert outcome.status == 2 and f"{project.root}/gone.csv: not a profile of speeds" in outcome.err
    (project.root / "slurm.conf").unlink()
    outcome = cli("slurm", "run", "--config", "mine.yaml")
    assert outcome.status == 2 and f"{project.root}/slurm.conf: no such file" in outcome.err


def test_on_a_fast_clock_it_would_wait_for_ever_and_does_not_begin(cli, monkeypatch):
    monkeypatch.setenv("FAKETIME_SHARED", "/sem /shm")
    monkeypatch.setenv(SPEED, "100")
    outcome = cli("slurm", "run")
    assert outcome.status == 2 and "found the fast clock of an emulated cluster" in outcome.err


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("assigned.json", "[" * 100_000),
        ("metrics.prom", "rltune_last_cycle_time_seconds"),
        ("metrics.prom", "rltune_last_cycle_time_seconds 1e30"),
        ("metrics.prom", "rltune_cycles many"),
    ],
)
def test_a_damaged_file_is_named_where_its_state_is_shown(file, text, tmp_path):
    (tmp_path / file).write_text(text)
    with pytest.raises(DataError, match=f"{file}: cannot be read"):
        StateDirectory(tmp_path).describe()


def test_a_state_directory_that_is_none_is_said(tmp_path):
    (tmp_path / "file").touch()
    for name, words in (("file", "file: a file; expected"), ("gone", "gone: no such directory; expected")):
        with pytest.raises(DataError, match=words):
            StateDirectory(tmp_path / name).describe()


def test_the_list_is_synced_before_and_after_its_rename(tmp_path, monkeypatch):
    """Content, rename, folder: so that a loss of power leaves the old list or the new one."""
    done: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: (done.append(os.readlink(f"/proc/self/fd/{number}")), sync(number)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("rename"), replace(a, b)))
    kept = StateDirectory(tmp_path)
    for _ in range(2):  # what is there is not written again
        kept.write(Ownership({7: Assignment(5)}))
    assert done == [str(tmp_path / f".assigned.{os.getpid()}.json"), "rename", str(tmp_path)]


def lines(folder: Path, *events: str) -> list[dict[str, Any]]:
    """Lines of these events, of all where none is named."""
    found = [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]
    return [line for line in found if not events or line["event"] in events]


def whys(folder: Path, event: str) -> list[tuple[int, str]]:
    """Job and reason of the lines of an event."""
    return [(line["job"], line["why"]) for line in lines(folder, event)]


def test_changes_are_in_the_journal_before_they_are_sent(tmp_path):
    before: list[dict[str, Any]] = []
    slurm, made = ranked(tmp_path, cycles=0)

    slurm.before_update = lambda: (before.extend(lines(tmp_path)), no_answer())
    with pytest.raises(SlurmUnavailable):
        made.cycle()
    assert {line["job"] for line in before if line["event"] == "change"} == set(range(10, 16))
    assert {line["rank"] for line in before} == set(range(1, 7)) and {line["of"] for line in before} == {6}
    (line,) = lines(tmp_path)[len(before) :]
    assert (line["event"], line["jobs"]) == ("unknown", list(range(10, 16)))
    assert line["why"] == "scontrol: no answer within 30 s"


def test_the_journal_has_refusals_and_releases(tmp_path):
    slurm, made = ranked(tmp_path, cycles=1)
    slurm.add(job(99), job(98))
    slurm.change(12, 13, dependency="afterok:1")
    slurm.before_update, slurm.refuses = lambda: slurm.start(99), {13: "Access denied"}
    done = made.cycle()
    assert (done.refused, done.released) == (2, 1)
    assert [(line["job"], line["what"]) for line in lines(tmp_path, "refused")] == [(99, "change"), (13, "release")]
    assert whys(tmp_path, "refused")[1] == (13, "Access denied")
    assert whys(tmp_path, "released") == [(12, "depends on other jobs")]


def test_the_journal_where_slurm_falls_silent_during_releases(tmp_path):
    slurm, made = ranked(tmp_path, cycles=1)
    slurm.batch = 1
    slurm.change(12, 13, dependency="afterok:1")
    slurm.after_release = lambda: setattr(slurm, "silent", True)
    with pytest.raises(SlurmUnavailable):
        made.cycle()
    assert [line["job"] for line in lines(tmp_path, "released")] == [12]
    assert [line["jobs"] for line in lines(tmp_path, "unknown")] == [[13]]


def test_undone_whole_nodes_and_forgotten_jobs(tmp_path):
    slurm = partly_used_node("OK")
    made = controller(slurm, tmp_path, exclusive="model", interference_slowdown=2.0)
    made.cycle()
    assert [line["oversubscribe"] for line in lines(tmp_path, "change")] == ["NO"]
    slurm.hold(10)
    for _ in range(3):
        made.cycle()
    assert [line["job"] for line in lines(tmp_path, "undone")] == [10]
    assert whys(tmp_path, "forgotten") == [(10, "held")]


@pytest.mark.parametrize("live", [False, True])
def test_why_a_job_is_left_is_written_when_it_changes(tmp_path, live):
    slurm = busy()
    slurm.add(job(99, dependency="afterok:1"), job(98, gpus=0))
    made = controller(slurm, tmp_path, live=live)
    for _ in range(3):
        made.cycle()
    left = [(98, "requests no GPU"), (99, "depends on other jobs")]
    assert whys(tmp_path, "left") == left
    slurm.hold(99)
    made.cycle()
    made.cycle()
    assert whys(tmp_path, "left") == [*left, (99, "held")]


def test_a_dry_run_writes_a_change_when_it_differs(tmp_path):
    slurm = busy()
    made = controller(slurm, tmp_path, live=False)
    for _ in range(3):
        assert made.cycle().changed == 6
    first = lines(tmp_path)
    assert {line["event"] for line in first} == {"would change"} and len(first) == 6
    assert {line["rank"]: line["job"] for line in first}.keys() == set(range(1, 7))
    slurm.add(job(99))
    assert made.cycle().changed == 7 and 99 in {line["job"] for line in lines(tmp_path)[6:]}
    last = {line["job"]: line["priority"] for line in lines(tmp_path, "would change")}
    assert len(last) == 7 == len(set(last.values())), "the last line of each job is what would be"


def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path):
    kept = StateDirectory(tmp_path)
    kept.write_journal({"event": "one"})
    with open(kept.journal_path, "a") as file:
        file.write('{"event":"tw')  # no room for the rest
    kept.write_journal({"event": "three"}, {"event": "four"})
    kept.write_journal({"event": "five"})
    _, cut, *rest = kept.journal_path.read_text().splitlines()
    assert cut == '{"event":"tw' and [json.loads(line)["event"] for line in rest] == ["three", "four", "five"]


def test_a_long_journal_is_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr("rltune.slurm.state_directory.JOURNAL_BYTES", 10)
    kept = StateDirectory(tmp_path)
    for number in range(3):
        kept.write_journal({"event": f"number {number}"})
    assert "number 2" in kept.journal_path.read_text() and "number 1" in (tmp_path / "decisions.1.jsonl").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"decisions.jsonl", "decisions.1.jsonl"}
