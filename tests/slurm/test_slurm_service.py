"""The controller at work, when something goes wrong: every job is handed back, or found again later."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fake_slurm import BAND, NOW_S, busy, controller, job, priorities, write_policy

from rltune.errors import DataError, RLTuneError
from rltune.slurm.controller import Controller
from rltune.slurm.service import DONE, FAILED, GAVE_UP, NOT_RELEASED, Service, warnings
from rltune.slurm.state_directory import Busy, StateDirectory


@contextmanager
def sent_while_it_waits(made: Controller, send: Callable[[], None]) -> Iterator[None]:
    """A signal a moment after a service has told of its first cycle: earlier it would end the tests."""
    timer = threading.Timer(1.0, send)

    def say(line: str) -> None:
        made.said.append(line)  # type: ignore[attr-defined]
        if not timer.ident:
            timer.start()

    made.say = say
    try:
        yield
    finally:
        timer.cancel()


def test_the_list_of_touched_jobs_is_written_before_slurm_is(tmp_path: Path) -> None:
    slurm = busy()

    def killed() -> None:
        raise KeyboardInterrupt

    slurm.before_update = killed
    with pytest.raises(KeyboardInterrupt):
        controller(slurm, tmp_path).cycle()
    assert set(StateDirectory(tmp_path).assigned()) == set(range(10, 16))


def test_a_crashed_controllers_jobs_are_gone_on_with_or_released(tmp_path: Path) -> None:
    slurm = busy()
    controller(slurm, tmp_path).cycle()
    with pytest.raises(RLTuneError, match="6 jobs"):
        Service(controller(slurm, tmp_path, live=False), once=True).run()
    again = controller(slurm, tmp_path)
    assert Service(again, once=True).run() == DONE and "going on with 6 jobs" in again.said[0]
    assert again.release_all("test")[0] == 6
    assert priorities(slurm) == {n: p for n, p in slurm.computed.items() if n >= 10}
    assert not StateDirectory(tmp_path).assigned()


def test_a_lost_list_is_made_up_for_by_the_band(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.directory.assigned_path.write_text("{half")
    with pytest.raises(DataError, match="release --band"):
        made.cycle()
    assert made.release_all("test", band_too=True)[0] == 6 and priorities(slurm).keys() == set(range(10, 16))
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)} and not made.directory.assigned()


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_hands_every_job_back(tmp_path: Path, signal_: int) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, interval_s=600.0)
    with sent_while_it_waits(made, lambda: os.kill(os.getpid(), signal_)):
        assert Service(made).run() == DONE
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)}
    assert signal.Signals(signal_).name in made.said[-1]


def test_slurm_that_does_not_answer_is_borne_for_some_cycles(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, max_failures=3)

    def say(line: str) -> None:
        made.said.append(line)
        slurm.silent = True  # from the end of the first cycle on

    made.say = say
    assert Service(made, between_tries_s=0.0).run() == NOT_RELEASED
    assert sum("cycle failed" in line for line in made.said) == 3
    assert len(made.directory.assigned()) == 6, "the list stays for rltune slurm release"
    slurm.silent = False
    assert made.release_all("later")[0] == 6


def test_an_error_that_nobody_foresaw_hands_back_and_shows_itself(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.queue[10] = replace(slurm.queue[10], submit_s="yesterday")
    with pytest.raises(TypeError):
        Service(made).run()
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)}


def test_where_such_an_error_keeps_jobs_from_being_given_back_the_status_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a supervisor would start it again and again, with jobs in the band."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()

    def jobs() -> None:
        raise TypeError("a new word of Slurm's")

    slurm.jobs = jobs
    made.from_before = lambda: (frozenset(range(10, 16)), frozenset())  # what a start had seen before
    assert Service(made, between_tries_s=0.0).run() == NOT_RELEASED
    assert "a new word of Slurm's" in capsys.readouterr().err and set(made.directory.assigned()) == set(range(10, 16))


def test_told_to_stop_before_the_first_cycle_it_writes_nothing(tmp_path: Path) -> None:
    slurm = busy()
    service = Service(controller(slurm, tmp_path))
    service.stop.set()
    assert service.run() == DONE and not slurm.writes


@pytest.mark.parametrize("spoil", ["gone", "broken", "old"])
def test_a_policy_that_cannot_be_used_hands_back(tmp_path: Path, spoil: str) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, max_policy_age_days=3.0)
    made.cycle()
    path = tmp_path / "policy.npz"
    if spoil == "gone":
        path.unlink()
    elif spoil == "broken":
        path.write_bytes(b"not a policy")
    else:
        os.utime(path, (1e9, 1e9))
    assert Service(made).run() == GAVE_UP, "another start would stop for it again: somebody has to look"
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)} and not made.directory.assigned()


def test_a_policy_trained_anew_is_taken_up_by_the_next_cycle(tmp_path: Path) -> None:
    """The order is then that of a controller which began with the new one."""
    slurm, other = busy(20), busy(20)
    made = controller(slurm, tmp_path)
    made.cycle()
    before = sorted(range(10, 30), key=lambda n: -priorities(slurm)[n])
    path = write_policy(tmp_path / "policy.npz", seed=2)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert made.cycle().changed > 0
    after = sorted(range(10, 30), key=lambda n: -priorities(slurm)[n])
    (tmp_path / "anew").mkdir()
    write_policy(tmp_path / "anew" / "policy.npz", seed=2)
    controller(other, tmp_path / "anew").cycle()
    assert after == sorted(range(10, 30), key=lambda n: -priorities(other)[n]) != before


def test_the_watchdog_makes_it_hand_back_and_stay_stopped(tmp_path: Path) -> None:
    """Hours go by and nothing moves, where in the simulation the running jobs end and the waiting ones start."""
    slurm = busy()
    rules = {"policy": "fifo", "min_jobs": 1, "every_s": 1.0, "patience": 2}
    made = controller(slurm, tmp_path, watchdog=rules, backfill="none")
    now_s, highest = [NOW_S], []

    def say(line: str) -> None:
        made.said.append(line)
        now_s[0] += 3 * 3600.0
        highest.append(max(priorities(slurm).values()))

    made.say, made.clock = say, lambda: now_s[0]
    assert Service(made, between_tries_s=0.0).run() == GAVE_UP
    assert "longer in 2 comparisons in a row" in made.said[-1] and highest[0] >= BAND.low
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)} and not made.directory.assigned()
    text = made.directory.metrics_path.read_text()
    assert "rltune_live 0.0\n" in text and "rltune_watchdog_compared_jobs 6.0\n" in text
    assert "rltune_watchdog_longer 1.0\n" in text, "as of the cycle before"


def test_a_dry_run_says_what_the_watchdog_says_and_goes_on(tmp_path: Path) -> None:
    rules = {"policy": "fifo", "min_jobs": 1, "every_s": 1.0, "patience": 1}
    made = controller(busy(), tmp_path, live=False, watchdog=rules, backfill="none")
    now_s, service = [NOW_S], Service(made)

    def say(line: str) -> None:
        made.said.append(line)
        now_s[0] += 3 * 3600.0
        if sum("comparisons in a row" in told for told in made.said) == 2:
            service.stop.set()

    made.say, made.clock = say, lambda: now_s[0]
    assert service.run() == DONE


def test_a_single_cycle_leaves_its_figures_and_that_nobody_writes_any_more(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    assert Service(made, once=True).run() == DONE and min(priorities(slurm).values()) >= BAND.low
    text = made.directory.metrics_path.read_text()
    assert "rltune_live 0.0\n" in text and "rltune_ranked_jobs 6.0\n" in text


def test_a_full_disk_stops_the_writing_but_not_the_handing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, max_failures=2)
    made.cycle()
    slurm.add(*(job(100 + k) for k in range(3)))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr(StateDirectory, "write", full)
    monkeypatch.setattr(StateDirectory, "write_journal", full)
    writes = len(slurm.writes)
    assert Service(made, between_tries_s=0.0).run() == FAILED
    assert len(slurm.writes) == writes, "nothing is written that is not noted first"
    assert all(p < BAND.low for p in priorities(slurm).values())


def test_after_the_clock_was_set_the_watchdog_begins_anew(tmp_path: Path) -> None:
    """Two hours forward: by then the simulation has started everything, and here nothing has moved."""
    slurm = busy()
    rules = {"policy": "fifo", "min_jobs": 1, "every_s": 1.0, "patience": 1}
    made = controller(slurm, tmp_path, watchdog=rules, backfill="none")
    now_s, service, seen = [NOW_S], Service(made, between_tries_s=0.0), []

    def say(line: str) -> None:
        seen.append(line)
        now_s[0] += 2.0 if len(seen) != 2 else 7200.0
        if len(seen) == 6:
            service.stop.set()

    made.say, made.clock, made.steady = say, lambda: now_s[0], lambda: 0.0
    assert service.run() == DONE and "jumped by +7200 s" in seen[2] and "6 ranked" in seen[5]


def test_two_controllers_refuse_to_run_at_once(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    with made.directory.lock():
        with pytest.raises(Busy, match=str(os.getpid())):
            Service(controller(slurm, tmp_path), once=True).run()
        assert "is running" in made.directory.describe()
    assert "no controller runs" in made.directory.describe()


def test_a_signal_that_another_thread_is_given_is_seen_before_the_next_cycle(tmp_path: Path) -> None:
    """Numerical libraries start threads, and the system may choose any of them."""
    slurm = busy()
    made = controller(slurm, tmp_path, interval_s=600.0)

    def to_myself() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with sent_while_it_waits(made, to_myself):
        assert Service(made).run() == DONE
    assert set(slurm.released) == set(range(10, 16)) and not any("changed 0" in line for line in made.said)


def test_what_a_policy_was_trained_for_is_told_before_the_first_cycle(tmp_path: Path) -> None:
    cell = {"trace": "philly", "cluster": "philly-192", "estimate": "lognormal-1"}
    write_policy(tmp_path / "policy.npz", cell=cell, learned=False)
    made = controller(busy(), tmp_path, live=False)
    assert Service(made, once=True).run() == DONE
    estimate, learned, where = made.said[:3]
    assert "lognormal-1" in estimate and "not better" in learned and "philly-192" in where
    assert not warnings({}) and len(warnings({"cell": cell | {"estimate": "requested"}, "learned": True})) == 1
