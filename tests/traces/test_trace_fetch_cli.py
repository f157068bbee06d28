"""rltune trace list and rltune trace fetch."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]
FAR = """\
title: Far
data: own
format: helios
part: Venus
downloads:
  - {{url: {url}, file: data.zip, sha256: {sha}}}
  - {{url: {url}, file: more.zip, sha256: {sha}}}
licence: CC0
citation: Nobody, Nowhere
"""
NEAR = """\
title: Near
data: synthetic
format: philly
synthetic: {seed: 1, jobs: 50}
citation: Nobody, Nowhere
"""


@pytest.fixture
def far(project: Any, tmp_path: Path, made: list) -> Path:
    """The file at the far trace's address; the project's only other traces are its tiny own one and a generated one."""
    for path in project.trace.parent.glob("*.yaml"):
        if path != project.trace:
            path.unlink()
    source = tmp_path / "server.zip"
    source.write_bytes(b"an archive")
    (project.trace.parent / "far.yaml").write_text(
        FAR.format(url=source.as_uri(), sha=hashlib.sha256(b"an archive").hexdigest())
    )
    (project.trace.parent / "near.yaml").write_text(NEAR)
    return source


def cells(out: str) -> dict[str, list[str]]:
    """Name → the other columns of its line."""
    table = out.split("\n\n")[0].splitlines()
    starts = [table[0].index(word) for word in ("name", "title", "data", "format", "size", "files", "licence")]
    rows = [[line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)] for line in table]
    return {name: rest for name, *rest in rows[1:]}


def test_list(project, far, cli, tmp_path, monkeypatch):
    outcome = cli("trace", "list")
    assert outcome.status == 0 and not outcome.err
    found = cells(outcome.out)
    assert found["far"] == ["Far", "own", "helios", "unknown", "to download", "CC0"]
    assert found["near"] == ["Near", "synthetic", "philly", "unknown", "made when needed", "-"]
    assert found["tiny"][-2:] == ["there", "-"] and found["tiny"][3].endswith("kB")
    assert "cite for far, near: Nobody, Nowhere" in outcome.out
    raw = project.root / ".cache" / "traces" / "raw"
    assert not raw.exists(), "it only looks"
    (raw / "far").mkdir(parents=True)
    project.jobs.unlink()
    (raw / "far" / "data.zip").write_bytes(b"an archive")
    found = cells(cli("trace", "list").out)
    assert found["far"][4] == "1 of 2 there" and found["tiny"][3:5] == ["unknown", "not there: jobs.csv"]
    (tmp_path / "more.zip").write_bytes(b"an archive")
    monkeypatch.setenv("RLTUNE_TRACE_FILES", str(tmp_path))
    assert cells(cli("trace", "list").out)["far"][3:5] == ["20 B", "there"]


def test_fetch(project, far, cli):
    outcome = cli("trace", "fetch", "far", "near", "tiny", "far")
    assert outcome.status == 0 and not outcome.err
    raw, lines = project.root / ".cache" / "traces" / "raw", outcome.out.splitlines()
    assert f"far: 2 files, 20 B, in {raw / 'far'}, from {far.as_uri()}" in lines
    assert any(line.startswith("near: 1 file, ") and str(raw / "near") in line for line in lines)
    assert any(line.startswith("tiny: 1 file, ") and line.endswith(str(project.jobs)) for line in lines)
    far.unlink()
    again = cli("trace", "fetch", "far")
    assert again.status == 0 and len(again.out.splitlines()) == 1
    found = cells(cli("trace", "list").out)
    assert [found[name][4] for name in ("far", "near")] == ["there", "there"]
    (raw / "far" / "more.zip").write_bytes(b"AN ARCHIVE")
    cli("trace", "fetch", "far").explains(str(raw / "far" / "more.zip"), "is not the file expected")


def test_fetch_goes_on_after_a_failure_and_tells_it(project, far, cli):
    far.unlink()
    outcome = cli("trace", "fetch", "far", "near")
    outcome.explains("trace far: could not obtain data.zip", far.as_uri(), "No such file", "config/traces/far.yaml")
    assert "near: 1 file" in outcome.out


def test_an_unknown_name(project, far, cli):
    outcome = cli("trace", "fetch", "near", "farr")
    outcome.explains("'farr'", "did you mean 'far'?")
    assert "near" not in outcome.out, "nothing is fetched while a name is wrong"
