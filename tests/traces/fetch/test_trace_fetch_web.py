"""Downloads of what is not the file that was asked for, or not in one place: the right bytes or a clear reason."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fetch_cases import DATA, OID, OTHER, PAGE, POINTER, SHA
from fetch_server import Site, chunked, file

from rltune.errors import DataError
from rltune.traces.fetch import download as downloads
from rltune.traces.fetch import web
from rltune.traces.fetch.addresses import media_address


@pytest.mark.parametrize("answer", [file(DATA), file(DATA, etag=None), file(DATA, ranges=False), chunked(DATA)])
def test_a_whole_file(answer: Callable, site: Site, get: Callable, capsys: Any) -> None:
    site.answers["data.zip"] = answer
    assert get() == DATA and get() == DATA
    assert len(site.log) == 1 and site.log[0].range is None
    assert f"sha256 {SHA} is recorded" in capsys.readouterr().out


def test_the_checksum_and_the_size_are_checked(site: Site, get: Callable, fails: Callable) -> None:
    site.answers["data.zip"] = file(OTHER)
    text = fails(sha256=SHA)
    assert f"expected a file with sha256 {SHA}" in text and f"found sha256 {hashlib.sha256(OTHER).hexdigest()}" in text
    assert len(site.log) == 1, "a whole file that is another one will be it again"
    text = fails(bytes=19_999)
    assert "expected 19999 bytes (no checksum is known)" in text and "found 20000 bytes, expected 19999" in text
    assert site.log[-1].sent == 20_000 and not list(Path().glob("data.zip*"))
    site.answers["data.zip"] = file(DATA)
    assert get(sha256=SHA, bytes=20_000) == DATA


def test_the_next_mirror_is_tried(site: Site, get: Callable, fails: Callable, tmp_path: Path) -> None:
    site.answers |= {"wrong": file(OTHER), "right": file(DATA)}
    mirrors = [(tmp_path / "gone.zip").as_uri(), site.at("wrong"), site.at("right"), site.at("never")]
    assert get("gone", sha256=SHA, mirrors=mirrors) == DATA
    assert [r.path for r in site.log] == ["gone", "wrong", "right"], "an answer 404 is not asked for twice"
    for path in (tmp_path / "raw" / "d").iterdir():
        path.unlink()
    text = fails("gone", sha256=SHA, mirrors=[*mirrors[:2], "ftp://host/data.zip", "http://"])
    for part in ("gone: answer 404 Not Found", "gone.zip: no such file", "wrong: found sha256", "kind 'ftp'"):
        assert part in text


def test_a_git_lfs_pointer_is_told_and_the_file_it_stands_for_is_tried(
    site: Site, get: Callable, fails: Callable, monkeypatch: Any
) -> None:
    site.answers |= {"data.zip": file(POINTER), "media": file(DATA)}
    text = fails(bytes=20_000)
    assert f"found a Git-LFS pointer (oid sha256:{OID}, size 12345) in place of the file" in text
    monkeypatch.setattr(downloads, "media_address", lambda url: site.at("media"))
    site.log.clear()
    assert get(sha256=SHA) == DATA
    assert [r.path for r in site.log] == ["data.zip", "media"]


def test_the_media_address_is_tried_once(site: Site, fails: Callable, monkeypatch: Any) -> None:
    site.answers |= {"data.zip": file(POINTER), "media": file(POINTER)}
    monkeypatch.setattr(downloads, "media_address", lambda url: site.at("media"))
    assert fails().count("found a Git-LFS pointer") == 2 and len(site.log) == 2


def test_media_addresses() -> None:
    media = "https://media.githubusercontent.com/media/o/r/"
    assert media_address("https://github.com/o/r/raw/master/a/b.tar.gz") == media + "master/a/b.tar.gz"
    assert media_address("https://github.com/o/r/raw/refs/heads/main/b") == media + "main/b"
    assert media_address("https://raw.githubusercontent.com/o/r/main/b.csv") == media + "main/b.csv"
    for other in ("https://github.com/o/r/blob/main/b", "https://example.org/o/r/raw/main/b", media + "main/b"):
        assert media_address(other) is None


def test_a_page_in_place_of_the_file(site: Site, fails: Callable) -> None:
    site.answers["data.zip"] = file(PAGE, Content_Type="text/html")
    text = fails()
    assert "found an HTML page ('Sign in to continue') in place of the file: login, quota or error" in text
    assert len(site.log) == 1


def test_a_file_of_unknown_length(site: Site, get: Callable, fails: Callable) -> None:
    site.answers["data.zip"] = chunked(DATA, whole=False)
    assert "the connection ended before the file did (3 attempts)" in fails()
    site.answers["data.zip"] = file(DATA, length=False)
    assert "does not say how long it is" in fails()
    site.answers["data.zip"] = file(DATA, length=False, upto=9_000)
    assert "found 9000 bytes, expected 20000" in fails(bytes=20_000)
    site.answers["data.zip"] = file(DATA, length=False)
    assert get(sha256=SHA) == DATA


def test_an_empty_file_is_none(site: Site, fails: Callable) -> None:
    site.answers["data.zip"] = file(b"")
    assert "found 0 bytes, expected more" in fails()


def test_bytes_are_kept_as_the_server_has_them(site: Site, get: Callable, fails: Callable) -> None:
    """Some servers call a .gz file a compressed transfer of what is in it."""
    packed = gzip.compress(DATA)
    site.answers["jobs"] = file(packed, Content_Encoding="x-gzip")
    assert "came compressed (x-gzip)" in fails("jobs")
    assert get("jobs", file="jobs.swf.gz") == packed


def test_no_room_is_said_before_the_download(site: Site, get: Callable, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(web.shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000))
    site.answers["data.zip"] = file(DATA)
    with pytest.raises(DataError, match=r"raw/d: 1 kB free, data.zip needs 20 kB"):
        get()
    assert not (tmp_path / "raw" / "d" / "data.zip.part").exists()
