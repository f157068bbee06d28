"""Files appear whole or not at all."""

from pathlib import Path

import pytest

from rltune.files import atomic_write


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_the_final_name_appears_only_when_all_is_written(tmp_path):
    path = tmp_path / "deep" / "er" / "table.parquet"
    with atomic_write(path) as temporary:
        temporary.write_text("half")
        assert not path.exists() and temporary.suffix == ".parquet" and temporary.name.startswith(".")
    assert path.read_text() == "half" and names(path.parent) == ["table.parquet"]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and names(tmp_path) == ["table.csv"]
