"""Obtaining raw files: generated, downloaded (from file:// addresses, so no network), or given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rltune.errors import ConfigError, DataError
from rltune.traces import fetch
from rltune.traces.fetch import expand, fingerprint, obtain, sha256

SMALL = {"seed": 3, "jobs": 60}


def test_synthetic_is_made_once_and_again_when_it_differs(tmp_path: Path, trace: Callable, monkeypatch) -> None:
    calls = []
    real = fetch.generate
    monkeypatch.setattr(fetch, "generate", lambda *a: calls.append(a) or real(*a))
    config = trace("philly", synthetic=SMALL)
    folder = obtain("p", config, tmp_path, tmp_path)
    assert folder == tmp_path / "raw" / "p"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["seed"] == 3 and manifest["jobs"] == 60
    assert manifest["files"] == {"trace-data.tar.gz": sha256(folder / "trace-data.tar.gz")}
    before = (folder / "trace-data.tar.gz").read_bytes()
    obtain("p", config, tmp_path, tmp_path)
    assert len(calls) == 1
    (folder / "trace-data.tar.gz").write_bytes(before[:100])  # damaged
    obtain("p", config, tmp_path, tmp_path)
    assert len(calls) == 2 and (folder / "trace-data.tar.gz").read_bytes() == before
    obtain("p", trace("philly", synthetic={**SMALL, "seed": 4}), tmp_path, tmp_path)
    assert len(calls) == 3 and (folder / "trace-data.tar.gz").read_bytes() != before
    (folder / "manifest.json").write_text("{broken")
    obtain("p", config, tmp_path, tmp_path)
    assert len(calls) == 4 and (folder / "trace-data.tar.gz").read_bytes() == before


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "server" / "data.zip"
    path.parent.mkdir()
    path.write_bytes(b"an archive")
    return path


def test_download_with_checksum_and_mirror(tmp_path: Path, trace: Callable, source: Path) -> None:
    checksum = hashlib.sha256(b"an archive").hexdigest()
    item = {"url": (tmp_path / "gone.zip").as_uri(), "file": "data.zip", "sha256": checksum, "bytes": 10,
            "mirrors": [source.as_uri()]}
    folder = obtain("d", trace("helios", downloads=[item]), tmp_path, tmp_path)
    assert (folder / "data.zip").read_bytes() == b"an archive"
    source.unlink()
    assert obtain("d", trace("helios", downloads=[item]), tmp_path, tmp_path) == folder  # not fetched again


def test_wrong_checksum_says_what_came_and_what_to_do(tmp_path: Path, trace: Callable, source: Path) -> None:
    item = {"url": source.as_uri(), "file": "data.zip", "sha256": "0" * 64}
    with pytest.raises(DataError) as error:
        obtain("d", trace("helios", downloads=[item]), tmp_path, tmp_path)
    text = str(error.value)
    came = hashlib.sha256(b"an archive").hexdigest()
    for part in ("trace d", "data.zip", "0" * 64, came, "By hand", source.as_uri()):
        assert part in text
    assert "\n" not in text
    assert not (tmp_path / "raw" / "d" / "data.zip").exists()


def test_wrong_size_and_unsafe_name(tmp_path: Path, trace: Callable, source: Path) -> None:
    item = {"url": source.as_uri(), "file": "data.zip", "bytes": 11}
    with pytest.raises(DataError, match="10 bytes came, expected 11"):
        obtain("d", trace("helios", downloads=[item]), tmp_path, tmp_path)
    item = {"url": source.as_uri(), "file": "../data.zip"}
    with pytest.raises(ConfigError, match="plain file name"):
        obtain("e", trace("helios", downloads=[item]), tmp_path, tmp_path)


def test_unknown_checksum_is_recorded_and_then_holds(tmp_path: Path, trace: Callable, source: Path) -> None:
    config = trace("helios", downloads=[{"url": source.as_uri(), "file": "data.zip"}])
    folder = obtain("d", config, tmp_path, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["files"]["data.zip"] == hashlib.sha256(b"an archive").hexdigest()
    (folder / "data.zip").write_bytes(b"altered")
    source.write_bytes(b"another archive")
    with pytest.raises(DataError, match="could not obtain data.zip"):
        obtain("d", config, tmp_path, tmp_path)


def test_file_put_there_by_hand_is_used(tmp_path: Path, trace: Callable) -> None:
    item = {"url": (tmp_path / "gone.zip").as_uri(), "file": "data.zip"}
    folder = tmp_path / "raw" / "d"
    folder.mkdir(parents=True)
    (folder / "data.zip").write_bytes(b"by hand")
    assert obtain("d", trace("helios", downloads=[item]), tmp_path, tmp_path) == folder


def test_given_path(tmp_path: Path, trace: Callable, monkeypatch) -> None:
    (tmp_path / "jobs.csv").write_text("x")
    columns = {"submit_s": "t", "run_s": "r", "gpus": "g"}
    assert obtain("c", trace("csv", columns=columns, path="jobs.csv"), tmp_path, tmp_path) == tmp_path / "jobs.csv"
    monkeypatch.setenv("MY_TRACES", str(tmp_path))
    config = trace("csv", columns=columns, path="${MY_TRACES}/jobs.csv")
    assert obtain("c", config, tmp_path, Path("/")) == tmp_path / "jobs.csv"
    monkeypatch.delenv("MY_TRACES")
    with pytest.raises(ConfigError, match=r"config/traces/c.yaml, path: .*MY_TRACES, which is not set"):
        obtain("c", config, tmp_path, tmp_path)
    config = trace("csv", columns=columns, path="${MY_TRACES:-elsewhere}/jobs.csv")
    with pytest.raises(DataError, match=r"config/traces/c.yaml, path: .*elsewhere/jobs.csv, and there is no such file"):
        obtain("c", config, tmp_path, tmp_path)


def test_the_fingerprint_follows_the_file(tmp_path: Path, trace: Callable, monkeypatch) -> None:
    columns = {"submit_s": "t", "run_s": "r", "gpus": "g"}
    config = trace("csv", columns=columns, path="${MY_TRACES}/jobs.csv")
    monkeypatch.delenv("MY_TRACES", raising=False)
    assert fingerprint(config, tmp_path) == "${MY_TRACES}/jobs.csv", "obtaining the file explains what is wrong"
    monkeypatch.setenv("MY_TRACES", str(tmp_path))
    assert fingerprint(config, tmp_path) == "${MY_TRACES}/jobs.csv"
    seen = set()
    for text in ("x", "xx"):
        (tmp_path / "jobs.csv").write_text(text)
        seen.add(fingerprint(config, tmp_path))
    assert len(seen) == 2 and all(str(tmp_path) in mark for mark in seen)
    assert fingerprint(trace("helios", synthetic={"seed": 1, "jobs": 10}), tmp_path) == ""


def test_expand(monkeypatch) -> None:
    monkeypatch.setenv("A", "1")
    monkeypatch.delenv("B", raising=False)
    assert expand("${A}/${B:-2}/${B:-}/$A", "key") == "1/2//$A"
