"""A server to download from, and downloads that succeed or fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fetch_server import QUICK, Site, start

from rltune.errors import DataError
from rltune.traces import progress
from rltune.traces.fetch import download as downloads, obtain


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("RLTUNE_TRACE_FILES", raising=False)
    monkeypatch.setattr(downloads, "CHUNK", 500)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    site = Site()
    server = start(site)
    yield site
    site.over.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def get(site: Site, tmp_path: Path, trace: Callable) -> Callable[..., bytes]:
    """Obtains a trace whose one file is at ``path``; its bytes, once no partial file is left."""

    def get(path: str = "data.zip", **more: Any) -> bytes:
        policy = more.pop("policy", QUICK)
        item = {"url": site.at(path) if "://" not in path else path, "file": "data.zip", **more}
        folder = obtain("d", trace("helios", downloads=[item]), tmp_path, tmp_path, policy)
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
