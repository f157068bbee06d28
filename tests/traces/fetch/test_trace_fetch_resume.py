"""Downloads that are cut and continued: the right bytes, however the server or the file changes between the parts."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fetch_cases import DATA, OTHER, SHA
from fetch_server import Site, file, in_turn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltune.config.trace import Download
from rltune.traces.fetch.download import download
from rltune.traces.fetch.patience import Patience


@pytest.mark.parametrize("known", [True, False])
def test_a_cut_file_is_continued(known: bool, site: Site, get: Callable) -> None:
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000), file(DATA, upto=15_000), file(DATA))
    assert get(sha256=SHA if known else None) == DATA
    first, second, third = site.log
    assert (first.range, second.range, third.range) == (None, "bytes=9000-", "bytes=15000-")
    assert second.if_range == third.if_range == '"one"' and third.sent == 5_000


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_the_cuts_the_bytes_are_right(data: st.DataObject, site: Site) -> None:
    content = np.random.default_rng(data.draw(st.integers(0, 99))).bytes(data.draw(st.integers(1, 6_000)))
    options = st.fixed_dictionaries({"upto": st.integers(0, len(content)), "ranges": st.booleans()})
    cuts = data.draw(st.lists(options, max_size=4))
    validators = data.draw(st.sampled_from([{}, {"etag": 'W/"weak"'}, {"etag": None, "modified": "then"}]))
    site.log.clear()
    site.answers["x"] = in_turn(*(file(content, **validators, **cut) for cut in cuts), file(content, **validators))
    known = data.draw(st.booleans())
    checksum = hashlib.sha256(content).hexdigest()
    patient = Patience(tries=len(cuts) + 2, gain_bytes=1, wait_s=0.0, chunk_bytes=256)
    with tempfile.TemporaryDirectory() as name:
        item = Download(url=site.at("x"), file="x", sha256=checksum if known else None)
        assert download("t", item, item.sha256, Path(name), patient) == (checksum, site.at("x"))
        assert (Path(name) / "x").read_bytes() == content and os.listdir(name) == ["x"]
    assert len(site.log) <= len(cuts) + 1


def test_a_server_without_ranges_starts_again(site: Site, get: Callable) -> None:
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000), file(DATA, ranges=False))
    assert get() == DATA
    assert [r.sent for r in site.log] == [9_000, 20_000] and site.log[1].range


def test_without_a_validator_only_a_known_checksum_lets_it_continue(site: Site, get: Callable, tmp_path: Path) -> None:
    for known, asked in ((None, False), (SHA, True)):
        site.log.clear()
        site.answers["data.zip"] = in_turn(file(DATA, etag=None, upto=9_000), file(DATA, etag='W/"x"'))
        assert get(sha256=known) == DATA
        assert bool(site.log[1].range) == asked and site.log[1].if_range is None
        for path in (tmp_path / "raw" / "d").iterdir():
            path.unlink()


@pytest.mark.parametrize("if_range", [True, False], ids=["If-Range heeded", "If-Range ignored"])
def test_a_file_that_changes_between_the_parts(if_range: bool, site: Site, get: Callable) -> None:
    changed = file(OTHER, etag='"two"', if_range=if_range)
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000), changed)
    assert get() == OTHER
    assert len(site.log) == (2 if if_range else 3) and site.log[-1].sent == 20_000


def test_a_file_that_grew_is_noticed_by_its_size(site: Site, get: Callable) -> None:
    grown = DATA + b"more"
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000), file(grown, etag=None, if_range=False))
    assert get() == grown


def test_a_file_that_shrank_below_the_part(site: Site, get: Callable) -> None:
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000), file(DATA[:100], etag='"two"', if_range=False))
    assert get() == DATA[:100]


def test_pieces_of_two_files_without_validators_do_not_pass(site: Site, get: Callable) -> None:
    site.answers["data.zip"] = in_turn(file(OTHER, etag=None, upto=9_000), file(DATA, etag=None))
    assert get(sha256=SHA) == DATA
    assert [bool(r.range) for r in site.log] == [False, True, False]


def test_a_part_whose_last_byte_had_come_is_not_asked_for_again(site: Site, get: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "raw" / "d"
    folder.mkdir(parents=True)
    (folder / "data.zip.part").write_bytes(DATA)
    notes = {"url": site.at("data.zip"), "etag": '"one"', "modified": None, "total": len(DATA)}
    (folder / "data.zip.part.json").write_text(json.dumps(notes))
    assert get(sha256=SHA) == DATA and not site.log


@pytest.mark.parametrize("notes", ["", "{broken", "[]", '{"url": "http://elsewhere/", "etag": "1"}'])
def test_a_part_of_unknown_origin_is_not_continued(notes: str, site: Site, get: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "raw" / "d"
    folder.mkdir(parents=True)
    (folder / "data.zip.part").write_bytes(OTHER[:5_000])
    (folder / "data.zip.part.json").write_text(notes)
    site.answers["data.zip"] = file(DATA)
    assert get() == DATA and site.log[0].range is None


def test_the_address_with_a_part_comes_first_and_a_dead_one_does_not_destroy_it(
    site: Site, get: Callable, fails: Callable
) -> None:
    fails("gone", mirrors=[site.at("data.zip"), site.at("gone too")])
    site.answers["data.zip"] = file(DATA, upto=9_000, ranges=False)
    fails("gone", mirrors=[site.at("data.zip"), site.at("gone too")])
    site.answers["data.zip"] = file(DATA)
    site.log.clear()
    assert get("gone", mirrors=[site.at("data.zip")]) == DATA
    assert [r.path for r in site.log] == ["data.zip"] and site.log[0].range


KILLED = """
import json, sys
from pathlib import Path
from rltune.config.trace import Download
from rltune.traces.fetch.download import download
from rltune.traces.fetch.patience import Patience
download("d", Download(url=sys.argv[1], file="data.zip"), None, Path(sys.argv[2]), Patience(chunk_bytes=512))
"""


def test_a_killed_process_leaves_what_the_next_one_continues(site: Site, get: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "raw" / "d"
    folder.mkdir(parents=True)
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000, stall=True), file(DATA))
    process = subprocess.Popen([sys.executable, "-c", KILLED, site.at("data.zip"), folder])
    part = folder / "data.zip.part"
    deadline = time.monotonic() + 60
    while not (part.is_file() and part.stat().st_size >= 8_000):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert sorted(p.name for p in folder.iterdir()) == ["data.zip.part", "data.zip.part.json"]
    kept = part.stat().st_size
    assert get() == DATA
    assert site.log[1].range == f"bytes={kept}-" and site.log[1].sent == 20_000 - kept and len(site.log) == 2


def test_two_at_once_download_it_once(site: Site, get: Callable) -> None:
    def slowly(h: Any) -> None:
        site.over.wait(0.3)
        file(DATA)(h)

    site.answers["data.zip"] = slowly
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(lambda _: get(), range(3))) == {DATA}
    assert len(site.log) == 1
