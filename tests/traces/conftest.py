"""What obtaining raw files needs."""

from pathlib import Path

import pytest

from rltune.traces.fetch import sources


@pytest.fixture(autouse=True)
def no_manual_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLTUNE_TRACE_FILES", raising=False)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """A generator of a small file for each format; (format, seed, jobs) of each call."""
    calls: list[tuple[str, int, int]] = []

    def generate(format: str, folder: Path, seed: int, jobs: int, part: str | None = None) -> list[Path]:
        names = {"philly": "trace-data.tar.gz", "helios": "data.zip", "swf": f"{part}.swf.gz"}
        calls.append((format, seed, jobs))
        (folder / names[format]).write_bytes(f"{format} {seed} {jobs}".encode() * 100)
        return [folder / names[format]]

    monkeypatch.setattr(sources, "generate", generate)
    return calls
