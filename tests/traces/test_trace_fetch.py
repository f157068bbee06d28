"""Obtaining raw files: generated, copied from file:// addresses, downloaded manually, or named by the configuration."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest
from pydantic import ValidationError
from raw_cases import trace_config

from rltune.errors import ConfigError, DataError
from rltune.traces.fetch import files_in, obtain

SMALL = {"seed": 3, "jobs": 60}
SHA = hashlib.sha256(b"an archive").hexdigest()


def test_synthetic_is_made_once_and_again_when_it_differs(tmp_path, made):
    config = trace_config("philly", synthetic=SMALL)
    path = obtain("p", config, tmp_path, tmp_path) / "trace-data.tar.gz"
    assert path.parent == tmp_path / "raw" / "p"
    before = path.read_bytes()
    obtain("p", config, tmp_path, tmp_path)
    assert made == [("philly", 3, 60)]
    path.write_bytes(before[:100])  # damaged
    obtain("p", config, tmp_path, tmp_path)
    assert len(made) == 2 and path.read_bytes() == before
    obtain("p", trace_config("philly", synthetic={**SMALL, "seed": 4}), tmp_path, tmp_path)
    assert len(made) == 3 and path.read_bytes() != before
    (path.parent / "manifest.json").write_text("{broken")
    obtain("p", config, tmp_path, tmp_path)
    assert len(made) == 4 and path.read_bytes() == before


def test_of_other_settings_nothing_stays(tmp_path, made):
    for part in ("HPC2N", "SDSC-SP2"):
        folder = obtain("s", trace_config("swf", synthetic=SMALL, part=part), tmp_path, tmp_path)
    assert [path.name for path in folder.glob("*.gz")] == ["SDSC-SP2.swf.gz"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "server" / "data.zip"
    path.parent.mkdir()
    path.write_bytes(b"an archive")
    return path


@pytest.mark.parametrize("name", ["../data.zip", "a/data.zip", "..", ".", ""])
def test_unsafe_name(name):
    with pytest.raises(ValidationError, match="downloads.0.file"):
        trace_config("helios", downloads=[{"url": "file:///a", "file": name, "sha256": SHA}])


@pytest.fixture
def get(source: Path, tmp_path: Path) -> Callable[..., Path]:
    """Obtains the trace d with one file to download."""
    config = trace_config("helios", downloads=[{"url": source.as_uri(), "file": "data.zip", "sha256": SHA}])
    return lambda trace=config, name="d": obtain(name, trace, tmp_path, tmp_path)


def test_a_file_is_checked_against_the_checksum_that_the_configuration_has_now(get):
    get()
    stale = trace_config("helios", downloads=[{"url": "file:///a", "file": "data.zip", "sha256": "0" * 64}])
    with pytest.raises(DataError, match=f"expected sha256 {'0' * 64}"):
        get(stale)


def test_a_generated_file_is_not_taken_for_a_download(get, made, source):
    (path,) = get(trace_config("philly", synthetic=SMALL)).glob("*.gz")
    get(trace_config("philly", downloads=[{"url": source.as_uri(), "file": path.name, "sha256": SHA}]))
    assert path.read_bytes() == b"an archive"


def test_a_file_put_into_the_cache_is_used(tmp_path, get, source):
    source.unlink()
    folder = tmp_path / "raw" / "d"
    folder.mkdir(parents=True)
    (folder / "data.zip").write_bytes(b"an archive")
    (folder / "data.zip.1.part").write_bytes(b"an")
    assert get() == folder
    assert sorted(p.name for p in folder.iterdir()) == ["data.zip", "manifest.json"]


@pytest.mark.parametrize("where", ["cache", "folder"])
def test_a_wrong_manual_file_is_reported_and_left_alone(where, tmp_path, get, source, monkeypatch):
    folder = tmp_path / "raw" / "d" if where == "cache" else tmp_path / "manual"
    folder.mkdir(parents=True)
    (folder / "data.zip").write_bytes(b"an ARCHIVE")
    monkeypatch.setenv("RLTUNE_TRACE_FILES", str(tmp_path if where == "cache" else folder))
    with pytest.raises(DataError, match=f"found 10 bytes with sha256 .*, expected sha256 {SHA}") as error:
        get()
    for part in ("trace d", str(folder / "data.zip"), "left as it is", source.as_uri()):
        assert part in str(error.value)
    assert ("RLTUNE_TRACE_FILES" in str(error.value)) == (where == "folder")
    assert (folder / "data.zip").read_bytes() == b"an ARCHIVE"


def test_a_folder_of_manual_downloads(tmp_path, get, source, monkeypatch, capsys):
    source.unlink()
    own = tmp_path / "manual"
    (own / "d").mkdir(parents=True)
    (own / "data.zip").write_bytes(b"of another trace")
    (own / "d" / "data.zip").write_bytes(b"an archive")
    monkeypatch.setenv("RLTUNE_TRACE_FILES", str(own))
    folder = get()
    assert (folder / "data.zip").read_bytes() == b"an archive", "the sub-folder with the trace's name comes first"
    assert (folder / "data.zip").is_symlink() and str(own / "d" / "data.zip") in capsys.readouterr().out
    (own / "data.zip").write_bytes(b"an archive")
    assert (get(name="e") / "data.zip").resolve() == (own / "data.zip").resolve()
    monkeypatch.setenv("RLTUNE_TRACE_FILES", str(tmp_path / "typo"))
    assert get() == folder, "not needed any more"
    with pytest.raises(ConfigError, match="RLTUNE_TRACE_FILES: found .*typo.*, expected a folder"):
        get(name="f")


def test_a_cache_that_cannot_be_written_will_do(get, monkeypatch):
    folder = get()
    monkeypatch.setattr(filelock.FileLock, "acquire", lambda *_: pytest.fail("a lock is a file to be written"))
    before = {path: path.stat().st_mtime_ns for path in (folder, *folder.iterdir())}
    assert get() == folder
    assert before == {path: path.stat().st_mtime_ns for path in (folder, *folder.iterdir())}


def test_given_path(tmp_path, monkeypatch):
    def given(path: str, root: Path = tmp_path) -> Path:
        return obtain("c", trace_config("swf", path=path), tmp_path, root)

    (tmp_path / "jobs.swf").write_text("x")
    monkeypatch.setenv("MY_TRACES", str(tmp_path))
    assert given("jobs.swf") == given("${MY_TRACES}/jobs.swf", Path("/")) == tmp_path / "jobs.swf"
    with pytest.raises(DataError, match=r"config/traces/c.yaml, path: .*elsewhere/jobs.swf, and there is no such file"):
        given("elsewhere/jobs.swf")
    monkeypatch.delenv("MY_TRACES")
    with pytest.raises(ConfigError, match=r"config/traces/c.yaml, path: .*MY_TRACES, which is not set"):
        given("${MY_TRACES}/jobs.swf")


def test_a_folder_is_as_new_as_each_of_its_files(tmp_path):
    """Its own time stays where one of them is written again."""
    logs = [tmp_path / "logs" / name for name in ("a.txt", "more/b.txt")]
    for log in logs:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("jobs")
    assert files_in(tmp_path / "logs") == logs and files_in(logs[0]) == logs[:1]
