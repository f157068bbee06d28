"""Downloads that are cut, refused, or of something else: the right bytes, or a clear reason, whatever the server does."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fetch_server import DATA, OTHER, SHA, Site, chunked, file, in_turn, refuse
from hypothesis import given, strategies as st
from random_cases import times
from raw_cases import trace_config

from rltune.config.trace import Download
from rltune.errors import DataError
from rltune.traces import progress
from rltune.traces.fetch import download as downloads, obtain
from rltune.traces.fetch.download import download

CUT = file(DATA, upto=9_000)


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999 B"), (999_400, "999 kB"), (999_600, "1 MB"), (36_400_000, "36.4 MB"), (2e12, "2 TB")]
)
def test_sizes_have_three_digits(size, text):
    assert progress.size_text(size) == text


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name, value in {"CHUNK": 500, "TRIES": 3, "WAIT_S": 0.0, "TIMEOUT_S": 10.0}.items():
        monkeypatch.setattr(downloads, name, value)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    site = Site()
    yield site
    site.over.set()
    site.shutdown()
    site.server_close()


@pytest.fixture
def get(site: Site, tmp_path: Path) -> Callable[..., bytes]:
    """Obtains a trace whose one file is at ``path``; its bytes, once no partial file is left."""

    def get(path: str = "data.zip", **more: Any) -> bytes:
        item = {"url": site.at(path) if "://" not in path else path, "file": "data.zip", "sha256": SHA, **more}
        folder = obtain("d", trace_config("helios", downloads=[item]), tmp_path, tmp_path)
        assert sorted(p.name for p in folder.iterdir()) == [item["file"], "manifest.json"]
        return (folder / item["file"]).read_bytes()

    return get


@pytest.fixture
def fails(get: Callable, tmp_path: Path) -> Callable[..., str]:
    """The message of a download that fails; nothing has the file's name."""

    def fails(path: str = "data.zip", **more: Any) -> str:
        with pytest.raises(DataError) as error:
            get(path, **more)
        assert all(p.suffix == ".part" for p in (tmp_path / "raw" / "d").iterdir())
        text = str(error.value)
        for part in ("trace d: could not obtain data.zip, sha256", "Manually: put it at", "RLTUNE_TRACE_FILES"):
            assert part in text
        assert str(tmp_path / "raw" / "d" / "data.zip") in text and "\n" not in text
        return text

    return fails


@pytest.mark.parametrize("answer", [file(DATA), file(DATA, ranges=False), file(DATA, length=False), chunked(DATA)])
def test_a_whole_file_comes_once(answer, site, get):
    site.answers["data.zip"] = answer
    assert get() == DATA and get() == DATA
    assert len(site.log) == 1 and site.log[0].range is None


def test_a_cut_file_is_continued(site, get, capsys):
    site.answers["data.zip"] = in_turn(CUT, file(DATA, upto=15_000), file(DATA))
    assert get() == DATA
    assert [r.range for r in site.log] == [None, "bytes=9000-", "bytes=15000-"] and site.log[2].sent == 5_000
    out = capsys.readouterr().out
    assert re.search(r"downloading data.zip: 500 B of 20 kB \(2%\), .*B/s, .* left", out)
    assert "the connection ended after 9,000 of 20,000 bytes" in out and "continuing after 9 kB" in out


@times(0.4)
@given(data=st.data())
def test_whatever_the_cuts_the_bytes_are_right(data, site, monkeypatch):
    monkeypatch.setattr(downloads, "TRIES", 6)
    content = np.random.default_rng(data.draw(st.integers(0, 99))).bytes(data.draw(st.integers(1, 6_000)))
    options = st.fixed_dictionaries(
        {"upto": st.integers(0, len(content)), "ranges": st.booleans(), "length": st.booleans()}
    )
    cuts = data.draw(st.lists(options, max_size=4))
    site.log.clear()
    site.answers["x"] = in_turn(*(file(content, **cut) for cut in cuts), file(content))
    item = Download(url=site.at("x"), file="x", sha256=hashlib.sha256(content).hexdigest())
    with tempfile.TemporaryDirectory() as name:
        assert download("t", item, Path(name)) == site.at("x")
        assert (Path(name) / "x").read_bytes() == content and os.listdir(name) == ["x"]
    assert len(site.log) <= len(cuts) + 1


@pytest.mark.parametrize("kept", [OTHER[:9_000], OTHER, DATA + b"more"], ids=["a part", "as long", "longer"])
def test_pieces_of_two_files_do_not_pass(kept, site, get, part):
    """What an earlier process left was of another file, or the file has changed since."""
    site.answers["data.zip"] = file(DATA)
    part.write_bytes(kept)
    assert get() == DATA and [bool(r.range) for r in site.log] == [True, False]


def test_another_file_over_a_bad_line_is_given_up(site, fails):
    """It is cut, continued, wrong as a whole, begun again, and so on."""
    site.answers["data.zip"] = in_turn(*([file(OTHER, upto=9_000), file(OTHER)] * 9))
    assert "(3 attempts)" in fails() and len(site.log) < 6


def test_a_dead_address_leaves_the_part_from_another_alone(site, get, fails):
    site.answers |= {"dead": file(b"moved"), "cut": in_turn(CUT, refuse(404))}
    assert "9 kB of it are kept, and the next attempt continues after them" in fails("dead", mirrors=[site.at("cut")])
    site.answers["cut"] = file(DATA)
    site.log.clear()
    assert get("dead", mirrors=[site.at("cut")]) == DATA and site.log[-1].range == "bytes=9000-"


@pytest.mark.parametrize("kept", [8_000, len(DATA)])
def test_what_an_earlier_process_left_is_continued(kept, site, get, part):
    site.answers["data.zip"] = file(DATA)
    part.write_bytes(DATA[:kept])
    assert get() == DATA and [(r.range, r.sent) for r in site.log] == [(f"bytes={kept}-", len(DATA) - kept)]


def test_two_at_once_download_it_once(site, get):
    def slowly(h: Any) -> None:
        site.over.wait(0.3)
        file(DATA)(h)

    site.answers["data.zip"] = slowly
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(lambda _: get(), range(3))) == {DATA}
    assert len(site.log) == 1


def test_another_file_is_refused_at_once(site, fails):
    site.answers["data.zip"] = file(OTHER)
    text = fails()
    assert f"found 20,000 bytes with sha256 {hashlib.sha256(OTHER).hexdigest()}, expected sha256 {SHA}" in text
    assert len(site.log) == 1, "a whole file that is another one will be it again"
    site.answers["data.zip"] = file(b"<html>", Content_Type="text/html; charset=utf-8")
    assert "found a web page in place of the file: login, quota or error" in fails()


def test_the_next_mirror_is_tried(site, get, fails, tmp_path):
    site.answers |= {"wrong": file(OTHER), "right": file(DATA)}
    gone = (tmp_path / "gone.zip").as_uri()
    text = fails("gone", mirrors=[gone, site.at("wrong"), "http://", "http://[x"])
    for reason in (
        "gone: answer 404 Not Found",
        "No such file or directory",
        "wrong: found 20,000 bytes",
        "no host",
        "no address: ",
    ):
        assert reason in text
    site.log.clear()
    assert get("gone", mirrors=[gone, site.at("wrong"), site.at("right"), site.at("never")]) == DATA
    assert [r.path for r in site.log] == ["gone", "wrong", "right"], "an answer 404 is not asked for twice"


def test_no_room_is_said_before_the_download(site, get, monkeypatch, tmp_path):
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000))
    site.answers["data.zip"] = file(DATA)
    with pytest.raises(DataError, match=r"raw/d: 1 kB free, data.zip needs 20 kB"):
        get()
    assert not (tmp_path / "raw" / "d" / "data.zip.1.part").exists()


def test_a_silent_connection_is_given_up_and_continued(site, get, fails, capsys, monkeypatch):
    assert re.search(r"127.0.0.1:9/data.zip: .*Connection refused \(3 attempts\)", fails("http://127.0.0.1:9/data.zip"))
    site.answers["data.zip"] = in_turn(file(DATA, upto=9_000, stall=True), file(DATA))
    monkeypatch.setattr(downloads, "TIMEOUT_S", 0.3)
    assert get() == DATA
    assert "timed out; next attempt" in capsys.readouterr().out and site.log[1].range


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """Where a partial file lies."""
    folder = tmp_path / "raw" / "d"
    folder.mkdir(parents=True)
    return folder / "data.zip.1.part"


def test_waits_double_while_an_attempt_brings_nothing(site, get, fails, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(downloads, "time", SimpleNamespace(sleep=slept.append))
    site.answers["data.zip"] = refuse(503)
    monkeypatch.setattr(downloads, "TRIES", 6)
    monkeypatch.setattr(downloads, "WAIT_S", 1.0)
    assert "answer 503 Service Unavailable (6 attempts)" in fails() and len(site.log) == 6
    assert all(2**k * 0.5 <= wait <= 2**k * 1.5 for k, wait in enumerate(slept)) and len(slept) == 5
    further = [file(DATA, upto=upto) for upto in range(100, 1_000, 100)]
    site.answers["data.zip"] = in_turn(*further, file(DATA))
    assert get() == DATA, "each gets further"
