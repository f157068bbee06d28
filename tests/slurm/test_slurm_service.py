"""The controller when something goes wrong: every job is released, or found again later."""

import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from fake_slurm import BAND, NOW_S, assigned, busy, controller, job, priorities, ranked, serve, write_policy

from rltune.errors import RLTuneError
from rltune.slurm.controller import Controller, Cycle
from rltune.slurm.service import DONE, FAILED, GAVE_UP, NOT_RELEASED, Service, describe, warnings
from rltune.slurm.state_directory import StateDirectory
from rltune.slurm.systemd import log
from rltune.slurm.watchdog import Watchdog

FIFO = {"watchdog": {"policy": "fifo", "min_jobs": 1, "patience": 1}}
"""A watchdog whose verdict comes at once."""


def test_jobs_of_a_crashed_controller_are_found_again(tmp_path):
    """The list is written before Slurm is."""
    slurm, made = ranked(tmp_path, cycles=0)

    def killed() -> None:
        raise KeyboardInterrupt

    slurm.before_update = killed
    with pytest.raises(KeyboardInterrupt):
        made.cycle()
    assert set(assigned(made)) == set(range(10, 16))
    slurm.before_update = lambda: None
    made.cycle()
    with pytest.raises(RLTuneError, match="6 jobs"):
        serve(controller(slurm, tmp_path, live=False), once=True)
    again = controller(slurm, tmp_path)
    assert serve(again, once=True) == DONE and "going on with 6 jobs" in again.said[0]
    assert again.release_all("test")[0] == 6 and slurm.all_released() and not assigned(again)


@pytest.mark.parametrize(
    ("number", "send"),
    [(number, lambda n: os.kill(os.getpid(), n)) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    + [(signal.SIGTERM, lambda n: signal.pthread_kill(threading.get_ident(), n))],
    ids=["TERM", "INT", "HUP", "another thread"],
)
def test_a_signal_releases_every_job(tmp_path, number, send):
    """Also one that another thread is given: numerical libraries start threads, and the system may choose any."""
    timer = threading.Timer(1.0, send, [number])  # after the first cycle: earlier it would end the tests
    slurm = busy()
    made = controller(slurm, tmp_path, interval_s=600.0)
    try:
        assert serve(made, lambda line, service: len(made.said) == 1 and timer.start()) == DONE
    finally:
        timer.cancel()
    assert set(slurm.released) == set(range(10, 16)) and slurm.all_released() and number.name in made.said[-1]
    assert sum("ranked" in line for line in made.said) == 1, "before the next cycle"


def test_slurm_that_does_not_answer_at_the_start_is_waited_for(tmp_path, monkeypatch):
    """However long, with one message, ever more rarely; but not for a single cycle."""
    slurm, _ = ranked(tmp_path, cycles=1)
    slurm.silent = True
    with pytest.raises(RLTuneError):
        serve(controller(slurm, tmp_path), once=True)

    waits: list[float] = []

    def wait(service: Service, until_s: float) -> None:
        waits.append(until_s - time.monotonic())
        slurm.silent = len(waits) < 40

    monkeypatch.setattr(Service, "_wait", wait)
    again = controller(slurm, tmp_path)
    assert serve(again, lambda line, service: "cycle" in line and service.stop.set(), between_tries_s=5.0) == DONE
    assert slurm.all_released() and "does not answer" in again.said[0] and "going on with 6 jobs" in again.said[1]
    assert waits[:5] == pytest.approx([5, 10, 20, 40, 60], abs=0.5) and max(waits) < 61


def test_a_single_cycle_that_fails_leaves_the_jobs_as_they_are(tmp_path):
    slurm, _ = ranked(tmp_path, cycles=1)
    slurm.machines, before = [], dict(slurm.queue)
    assert serve(controller(slurm, tmp_path, max_failures=1), once=True) == FAILED and slurm.queue == before


def test_stopped_while_slurm_does_not_answer_it_keeps_the_list(tmp_path):
    slurm = busy()
    made = controller(slurm, tmp_path)

    def then(line: str, service: Service) -> None:
        slurm.silent = True
        if "does not answer" in line:
            service.stop.set()

    assert serve(made, then) == NOT_RELEASED
    assert sum("could not release all jobs" in line for line in made.said) == 5
    assert len(assigned(made)) == 6, "the list stays for rltune slurm release"
    slurm.silent = False
    assert made.release_all("later")[0] == 6


@pytest.mark.parametrize("managed", [False, True])
def test_messages_have_levels_and_systemd_is_notified(tmp_path, capsys, monkeypatch, managed):
    slurm, heard = busy(), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(str(tmp_path / "notify"))
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    if managed:
        out = os.fstat(1)
        monkeypatch.setenv("JOURNAL_STREAM", f"{out.st_dev}:{out.st_ino}")
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    made = controller(slurm, tmp_path, max_failures=2)
    made.say, slurm.machines = log, []
    assert Service(made, between_tries_s=0.0).run() == FAILED
    lines = capsys.readouterr().out.splitlines()
    assert [line[:3] if managed else line.split(" ")[1] for line in lines] == (
        ["<4>", "<4>", "<3>", "<6>"] if managed else ["WARNING", "WARNING", "ERROR", "INFO"]
    )
    if managed:
        assert [heard.recv(100) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]
        heard.setblocking(False)
        with suppress(BlockingIOError):
            while heard.recv(100):
                pass
        Service(made)._wait(time.monotonic() + 0.01)
        assert heard.recv(100) == b"WATCHDOG=1", "a long wait is no hang"


def test_a_message_with_characters_that_its_stream_lacks_stops_nothing(monkeypatch):
    with open(os.devnull, "w", encoding="latin-1") as out:
        monkeypatch.setattr(sys, "stdout", out)
        log("/home/李/policy.npz: no such file")


def test_a_cycle_says_no_more_than_the_first_faults():
    lines = describe(Cycle(faults=tuple(f"node n{k}: not used" for k in range(300))), live=True).splitlines()
    assert lines[1:] == [*(f"  node n{k}: not used" for k in range(20)), "  and 280 more"]


@pytest.mark.parametrize("release_too", [False, True])
def test_an_unforeseen_error_releases_all_jobs(tmp_path, capsys, release_too):
    """Otherwise a supervisor would start it again and again, with jobs in the band."""
    slurm, made = ranked(tmp_path, cycles=1)

    def jobs() -> None:
        raise TypeError("a new word of Slurm's")

    if release_too:
        slurm.jobs = jobs  # type: ignore[method-assign,assignment]
        made.jobs_at_start = lambda: (frozenset(range(10, 16)), {})  # what a start had seen before
        assert serve(made) == NOT_RELEASED
        assert "a new word of Slurm's" in capsys.readouterr().err and set(assigned(made)) == set(range(10, 16))
    else:
        slurm.change(10, submit_s="yesterday")
        with pytest.raises(TypeError):
            serve(made)
        assert slurm.all_released()


@pytest.mark.parametrize("spoil", ["gone", "broken", "encrypted"])
def test_a_policy_that_cannot_be_read_any_more_stays_loaded(tmp_path, spoil):
    """It may be half copied; reported once. A start without one releases what an earlier controller has left."""
    slurm, made = ranked(tmp_path, cycles=1)
    path = tmp_path / "policy.npz"
    whole = bytearray(path.read_bytes())
    path.unlink()
    if spoil == "broken":
        path.write_bytes(b"not a policy")
    elif spoil == "encrypted":  # as a flipped bit makes it
        whole[whole.index(b"PK\1\2") + 8] |= 1
        path.write_bytes(whole)
    for _ in range(3):
        assert made.cycle().ranked == 6
    assert len(made.said) == 1 and "going on with the policy loaded before" in made.said[0]
    again = controller(slurm, tmp_path)
    path.unlink(missing_ok=True)
    assert serve(again) == GAVE_UP and slurm.all_released() and not assigned(again)


def test_a_policy_trained_on_old_jobs_releases_all(tmp_path):
    """Their age counts, not that of the file."""
    slurm = busy()
    write_policy(tmp_path / "policy.npz", jobs_until=datetime.fromtimestamp(NOW_S - 4 * 86400, UTC).isoformat())
    assert controller(slurm, tmp_path, max_policy_age_days=5.0).cycle().ranked == 6
    made = controller(slurm, tmp_path, max_policy_age_days=3.0)
    assert serve(made) == GAVE_UP and slurm.all_released() and any("4.0 days ago" in line for line in made.said)


def test_a_newly_trained_policy_is_used_from_the_next_cycle(tmp_path):
    """The order is then that of a controller which began with the new one."""

    def order(made: Controller) -> list[int]:
        made.cycle()
        return sorted(range(10, 30), key=lambda n: -priorities(made.slurm)[n])  # type: ignore[arg-type]

    made = controller(busy(20), tmp_path)
    before = order(made)
    path = write_policy(tmp_path / "policy.npz", seed=2)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    after = order(made)
    assert after == order(controller(busy(20), tmp_path, state=tmp_path / "other")) != before


@pytest.mark.parametrize("live", [True, False])
def test_the_watchdog_makes_it_release_all_and_pause_for_a_day(tmp_path, live):
    """Hours go by and nothing moves, where in the simulation the running jobs end; a dry run tells that, and goes on."""
    slurm, now_s, highest = busy(), [NOW_S], []

    def then(line: str, service: Service) -> None:
        now_s[0] += 3 * 3600.0
        highest.append(max(priorities(slurm).values()))
        if live and len(highest) in (1, 6):  # the job has the controller's priority again when it is requeued
            slurm.start(15) if len(highest) == 1 else slurm.requeue(15)
        if len(highest) == 30:
            service.stop.set()

    made = controller(slurm, tmp_path, live, **FIFO)
    made.clock = lambda: now_s[0]
    assert serve(made, then) == DONE and slurm.all_released()
    texts = "\n".join(made.said)
    if live:
        assert "in 1 comparisons in a row" in texts and "paused for 24 h" in texts
        assert highest[0] >= BAND.low > min(highest) and "the pause is over" in texts
        k = next(k for k, line in enumerate(made.said) if "the pause is over" in line)
        assert highest[k] < BAND.low <= highest[k + 1]
    else:
        assert max(highest) < BAND.low and "in 2 comparisons in a row" in texts
    assert not made.directory.ownership().present


@pytest.mark.parametrize("end", ["stopped", "failed", "refused"])
def test_jobs_are_released_however_the_pause_ends(tmp_path, monkeypatch, end):
    """Job 11 starts, and is requeued just before a signal to stop, or when no cycle succeeds any more; or the release of
    another is refused at first."""
    verdicts = iter(["waits are longer"])
    monkeypatch.setattr(Watchdog, "cycle", lambda self, view: next(verdicts, ""))
    slurm = busy()
    made = controller(slurm, tmp_path, max_failures=2)

    def then(line: str, service: Service) -> None:
        if line.startswith("cycle") and len(made.said) == 1:
            slurm.start(11)
            slurm.refuses = {12: "Access denied"} if end == "refused" else {}
        elif "paused for" in line:
            assert (slurm.queue[12].priority in BAND) == (end == "refused") and not made.live
            slurm.requeue(11)
            slurm.refuses, slurm.machines = {}, slurm.machines if end != "failed" else []
            if end == "stopped":
                service.stop.set()
        elif line.startswith("cycle") and end == "refused":
            service.stop.set()

    assert serve(made, then) == (FAILED if end == "failed" else DONE) and slurm.all_released()


def test_a_single_cycle_leaves_its_figures_and_that_nobody_writes_any_more(tmp_path):
    slurm, made = ranked(tmp_path, cycles=1)
    texts = [made.directory.metrics_path.read_text()]
    assert serve(made, once=True) == DONE and min(priorities(slurm).values()) >= BAND.low
    texts.append(made.directory.metrics_path.read_text())
    for text, live in zip(texts, (1.0, 0.0), strict=True):
        assert f"rltune_live {live}\n" in text and "rltune_ranked_jobs 6.0\n" in text
        assert f"rltune_last_cycle_time_seconds {NOW_S!r}\n" in text and "# TYPE rltune_changes_total counter" in text


@pytest.mark.parametrize("full", [("write_journal",), ("write", "write_journal")])
def test_a_full_disk_does_not_stop_the_release(tmp_path, monkeypatch, full):
    """Nothing is written that is not noted first."""
    slurm, made = ranked(tmp_path, cycles=1, max_failures=2)
    slurm.add(*(job(100 + k) for k in range(3)))

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path))

    for name in full:
        monkeypatch.setattr(StateDirectory, name, fails)
    assert serve(made) == FAILED
    assert len(slurm.writes) == 6 and slurm.all_released()


def test_messages_that_cannot_be_printed_do_not_stop_the_release(tmp_path, monkeypatch):
    """The disk of the log is full, or the terminal closed."""
    slurm, made = ranked(tmp_path, cycles=1, max_failures=2)
    made.say, slurm.machines, status = log, [], None
    with suppress(OSError), open("/dev/full", "w") as full:  # closing it fails too
        monkeypatch.setattr("sys.stdout", full)
        status = Service(made, between_tries_s=0.0).run()
    assert status == FAILED and slurm.all_released()


def test_after_the_clock_was_set_the_watchdog_restarts(tmp_path):
    """Two hours forward: by then the simulation has started everything, and here nothing has moved."""
    now_s, made = [NOW_S], controller(busy(), tmp_path, **FIFO)
    made.clock, made.steady = lambda: now_s[0], lambda: 0.0

    def then(line: str, service: Service) -> None:
        now_s[0] += 2.0 if len(made.said) != 2 else 7200.0
        if len(made.said) == 6:
            service.stop.set()

    assert serve(made, then) == DONE and "jumped by +7200 s" in made.said[2] and "ranked=6" in made.said[5]


@pytest.mark.parametrize("days", [-10.0, 10.0])
def test_the_pause_lasts_a_day_when_the_clock_is_set(tmp_path, monkeypatch, days):
    verdicts, set_s, passed_s, began_s = iter(["waits are longer"]), 0.0, 0.0, 0.0
    monkeypatch.setattr(Watchdog, "cycle", lambda self, view: next(verdicts, ""))
    made = controller(busy(), tmp_path)
    made.clock, made.steady = lambda: NOW_S + set_s + passed_s, lambda: passed_s

    def then(line: str, service: Service) -> None:
        nonlocal set_s, passed_s, began_s
        if "paused for" in line:
            set_s, began_s = 86400.0 * days, passed_s
        passed_s += 3600.0
        if "the pause is over" in line or passed_s > 20 * 86400.0:
            service.stop.set()

    assert serve(made, then) == DONE and any("jumped by" in line for line in made.said)
    assert 24 <= (passed_s - began_s) / 3600 <= 27 and "the pause is over" in made.said[-2]


def test_two_controllers_refuse_to_run_at_once(tmp_path):
    slurm, made = ranked(tmp_path, cycles=0)
    (tmp_path / "lock").touch(0o644)
    with made.directory.lock():
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600, "whoever may read it could hold it"
        with pytest.raises(RLTuneError, match=str(os.getpid())):
            serve(controller(slurm, tmp_path), once=True)
        assert "is running" in made.directory.describe()
    assert "no controller runs" in made.directory.describe()


def test_what_a_policy_was_trained_for_is_reported_before_the_first_cycle(tmp_path):
    cell = {"trace": "philly", "cluster": "philly-192", "estimate": "lognormal-1"}
    write_policy(tmp_path / "policy.npz", cell=cell, learned=False)
    made = controller(busy(), tmp_path, live=False)
    assert serve(made, once=True) == DONE
    estimate, learned, where = made.said[:3]
    assert "lognormal-1" in estimate and "not better" in learned and "philly-192" in where
    assert not warnings({}) and len(warnings({"cell": cell | {"estimate": "requested"}, "learned": True})) == 1
