"""Small raw files written by hand, and trace configurations to read them with."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltune.config.trace import TraceConfig

ROOT = Path(__file__).resolve().parents[2]
ZONES = {"philly": "America/Los_Angeles", "helios": "Asia/Shanghai", "alibaba2020": "Asia/Shanghai", "csv": "UTC"}


@pytest.fixture
def trace() -> Callable[..., TraceConfig]:
    """A trace configuration of a format, with any field replaced."""

    def build(format: str, **fields: Any) -> TraceConfig:
        values: dict[str, Any] = {"title": "T", "data": "own", "format": format, "path": "x"}
        values["time_zone"] = ZONES.get(format, "Europe/Berlin")
        if format == "helios":
            values["part"] = "Venus"
        if "synthetic" in fields or "downloads" in fields:
            del values["path"]
        return TraceConfig(**{**values, **fields})

    return build


@pytest.fixture
def philly_folder(tmp_path: Path) -> Callable[[list[dict[str, Any]]], Path]:
    """Writes jobs as trace-data.tar.gz into a folder."""

    def write(jobs: list[dict[str, Any]]) -> Path:
        folder = tmp_path / "philly"
        write_tar_gz(folder / "trace-data.tar.gz", {"trace-data/cluster_job_log": json.dumps(jobs)})
        return folder

    return write


def write_tar_gz(path: Path, members: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def write_zip(path: Path, members: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def write_gzip(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def make_tar() -> Callable[[Path, dict[str, str]], None]:
    return write_tar_gz


@pytest.fixture
def make_zip() -> Callable[[Path, dict[str, str]], None]:
    return write_zip


@pytest.fixture
def make_gzip() -> Callable[[Path, str], None]:
    return write_gzip
