"""Downloads that are cut, refused, or of something else: the right bytes, or a clear reason, whatever the server does."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fetch_server import DATA, OTHER, QUICK, SHA, Site, chunked, file, in_turn, refuse, start
from hypothesis import given, strategies as st
from random_cases import times
from raw_cases import trace_config

from rltune.config.trace import Download
from rltune.errors import DataError
from rltune.traces import progress
from rltune.traces.fetch import RetryPolicy, download as downloads, obtain
from rltune.traces.fetch.download import download, media_address

OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 12345\n".encode()
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in\n to continue</title></head><body>no</body></html>"
CUT = file(DATA, upto=9_000)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(downloads, "CHUNK", 500)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    site = Site()
    server = start(site)
    yield site
    site.over.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def get(site: Site, tmp_path: Path) -> Callable[..., bytes]:
    """Obtains a trace whose one file is at ``path``; its bytes, once no partial file is left."""

    def get(path: str = "data.zip", **more: Any) -> bytes:
        policy = more.pop("policy", QUICK)
        item = {"url": site.at(path) if "://" not in path else path, "file": "data.zip", **more}
        folder = obtain("d", trace_config("helios", downloads=[item]), tmp_path, tmp_path, policy)
        assert sorted(p.name for p in folder.iterdir()) == [item["file"], "manifest.json"]
        return (folder / item["file"]).read_bytes()

    return get


@pytest.fixture
def fails(get: Callable, tmp_path: Path) -> Callable[..., str]:
    """The message of a download that fails; nothing has the file's name, nor the name of a temporary one."""

    def fails(path: str = "data.zip", **more: Any) -> str:
        with pytest.raises(DataError) as error:
            get(path, **more)
        names = {p.name for p in (tmp_path / "raw" / "d").iterdir()}
        assert names <= {"data.zip.part", "data.zip.part.json"}
        text = str(error.value)
        for part in ("trace d: could not obtain data.zip; expected", "By hand: put it at", "RLTUNE_TRACE_FILES"):
            assert part in text
        assert str(tmp_path / "raw" / "d" / "data.zip") in text and "\n" not in text
        return text

    return fails


@pytest.mark.parametrize("answer", [file(DATA), file(DATA, etag=None), file(DATA, ranges=False), chunked(DATA)])
def test_a_whole_file_comes_once(answer: Callable, site: Site, get: Callable) -> None:
    site.answers["data.zip"] = answer
    assert get() == DATA and get() == DATA
    assert len(site.log) == 1 and site.log[0].range is None


@pytest.mark.parametrize("known", [True, False])
def test_a_cut_file_is_continued(known: bool, site: Site, get: Callable, capsys: Any) -> None:
    site.answers["data.zip"] = in_turn(CUT, file(DATA, upto=15_000), file(DATA))
    assert get(sha256=SHA if known else None) == DATA
    first, second, third = site.log
    assert (first.range, second.range, third.range) == (None, "bytes=9000-", "bytes=15000-")
    assert second.if_range == third.if_range == '"one"' and third.sent == 5_000
    out = capsys.readouterr().out
    assert re.search(r"downloading data.zip: 500 B of 20 kB \(2%\), .*B/s, .* left", out)
    assert "IncompleteRead(9000 bytes read, 11000 more expected)" in out and "continuing after 9 kB" in out


@times(0.4)
@given(data=st.data())
def test_whatever_the_cuts_the_bytes_are_right(data: st.DataObject, site: Site) -> None:
    content = np.random.default_rng(data.draw(st.integers(0, 99))).bytes(data.draw(st.integers(1, 6_000)))
    options = st.fixed_dictionaries({"upto": st.integers(0, len(content)), "ranges": st.booleans()})
    cuts = data.draw(st.lists(options, max_size=4))
    validators = data.draw(st.sampled_from([{}, {"etag": 'W/"weak"'}, {"etag": None, "modified": "then"}]))
    site.log.clear()
    site.answers["x"] = in_turn(*(file(content, **validators, **cut) for cut in cuts), file(content, **validators))
    checksum = hashlib.sha256(content).hexdigest()
    item = Download(url=site.at("x"), file="x", sha256=checksum if data.draw(st.booleans()) else None)
    with tempfile.TemporaryDirectory() as name:
        policy = RetryPolicy(tries=len(cuts) + 2, wait_s=0.0)
        assert download("t", item, Path(name), policy) == (checksum, site.at("x"))
        assert (Path(name) / "x").read_bytes() == content and os.listdir(name) == ["x"]
    assert len(site.log) <= len(cuts) + 1


@pytest.mark.parametrize(
    ("then", "whole", "requests"),
    [
        (file(DATA, ranges=False), DATA, 2),
        (file(OTHER, etag='"two"'), OTHER, 2),
        (file(OTHER, etag='"two"', if_range=False), OTHER, 3),
        (file(DATA + b"more", etag=None, if_range=False), DATA + b"more", 3),
        (file(DATA[:100], etag='"two"', if_range=False), DATA[:100], 3),
    ],
    ids=["no ranges", "changed", "changed, If-Range ignored", "grew", "shrank"],
)
def test_the_file_changes_between_the_parts(
    then: Callable, whole: bytes, requests: int, site: Site, get: Callable
) -> None:
    site.answers["data.zip"] = in_turn(CUT, then)
    assert get() == whole and len(site.log) == requests and site.log[-1].sent == len(whole)


def test_a_part_need_not_repeat_the_date(site: Site, get: Callable) -> None:
    """RFC 9110, 15.3.7: an answer to If-Range has none of the headers that the client has already."""
    dated = {"etag": None, "modified": "Mon, 02 Oct 2017 10:00:00 GMT", "bare": True}
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000, **dated), file(DATA, **dated))
    assert get() == DATA and len(site.log) == 2 and site.log[1].if_range == dated["modified"]


def test_starting_again_ends_unless_an_attempt_gets_further(site: Site, get: Callable, fails: Callable) -> None:
    odd = refuse(206, Content_Range="bytes 0-0/1")
    site.answers["data.zip"] = in_turn(CUT, odd, CUT, odd, file(DATA))
    assert "(3 attempts)" in fails() and len(site.log) == 3
    site.answers["data.zip"] = in_turn(
        CUT, odd, *(file(DATA, upto=upto) for upto in range(9_100, 9_600, 100)), file(DATA)
    )
    assert get() == DATA


def test_pieces_of_two_files_do_not_pass(site: Site, get: Callable) -> None:
    site.answers["data.zip"] = in_turn(file(OTHER, etag=None, upto=9_000), file(DATA, etag=None))
    assert get(sha256=SHA) == DATA, "without a validator, the known checksum is what lets it continue"
    assert [bool(r.range) for r in site.log] == [False, True, False]


@pytest.mark.parametrize("note", ["", "{broken", "[]", '{"url": "http://elsewhere/", "validator": "1"}'])
def test_a_part_of_unknown_origin_is_dropped(note: str, site: Site, get: Callable, part: Path) -> None:
    site.answers["data.zip"] = file(DATA)
    part.write_bytes(OTHER[:5_000])
    part.with_suffix(".part.json").write_text(note)
    assert get() == DATA and site.log[-1].range is None


@pytest.mark.parametrize("kept", [8_000, len(DATA)])
def test_what_an_earlier_process_left_is_continued(kept: int, site: Site, get: Callable, part: Path) -> None:
    site.answers["data.zip"] = file(DATA)
    part.write_bytes(DATA[:kept])
    note = {"url": site.at("data.zip"), "validator": '"one"', "total": len(DATA)}
    part.with_suffix(".part.json").write_text(json.dumps(note))
    assert get() == DATA and [r.range for r in site.log] == [f"bytes={kept}-"][: kept < len(DATA)]


def test_two_at_once_download_it_once(site: Site, get: Callable) -> None:
    def slowly(h: Any) -> None:
        site.over.wait(0.3)
        file(DATA)(h)

    site.answers["data.zip"] = slowly
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(lambda _: get(), range(3))) == {DATA}
    assert len(site.log) == 1


def test_the_checksum_and_the_size_are_checked(site: Site, fails: Callable) -> None:
    site.answers["data.zip"] = file(OTHER)
    text = fails(sha256=SHA)
    assert f"expected a file with sha256 {SHA}" in text and f"found sha256 {hashlib.sha256(OTHER).hexdigest()}" in text
    assert len(site.log) == 1, "a whole file that is another one will be it again"
    assert "found 20000 bytes, expected 19999" in fails(bytes=19_999)
    site.answers["data.zip"] = file(b"")
    assert "found 0 bytes, expected more" in fails()


def test_the_next_mirror_is_tried(site: Site, get: Callable, fails: Callable, tmp_path: Path) -> None:
    site.answers |= {"wrong": file(OTHER), "right": file(DATA)}
    gone = (tmp_path / "gone.zip").as_uri()
    text = fails("gone", sha256=SHA, mirrors=[gone, site.at("wrong"), "ftp://host/data.zip", "http://"])
    for reason in ("gone: answer 404 Not Found", "gone.zip: no such file", "wrong: found sha256", "kind 'ftp'"):
        assert reason in text
    site.log.clear()
    assert get("gone", sha256=SHA, mirrors=[gone, site.at("wrong"), site.at("right"), site.at("never")]) == DATA
    assert [r.path for r in site.log] == ["gone", "wrong", "right"], "an answer 404 is not asked for twice"


def test_a_dead_mirror_does_not_destroy_a_part(site: Site, get: Callable, fails: Callable) -> None:
    site.answers |= {"cut": file(DATA, upto=9_000, ranges=False), "page": file(PAGE)}
    text = fails("page", mirrors=[site.at("cut"), site.at("gone")])
    assert "11000 more expected) (3 attempts)" in text
    assert "9 kB of it are kept, and the next attempt continues after them" in text
    site.answers["cut"] = file(DATA)
    site.log.clear()
    assert get("page", mirrors=[site.at("cut")]) == DATA
    assert [r.path for r in site.log] == ["cut"] and site.log[0].range, "the address with a part comes first"


def test_a_page_or_a_git_lfs_pointer_in_place_of_the_file(
    site: Site, get: Callable, fails: Callable, monkeypatch: Any
) -> None:
    site.answers |= {"data.zip": file(PAGE, Content_Type="text/html"), "pointer": file(POINTER), "media": file(POINTER)}
    assert "found an HTML page ('Sign in to continue') in place of the file: login, quota or error" in fails()
    assert f"found a Git-LFS pointer (oid sha256:{OID}) in place of the file" in fails("pointer", bytes=20_000)
    monkeypatch.setattr(downloads, "media_address", lambda url: site.at("media"))
    site.log.clear()
    assert fails("pointer").count("found a Git-LFS pointer") == 2 and len(site.log) == 2, "tried once"
    site.answers["media"] = file(DATA)
    assert get("pointer", sha256=SHA) == DATA
    monkeypatch.undo()
    media = "https://media.githubusercontent.com/media/o/r/main/b.csv"
    for url in ("https://github.com/o/r/raw/refs/heads/main/b.csv", "https://raw.githubusercontent.com/o/r/main/b.csv"):
        assert media_address(url) == media and media_address(media) is None


def test_a_file_of_unknown_length(site: Site, get: Callable, fails: Callable) -> None:
    site.answers["data.zip"] = chunked(DATA, whole=False)
    assert re.search(r"data.zip: .* \(3 attempts\)", fails())
    site.answers["data.zip"] = file(DATA, length=False)
    assert "does not say how long it is" in fails()
    site.answers["data.zip"] = file(DATA, length=False, upto=9_000)
    assert "found 9000 bytes, expected 20000" in fails(bytes=20_000)
    site.answers["data.zip"] = file(DATA, length=False, Content_Encoding="x-gzip")
    assert get(sha256=SHA) == DATA, "bytes are kept as the server has them"


def test_no_room_is_said_before_the_download(site: Site, get: Callable, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000))
    site.answers["data.zip"] = file(DATA)
    with pytest.raises(DataError, match=r"raw/d: 1 kB free, data.zip needs 20 kB"):
        get()
    assert not (tmp_path / "raw" / "d" / "data.zip.part").exists()


def test_a_silent_connection_is_given_up_and_continued(site: Site, get: Callable, fails: Callable, capsys: Any) -> None:
    assert "http://127.0.0.1:9/data.zip: Connection refused (3 attempts)" in fails("http://127.0.0.1:9/data.zip")
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000, stall=True), file(DATA))
    assert get(policy=replace(QUICK, timeout_s=(10, 0.3))) == DATA
    assert "no byte for 0.3 s" in capsys.readouterr().out and site.log[1].range


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """Where a partial file lies."""
    folder = tmp_path / "raw" / "d"
    folder.mkdir(parents=True)
    return folder / "data.zip.part"


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits, noted instead of sat out."""
    slept: list[float] = []
    monkeypatch.setattr(downloads, "time", SimpleNamespace(sleep=slept.append))
    return slept


def test_busy_servers_are_asked_again_as_they_wish(site: Site, get: Callable, slept: list[float], capsys: Any) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    answers = (refuse(503, Retry_After="7"), refuse(429, Retry_After=date), refuse(500, Retry_After="soon"))
    site.answers["data.zip"] = in_turn(*answers, file(DATA))
    assert get(policy=RetryPolicy(wait_s=0.5)) == DATA
    assert slept[0] == 7 and 90 < slept[1] <= 100 and 0.5 * 4 * 0.5 <= slept[2] <= 0.5 * 4 * 1.5
    assert "answer 503 Service Unavailable; next attempt in 7 s" in capsys.readouterr().out


def test_waits_double_up_to_a_limit_and_longer_ones_are_refused(
    site: Site, get: Callable, fails: Callable, slept: list[float]
) -> None:
    site.answers["data.zip"] = refuse(503)
    text = fails(policy=RetryPolicy(tries=6, wait_s=1.0, longest_s=6.0))
    assert "answer 503 Service Unavailable (6 attempts)" in text and len(site.log) == 6 and len(slept) == 5
    assert all(min(6, 2**k * 0.5) <= wait <= min(6, 2**k * 1.5) for k, wait in enumerate(slept))
    site.answers |= {"data.zip": refuse(503, Retry_After="3600"), "mirror": file(DATA)}
    assert get(mirrors=[site.at("mirror")]) == DATA and len(slept) == 5
