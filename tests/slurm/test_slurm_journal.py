"""decisions.jsonl: every change is there, what became of it, why jobs are left to Slurm, and nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_slurm import beside_one, busy, controller, job

from rltune.errors import SlurmUnavailable
from rltune.slurm.records import Change, Outcome
from rltune.slurm.state_directory import StateDirectory


def lines(folder: Path, *events: str) -> list[dict[str, Any]]:
    """Lines of these events, of all where none is named."""
    found = [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]
    return [line for line in found if not events or line["event"] in events]


def test_changes_are_there_before_they_are_sent_and_that_nobody_knows_what_became_of_them(tmp_path: Path) -> None:
    slurm, before = busy(), []
    made = controller(slurm, tmp_path)

    def times_out(changes: list[Change]) -> list[Outcome]:
        before.extend(lines(tmp_path))
        raise SlurmUnavailable("scontrol: no answer within 30 s")

    slurm.update = times_out  # type: ignore[method-assign]
    with pytest.raises(SlurmUnavailable):
        made.cycle()
    assert {line["job"] for line in before if line["event"] == "change"} == set(range(10, 16))
    assert {line["rank"] for line in before} == set(range(1, 7)) and {line["of"] for line in before} == {6}
    told = lines(tmp_path)[len(before) :]
    assert [(line["event"], line["jobs"], line["why"]) for line in told] == [
        ("unknown", list(range(10, 16)), "scontrol: no answer within 30 s")
    ]


def test_what_slurm_refuses_and_what_it_does(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.add(job(99), job(98))
    for number in (12, 13):
        slurm.queue[number] = replace(slurm.queue[number], dependency="afterok:1")
    slurm.before_update = lambda: slurm.start(99)
    release = slurm.release
    slurm.release = lambda ids: [  # type: ignore[method-assign]
        Outcome(number, False, "Access denied") if number == 13 else release([number])[0] for number in ids
    ]
    made.cycle()
    assert [(line["job"], line["what"]) for line in lines(tmp_path, "refused")] == [(99, "change"), (13, "release")]
    assert [line["why"] for line in lines(tmp_path, "refused")][1] == "Access denied"
    assert [(line["job"], line["why"]) for line in lines(tmp_path, "released")] == [(12, "depends on other jobs")]


def test_released_is_what_was_released_where_slurm_falls_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rltune.slurm import release as releasing

    monkeypatch.setattr(releasing, "BATCH", 1)
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    for number in (12, 13):
        slurm.queue[number] = replace(slurm.queue[number], dependency="afterok:1")
    release = slurm.release

    def once(ids: Iterable[int]) -> list[Outcome]:
        done = release(ids)
        slurm.silent = True
        return done

    slurm.release = once  # type: ignore[method-assign]
    with pytest.raises(SlurmUnavailable):
        made.cycle()
    assert [line["job"] for line in lines(tmp_path, "released")] == [12]
    assert [line["jobs"] for line in lines(tmp_path, "unknown")] == [[13]]


def test_whole_nodes_that_are_taken_back_and_jobs_that_are_forgotten(tmp_path: Path) -> None:
    slurm = beside_one("OK")
    made = controller(slurm, tmp_path, exclusive="model", interference_slowdown=2.0)
    made.cycle()
    assert [line["oversubscribe"] for line in lines(tmp_path, "change")] == ["NO"]
    slurm.queue[10] = replace(slurm.queue[10], priority=0, held=True, reason="JobHeldUser")
    for _ in range(3):
        made.cycle()
    assert [line["job"] for line in lines(tmp_path, "unflagged")] == [10]
    assert [(line["job"], line["why"]) for line in lines(tmp_path, "forgotten")] == [(10, "held")]


@pytest.mark.parametrize("live", [False, True])
def test_why_a_job_is_left_is_told_once_and_when_it_changes(tmp_path: Path, live: bool) -> None:
    slurm = busy()
    slurm.add(job(99, dependency="afterok:1"), job(98, gpus=0))
    made = controller(slurm, tmp_path, live=live)
    for _ in range(3):
        made.cycle()
    assert [(line["job"], line["why"]) for line in lines(tmp_path, "left")] == [
        (98, "requests no GPU"),
        (99, "depends on other jobs"),
    ]
    slurm.queue[99] = replace(slurm.queue[99], priority=0, held=True)
    made.cycle()
    made.cycle()
    assert [(line["job"], line["why"]) for line in lines(tmp_path, "left")[2:]] == [(99, "held")]


def test_a_dry_run_tells_a_change_again_where_it_is_another_one(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, live=False)
    for _ in range(3):
        assert made.cycle().changed == 6
    assert len(lines(tmp_path, "would change")) == 6
    slurm.add(job(99))
    made.cycle()
    told = {line["job"]: line["priority"] for line in lines(tmp_path, "would change")[6:]}
    assert 99 in told and made.cycle().changed == 7
    last = {line["job"]: line["priority"] for line in lines(tmp_path, "would change")}
    assert len(last) == 7 and len(set(last.values())) == 7, "the last line of each job is what would be"


def test_on_a_full_disk_slurm_is_not_written_to_without_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr(StateDirectory, "write_journal", full)
    with pytest.raises(OSError, match="No space left"):
        made.cycle()
    assert not slurm.writes
