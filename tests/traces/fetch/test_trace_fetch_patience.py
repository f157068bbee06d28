"""Downloads from a server that stalls, is busy or sends elsewhere: how often, how long, and what is said."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest
from fetch_cases import DATA, QUICK
from fetch_server import Site, file, in_turn, refuse

from rltune.traces.fetch import web
from rltune.traces.fetch.patience import Patience
from rltune.traces.fetch.progress import Progress, size_text, time_text


def test_a_silent_connection_is_given_up_and_continued(site: Site, get: Callable, capsys: Any) -> None:
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000, stall=True), file(DATA))
    assert get(patience=replace(QUICK, stall_s=0.3)) == DATA
    assert "no byte for 0.3 s" in capsys.readouterr().out and site.log[1].range


def test_a_server_that_cuts_at_the_same_byte_is_given_up(site: Site, fails: Callable, get: Callable) -> None:
    site.answers["data.zip"] = file(DATA, ranges=False, upto=9_000)
    text = fails(bytes=20_000)
    assert re.search(r"ended after 9000 of 20000 bytes \(3 attempts\)", text) and len(site.log) == 3
    assert "9 kB of it are kept, and the next attempt goes on after them" in text
    site.answers["data.zip"] = file(DATA)
    assert get(bytes=20_000) == DATA and site.log[-1].range, "the next run goes on with what was kept"


def test_attempts_that_get_further_do_not_count(site: Site, get: Callable) -> None:
    site.answers["data.zip"] = in_turn(*(file(DATA, upto=upto) for upto in range(2_000, 20_000, 2_000)), file(DATA))
    assert get() == DATA and len(site.log) == 10 > QUICK.tries


def test_redirections(site: Site, get: Callable) -> None:
    there = in_turn(file(DATA, upto=9_000), file(DATA))
    site.answers |= {"data.zip": refuse(302, Location="there"), "there": there}
    assert get() == DATA
    assert site.asked("there")[1].range, "the range is asked for at the end of the chain"


def test_a_redirection_loop_ends(site: Site, fails: Callable) -> None:
    site.answers |= {"loop": refuse(301, Location="pool"), "pool": refuse(301, Location="loop")}
    assert "loop: more than 4 redirections" in fails("loop")
    assert len(site.log) == 5


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits, noted instead of sat out."""
    slept: list[float] = []
    monkeypatch.setattr(web, "time", SimpleNamespace(sleep=slept.append))
    return slept


def test_busy_servers_are_asked_again_as_they_wish(site: Site, get: Callable, slept: list[float], capsys: Any) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    site.answers["data.zip"] = in_turn(
        refuse(503, Retry_After="7"), refuse(429, Retry_After=date), refuse(500, Retry_After="soon"), file(DATA)
    )
    assert get(patience=Patience(wait_s=0.5)) == DATA
    assert slept[0] == 7 and 90 < slept[1] <= 100 and 0.5 * 4 * 0.5 <= slept[2] <= 0.5 * 4 * 1.5
    out = capsys.readouterr().out
    assert "answer 503 Service Unavailable; next attempt in 7 s" in out


def test_a_server_that_asks_for_too_much_is_given_up(site: Site, get: Callable, slept: list[float]) -> None:
    site.answers |= {"data.zip": refuse(503, Retry_After="3600"), "mirror": file(DATA)}
    assert get(mirrors=[site.at("mirror")]) == DATA
    assert not slept and len(site.log) == 2


def test_waits_double_with_jitter_up_to_a_limit(site: Site, fails: Callable, slept: list[float]) -> None:
    site.answers["data.zip"] = refuse(503)
    text = fails(patience=Patience(tries=6, wait_s=1.0, longest_s=6.0))
    assert "answer 503 Service Unavailable (6 attempts)" in text and len(site.log) == 6 and len(slept) == 5
    assert all(min(6, 2**k * 0.5) <= wait <= min(6, 2**k * 1.5) for k, wait in enumerate(slept))


def test_a_closed_port_is_told(site: Site, fails: Callable) -> None:
    text = fails("http://127.0.0.1:9/data.zip")
    assert "http://127.0.0.1:9/data.zip: Connection refused (3 attempts)" in text


def test_progress_is_told(site: Site, get: Callable, capsys: Any) -> None:
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000), file(DATA))
    get()
    out = capsys.readouterr().out
    assert re.search(r"downloading data.zip: 512 B of 20 kB \(3%\), .*B/s, .* left", out)
    assert re.search(r"downloading data.zip: going on after 9 kB", out)
    progress = Progress("x", 500_000_000, 1_500_000_000, 5.0)
    progress.done = 600_000_000
    assert progress.line(10.0) == "600 MB of 1.5 GB (40%), 10 MB/s, 1 min 30 s left"
    progress.total = None
    assert progress.line(10.0) == "600 MB, 10 MB/s"
    assert [time_text(s) for s in (0, 59.6, 3_700)] == ["0 s", "1 min 00 s", "1 h 01 min"]
    assert [size_text(b) for b in (0, 999, 36_400_000)] == ["0 B", "999 B", "36.4 MB"]
