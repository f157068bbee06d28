"""Cycles of the controller against a Slurm in memory: who is written to, what is left on disk, whole nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fake_slurm import BAND, NOW_S, FakeSlurm, beside_one, busy, controller, job, make_config, node, priorities, running

from rltune.config.load import project_root, read_block
from rltune.config.slurm import SlurmConfig
from rltune.slurm.ownership import Assignment
from rltune.slurm.records import Parsed, SlurmNode
from rltune.slurm.service import describe
from rltune.slurm.state_directory import StateDirectory


def test_the_example_is_valid() -> None:
    root = project_root()
    read = read_block(root / "config/slurm/example.yaml", SlurmConfig, root)
    assert read.band == BAND and read.max_failures == SlurmConfig.model_fields["max_failures"].default


def test_a_dry_run_writes_nothing_but_says_what_it_would(tmp_path: Path) -> None:
    slurm = busy()
    done = controller(slurm, tmp_path, live=False).cycle()
    assert done.ranked == 6 and done.changed == 6 and not slurm.writes and not StateDirectory(tmp_path).assigned()
    lines = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert {line["event"] for line in lines} == {"would change"} and {line["job"] for line in lines} == set(
        range(10, 16)
    )
    assert {line["rank"] for line in lines} == set(range(1, 7))
    first = next(line for line in lines if line["rank"] == 1)
    assert f"job {first['job']}, priority {first['priority']}" in done.planned[0] and len(done.planned) == 6
    assert "would change 6" in describe(done, live=False) and describe(done, live=False).endswith(done.planned[-1])
    slurm.add(job(99, dependency="afterok:1"))
    left = describe(controller(slurm, tmp_path, live=False).cycle(), live=False)
    assert left.endswith("left to Slurm, depends on other jobs: 99")


def test_only_what_has_changed_is_written_and_all_is_in_the_band(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    assert made.cycle().changed == 6
    assert all(BAND.low <= p <= BAND.high for p in priorities(slurm).values())
    assert made.cycle().changed == 0, "the same queue again: nothing to write"
    slurm.add(job(99, gpus=1))
    assert made.cycle().changed <= 2
    assert set(StateDirectory(tmp_path).assigned()) == {*range(10, 16), 99}


def test_what_leaves_the_scope_is_released_and_what_starts_is_forgotten(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.queue[10] = replace(slurm.queue[10], dependency="afterok:3")
    slurm.start(11)
    slurm.queue[12] = replace(slurm.queue[12], priority=0, held=True, reason="JobHeldUser")
    del slurm.queue[13]
    made.cycle()
    assert slurm.released == [10] and slurm.queue[10].priority == slurm.computed[10]
    made.cycle()
    assert set(StateDirectory(tmp_path).assigned()) == {11, 14, 15}, "11 runs, and may be requeued"
    assert slurm.queue[12].held, "a user's hold is the user's"


def test_a_job_that_starts_between_reading_and_writing_is_a_refusal(tmp_path: Path) -> None:
    slurm = busy()

    def starts() -> None:
        slurm.start(10)
        slurm.queue.pop(11, None)

    slurm.before_update = starts
    made = controller(slurm, tmp_path)
    done = made.cycle()
    assert (done.changed, done.refused) == (4, 2)
    made.cycle()
    made.cycle()
    assert set(StateDirectory(tmp_path).assigned()) == {10, 12, 13, 14, 15}


@pytest.mark.parametrize("gone", [False, True])
def test_jobs_keep_their_place_where_one_starts_between_queue_and_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """The nodes are full of a job that the queue does not have yet; in the second answer it is there, or has no end."""
    slurm = FakeSlurm({n: job(n, gpus=4) for n in (10, 11)}, [node("p100-1"), node("p100-2")])
    made = controller(slurm, tmp_path)
    assert made.cycle().ranked == 2
    slurm.machines = [node("p100-1", used=4), node("p100-2", used=4)]
    asked: list[int] = []

    def answer() -> Parsed[SlurmNode]:
        asked.append(1)
        if not gone:
            slurm.queue |= {n: running(n, f"p100-{n}", gpus=4, priority=1) for n in (1, 2)}
        return Parsed(tuple(slurm.machines))

    monkeypatch.setattr(slurm, "nodes", answer)
    done = made.cycle()
    assert len(asked) == 2 and set(slurm.released) == ({10, 11} if gone else set())
    assert (done.ranked, len(done.left)) == ((0, 2) if gone else (2, 0))


def test_whole_nodes_are_given_where_company_costs_and_taken_back(tmp_path: Path) -> None:
    slurm = beside_one("OK")
    made = controller(slurm, tmp_path, exclusive="model", interference_slowdown=2.0)
    made.cycle()
    assert slurm.queue[10].shared == "NO" and made.directory.assigned()[10].exclusive
    made.cycle()
    assert len(slurm.writes) == 1, "what is written once is not written again"
    made.release_all("test")
    assert slurm.queue[10].shared == "YES" and slurm.queue[10].priority == slurm.computed[10]


def test_whole_nodes_are_remembered_while_only_the_priority_changes(tmp_path: Path) -> None:
    slurm, rules = beside_one("OK"), {"exclusive": "model", "interference_slowdown": 2.0}
    controller(slurm, tmp_path, **rules).cycle()
    made = controller(slurm, tmp_path, band={"low": 3_000_000, "high": 4_000_000}, **rules)
    made.cycle()
    assert slurm.writes[-1].oversubscribe is None and slurm.queue[10].priority >= 3_000_000
    made.release_all("test")
    assert slurm.queue[10].shared == "YES"


@pytest.mark.parametrize(
    ("shared", "rules"),
    [
        ("YES", {"exclusive": "model", "interference_slowdown": 2.0}),
        ("NO", {"exclusive": "model", "interference_slowdown": 2.0}),
        ("OK", {"exclusive": "model"}),
        ("OK", {"interference_slowdown": 2.0}),
    ],
)
def test_whole_nodes_are_not_given_unasked(tmp_path: Path, shared: str, rules: dict) -> None:
    slurm = beside_one(shared)
    made = controller(slurm, tmp_path, **rules)
    for _ in range(3):
        made.cycle()
        assert slurm.queue[10].shared == shared
    made.release_all("test")
    assert slurm.queue[10].shared == shared


@pytest.mark.parametrize("then", ["held", "never"])
def test_whole_nodes_are_taken_back_from_held_jobs_and_when_switched_off(tmp_path: Path, then: str) -> None:
    slurm = beside_one("OK")
    made = controller(slurm, tmp_path, exclusive="model", interference_slowdown=2.0)
    made.cycle()
    assert slurm.queue[10].shared == "NO"
    if then == "held":
        slurm.queue[10] = replace(slurm.queue[10], priority=0, held=True, reason="JobHeldUser")
    else:
        made.config = make_config()
    made.cycle()
    assert slurm.queue[10].shared == "YES" and slurm.queue[10].held == (then == "held")


def test_records_that_cannot_be_read_are_told_and_the_others_ranked(tmp_path: Path) -> None:
    slurm = busy()
    slurm.faults = ("job 77: time_limit: found 'x'",)
    done = controller(slurm, tmp_path).cycle()
    assert done.faults == slurm.faults and done.ranked == 6


def test_figures_and_decisions_are_left_for_others_to_read(tmp_path: Path) -> None:
    made = controller(busy(), tmp_path)
    made.cycle()
    text = made.directory.metrics_path.read_text()
    assert "rltune_ranked_jobs 6.0\n" in text and "# TYPE rltune_changes_total counter" in text
    assert StateDirectory(tmp_path).assigned()[10] == Assignment(made.slurm.queue[10].priority)  # type: ignore[attr-defined]
    assert f"rltune_last_cycle_time_seconds {NOW_S!r}\n" in text and "rltune_live 1.0\n" in text
    made.mark_stopped()
    assert "rltune_live 0.0\n" in made.directory.metrics_path.read_text()
