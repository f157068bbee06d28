"""Cycles of the controller against a fake Slurm: which jobs it changes, its files, whole nodes, the band."""

from dataclasses import replace

import pytest
from fake_slurm import (
    BAND,
    NOW_S,
    FakeSlurm,
    assigned,
    busy,
    controller,
    job,
    make_config,
    node,
    partly_used_node,
    priorities,
    ranked,
    running,
    serve,
)

from rltune.config.load import project_root, read_block
from rltune.config.slurm import SlurmConfig
from rltune.errors import RLTuneError
from rltune.slurm.ownership import Assignment
from rltune.slurm.records import Parsed, SlurmNode
from rltune.slurm.service import DONE, GAVE_UP, Service, describe

ISOLATING = {"exclusive": "model", "interference_slowdown": 2.0}


def test_the_example_is_valid():
    read = read_block(project_root() / "config/slurm/example.yaml", SlurmConfig, project_root())
    assert read.band == BAND and read.max_failures == SlurmConfig.model_fields["max_failures"].default


def test_a_dry_run_writes_nothing_but_says_what_it_would(tmp_path):
    slurm = busy()
    slurm.add(job(99, dependency="afterok:1"))
    made = controller(slurm, tmp_path, live=False)
    done = made.cycle()
    assert done.ranked == done.changed == len(done.planned) == 6 and not slurm.writes and not assigned(made)
    said = describe(done, live=False)
    assert "would_change=6" in said and all(line in said for line in done.planned)
    assert said.endswith("left to Slurm, depends on other jobs: 99")


def test_only_what_has_changed_is_written_and_all_is_in_the_band(tmp_path):
    slurm, made = ranked(tmp_path)
    assert len(slurm.writes) == 6, "the same queue again: nothing to write"
    slurm.add(job(99, gpus=1))
    assert made.cycle().changed <= 2
    assert all(BAND.low <= p <= BAND.high for p in priorities(slurm).values())
    assert set(assigned(made)) == {*range(10, 16), 99} and assigned(made)[99] == Assignment(slurm.queue[99].priority)


def test_ineligible_jobs_are_released_and_ended_ones_forgotten(tmp_path):
    slurm, made = ranked(tmp_path)
    slurm.change(10, dependency="afterok:3")
    slurm.start(11)
    slurm.hold(12)
    del slurm.queue[13]
    made.cycle()
    assert slurm.released == [10] and slurm.queue[10].priority == slurm.computed[10]
    made.cycle()
    assert set(assigned(made)) == {10, 11, 14, 15}, "11 runs, and may be requeued; the release of 10 may come undone"
    made.cycle()
    assert set(assigned(made)) == {11, 14, 15}
    assert slurm.queue[12].held, "a user's hold is the user's"


def test_jobs_that_have_waited_too_long_for_their_size_go_first(tmp_path):
    """11 and 13 have two GPUs, 12 one; since when a job could have started counts, and the longest wait is first."""
    day_s = 86400.0
    slurm = busy()
    slurm.change(11, submit_s=NOW_S - 3.1 * day_s)
    slurm.change(12, submit_s=NOW_S - 1.1 * day_s)
    slurm.change(13, submit_s=NOW_S - 2.9 * day_s)
    slurm.change(14, submit_s=NOW_S - 9.0 * day_s, eligible_s=NOW_S - 60.0)
    made = controller(slurm, tmp_path)
    made.cycle()
    assert sorted(range(10, 16), key=lambda n: -priorities(slurm)[n])[:2] == [11, 12]


@pytest.mark.parametrize("gone", [False, True])
def test_a_job_starts_between_reading_queue_and_nodes(tmp_path, monkeypatch, gone):
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


@pytest.mark.parametrize("then", ["released", "held", "never"])
def test_whole_nodes_are_given_where_co_located_jobs_slow_down_and_released(tmp_path, then):
    """When all is released, from a held job, and when they are switched off."""
    slurm = partly_used_node("OK")
    made = controller(slurm, tmp_path, **ISOLATING)
    made.cycle()
    assert slurm.queue[10].shared == "NO" and assigned(made)[10].exclusive
    made.cycle()
    assert len(slurm.writes) == 1, "what is written once is not written again"
    made = controller(slurm, tmp_path, band=[3_000_000, 4_000_000], **ISOLATING)
    made.cycle()
    assert slurm.writes[-1].oversubscribe is None and slurm.queue[10].priority >= 3_000_000
    if then == "released":
        made.release_all("test")
        assert slurm.all_released()
    elif then == "held":
        slurm.hold(10)
    else:
        made.config = make_config()
    made.cycle()
    assert slurm.queue[10].shared == "YES" and slurm.queue[10].held == (then == "held")


@pytest.mark.parametrize(
    ("shared", "rules"),
    [("YES", ISOLATING), ("NO", ISOLATING), ("OK", {"exclusive": "model"}), ("OK", {"interference_slowdown": 2.0})],
)
def test_whole_nodes_are_not_given_unasked(tmp_path, shared, rules):
    slurm = partly_used_node(shared)
    made = controller(slurm, tmp_path, **rules)
    for _ in range(2):
        made.cycle()
        assert slurm.queue[10].shared == shared
    made.release_all("test")
    assert slurm.queue[10].shared == shared


@pytest.mark.parametrize("fields", [{}, {"is_bound": True}, {"excluded": frozenset({"k80-1"})}], ids=str)
def test_whole_nodes_are_not_given_where_a_job_may_not_use_every_node(tmp_path, fields):
    """Without more, its partition lacks a node of its pool."""
    slurm = partly_used_node("OK")
    slurm.change(10, **fields)
    if not fields:
        slurm.machines[4] = replace(slurm.machines[4], partitions=("gpu", "big"))
        slurm.machines.append(node("big-1", "m40", 1, used=1, partitions=("big",)))
    made = controller(slurm, tmp_path, eligible={"partitions": ["gpu", "big"]}, **ISOLATING)
    assert made.cycle().ranked == 1 and slurm.queue[10].shared == "OK"


def test_nodes_that_are_all_in_maintenance_do_not_stop_it(tmp_path):
    """Nothing is ranked meanwhile; the watchdog does not count the time."""
    slurm, made = ranked(tmp_path, max_failures=1, watchdog={"policy": "fifo", "min_jobs": 1, "patience": 1})
    machines, now_s = slurm.machines, [NOW_S]
    made.clock = lambda: now_s[0]
    slurm.machines = [replace(one, state=frozenset({"IDLE", "MAINT"})) for one in machines]

    def then(line: str, service: Service) -> None:
        now_s[0] += 3600.0
        if len(made.said) == 5:
            assert slurm.all_released() and made.view.left == dict.fromkeys(range(10, 16), "no pool could hold it now")
            assert all("no node with GPUs is usable now" in line for line in made.said[1:])
            slurm.machines = machines
        elif len(made.said) == 7:
            service.stop.set()

    assert serve(made, then) == DONE
    assert "ranked=6" in made.said[5] and "the watchdog restarts: 0 ranked jobs" in made.said[6]


def test_it_reports_that_every_job_is_above_the_band(tmp_path):
    """Not so where just some are, which come first."""
    basic, slurm = 4_294_901_759, busy(2)
    slurm.change(10, priority=basic)
    done = controller(slurm, tmp_path / "some").cycle()
    assert done.left == {10: "its priority is above the band"} and (done.ranked, done.notes) == (1, ())
    slurm.change(11, priority=basic - 1)
    done = controller(slurm, tmp_path / "all").cycle()
    assert done.ranked == 0 and "2 eligible jobs have priorities above the band (up to 4,294,901,759)" in done.notes[0]
    assert len(slurm.writes) == 1 and "`eligible.priority_below`" in describe(done, live=True)
    below = {"partitions": ["gpu"], "priority_below": basic + 1}
    done = controller(slurm, tmp_path / "below", eligible=below).cycle()
    assert (done.ranked, done.notes) == (2, ()) and all(p in BAND for p in priorities(slurm).values())


def test_jobs_that_users_put_into_the_band_do_not_stop_it(tmp_path):
    """Users can lower the priorities of their own jobs: eligible ones are ranked, the others left, and both reported once."""
    slurm, made = ranked(tmp_path)
    slurm.add(job(40, priority=BAND.low + 3), job(41, priority=BAND.low + 4, qos="sla"))
    made.config = make_config(eligible={"partitions": ["gpu"], "exclude_qos": ["sla"]})
    for _ in range(3):
        assert made.cycle().ranked == 7
    assert 40 in assigned(made) and slurm.queue[41].priority == BAND.low + 4
    assert len(made.said) == 1 and "2 waiting jobs (for example job 40)" in made.said[0] and "; 1 are" in made.said[0]
    again = controller(slurm, tmp_path, eligible={"partitions": ["gpu"], "exclude_qos": ["sla"]})
    assert serve(again, once=True) == DONE, "nor does it keep one from starting"


@pytest.mark.parametrize("values", ["rising", "the same"])
def test_a_second_controller_with_the_same_band_stops_it(tmp_path, values):
    """It has another list and began when nothing waited; only an operator can raise priorities."""
    slurm, made = ranked(tmp_path / "a")
    given = dict(slurm.queue)
    assert controller(slurm, tmp_path / "c", live=False).cycle().ranked == 6 and slurm.queue == given
    with pytest.raises(RLTuneError, match=r"6 waiting jobs .* no controller of this directory"):
        slurm.change(10, 11, user="grace")
        serve(controller(slurm, tmp_path / "b"))
    last = sorted(range(10, 16), key=lambda number: priorities(slurm)[number])[:3]

    def other(line: str, _: object) -> None:
        if line.startswith("cycle"):
            for k, number in enumerate(last):
                higher = BAND.high - k if values == "the same" else slurm.queue[number].priority + 77
                slurm.change(number, priority=min(higher, BAND.high))

    made = controller(slurm, tmp_path / "a")
    assert serve(made, other) == GAVE_UP and slurm.all_released()
    assert sum("is a second controller running?" in line for line in made.said) == 3, "reported, found again, released"


def test_priorities_that_are_raised_once_do_not_stop_it(tmp_path):
    """The order fits afterwards, so that nothing is written: it is the same act in the next cycle."""
    slurm, made = ranked(tmp_path)
    for number in range(10, 16):
        slurm.change(number, priority=slurm.queue[number].priority + 1000)
    for _ in range(4):
        made.cycle()
    assert len(made.said) == 1 and "has raised the priorities of 6 ranked jobs" in made.said[0]
    assert made.release_all("test") == (6, []) and slurm.all_released()


def test_an_ended_job_is_known_as_long_as_it_may_be_requeued(tmp_path):
    slurm, made = ranked(tmp_path)
    slurm.ended_s = made._requeue_s = 420.0
    del slurm.queue[10]
    for later in (0.0, 0.0, 0.0, 400.0, 421.0):
        made.clock = lambda later=later: NOW_S + later
        assert 10 in assigned(made)
        made.cycle()
    assert 10 not in assigned(made)
