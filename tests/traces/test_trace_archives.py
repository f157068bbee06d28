"""Damaged and hostile archives: refused by name or read whole; nothing is written, followed or blown up."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from raw_cases import BASES, FILES, FUZZ, PAI_JOBS, philly, trace_config, write_zip

from rltune.errors import DataError
from rltune.traces import progress
from rltune.traces.clean import clean_trace
from rltune.traces.raw import archive as archives
from rltune.traces.raw.archive import open_member
from rltune.traces.synthetic.archives import write_gz, write_tar_gz

ARCHIVES = {"helios": "data.zip", "philly": "trace-data.tar.gz", "alibaba2020": "pai_task_table.tar.gz"}


def pack(folder: Path, name: str, text: str | None = None) -> Path:
    """Write a format's archive."""
    text, path = BASES[name] if text is None else text, folder / ARCHIVES.get(name, FILES[name] + ".gz")
    if name in ("philly", "alibaba2020"):
        return write_tar_gz(path, {FILES[name]: text})
    return write_zip(path, {f"data/{FILES[name]}": text}) if name == "helios" else write_gz(path, text.encode())


def add(file: tarfile.TarFile, name: str, content: bytes, **fields: object) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for field, value in fields.items():
        setattr(entry, field, value)
    file.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize("name", BASES)
@FUZZ
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_whole(name, data, tmp_path):
    path = pack(tmp_path, name)
    content = path.read_bytes()
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        at = data.draw(st.integers(0, len(content) - 1))
        content = content[:at] + data.draw(st.binary(min_size=1, max_size=3)) + content[at + 1 :]
    path.write_bytes(content)
    if name == "alibaba2020":
        (tmp_path / "pai_job_table.csv").write_text(PAI_JOBS)
    try:
        clean_trace("t", trace_config(name), path if name == "csv" else tmp_path)
    except DataError as error:
        assert "\n" not in str(error) and str(tmp_path) in str(error)


def test_hostile_members_are_never_followed_nor_written(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret").write_text(philly())
    path = folder / "trace-data.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        add(file, "../../x/other", b"evil")
        add(file, "/etc/passwd", b"evil")
        add(file, "trace-data/cluster_job_log", b"", type=tarfile.SYMTYPE, linkname=str(tmp_path / "secret"))
        add(file, "b/cluster_job_log", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd")
        add(file, "c/cluster_job_log", b"", type=tarfile.FIFOTYPE)
    with pytest.raises(DataError, match="trace-data.tar.gz: holds no file cluster_job_log"):
        clean_trace("t", trace_config("philly"), folder)
    with tarfile.open(path, "w:gz") as file:
        add(file, "../../../cluster_job_log", philly().encode())  # read where it lies, so its path does no harm
    assert len(clean_trace("t", trace_config("philly"), folder).jobs) == 5
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")} == {"in", f"in/{path.name}", "secret"}


def test_a_link_in_a_zip_is_no_file(tmp_path):
    link = zipfile.ZipInfo("data/Venus/cluster_log.csv")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as file:
        file.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match="data.zip: holds no file Venus/cluster_log.csv"):
        clean_trace("t", trace_config("helios"), tmp_path)


@pytest.mark.parametrize("name", ["csv", "helios", "philly"])
def test_bombs_are_refused(name, tmp_path, monkeypatch):
    """6 MB that are all alike behind a beginning as it should be: a few kB packed."""
    text = ("[" if name == "philly" else BASES[name]) + (" " * 249 + "\n") * 25_000
    path = pack(tmp_path, name, text)
    with open_member(tmp_path, FILES[name], (path.name,)) as (stream, _):
        assert stream.read() == text.encode(), "little that is all alike is no bomb"
    monkeypatch.setattr(archives, "FREE_BYTES", 1 << 20)
    with pytest.raises(DataError, match=r"[\d.]+ kB expand to [\d.]+ MB or more; expected at most 200-fold") as error:
        clean_trace("t", trace_config(name), path if name == "csv" else tmp_path)
    assert str(tmp_path) in str(error.value)


def test_an_encrypted_or_unknown_zip_is_named(tmp_path):
    content = pack(tmp_path, "helios").read_bytes()
    for at, value in ((6, 1), (8, 99)):  # flags and method, in the member's header and in the directory
        changed = bytearray(content)
        for start in (0, content.index(b"PK\x01\x02") + 2):
            changed[start + at] = value
        (tmp_path / "data.zip").write_bytes(changed)
        with pytest.raises(DataError, match="data.zip: Venus/cluster_log.csv: cannot be unpacked"):
            clean_trace("t", trace_config("helios"), tmp_path)


def test_progress_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    path = pack(tmp_path, "philly")
    clean_trace("t", trace_config("philly"), tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert said and all(line.startswith(f"reading {path}: cluster_job_log: ") for line in said)
