"""Cells of two machines brought together: taken where they are what this one would make, refused otherwise."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rltune.config import Cell, Workspace
from rltune.pipeline.workflow.merge import MergeError, merge
from rltune.pipeline.workflow.snakemake import would_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def there(smoke_run: Any) -> Path:
    """The other machine's folder: a whole smoke run."""
    return smoke_run.workspace.base


@pytest.fixture
def cell(smoke_run: Any) -> Cell:
    return smoke_run.workspace.config.cells()[0]


@pytest.fixture
def here(there: Path, cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """This machine: the same run without the first cell."""
    monkeypatch.chdir(ROOT)
    base = tmp_path / "here"
    for part in ("results", ".snakemake"):
        shutil.copytree(there / part, base / part)
    workspace = Workspace.open("config/smoke.yaml", base)
    shutil.rmtree(workspace.policy(cell).parent)
    for stage in ("train", "evaluate"):
        workspace.page(stage, cell.name).unlink()
        workspace.notebook(stage, cell.name).unlink()
    return workspace


def test_a_cell_is_taken_and_only_what_depends_on_it_is_made_anew(here: Workspace, there: Path, cell: Cell) -> None:
    done = merge(here, [there])
    assert done.taken == {cell.name: there} and done.left == 0 and not done.kept
    assert sorted(done.same) == sorted(c.name for c in here.config.cells() if c != cell)
    for path in (here.policy(cell), here.windows(cell), here.notebook("train", cell.name)):
        assert path.read_bytes() == (there / path.relative_to(here.base)).read_bytes()
    (todo,) = would_run(here, 1, [])
    assert {job.rule for job in todo} == {"compare", "ablation", "semantics", "transfer", "peers", "figures", "report"}
    again = merge(here, [there])
    assert not again.taken and len(again.same) == 3


def test_other_settings_or_data_are_refused_and_nothing_is_taken(
    here: Workspace, there: Path, cell: Cell, tmp_path: Path
) -> None:
    text = (ROOT / "config" / "smoke.yaml").read_text()
    changed = tmp_path / "changed.yaml"
    changed.write_text(text.replace("bootstrap: 200", "bootstrap: 300"))
    with pytest.raises(MergeError, match="nothing was merged") as caught:
        merge(Workspace.open(str(changed), here.base), [there])
    assert f"cell {cell.name}: evaluate was made with other settings" in str(caught.value)
    assert "'bootstrap': 300" in str(caught.value)
    estimates = here.estimates(cell.trace, cell.cluster, cell.estimate)
    frame, before = pd.read_parquet(estimates), estimates.stat()
    frame.assign(estimate_s=frame["estimate_s"] + 1).to_parquet(estimates)
    os.utime(estimates, ns=(before.st_atime_ns, before.st_mtime_ns))  # Snakemake is to see no change
    with pytest.raises(MergeError, match=f"{estimates.name}: other rows than {estimates}"):
        merge(here, [there])
    estimates.unlink()
    with pytest.raises(MergeError, match=f"{estimates}: not here, to compare with; make it: "):
        merge(here, [there])
    here.jobs(cell.trace).touch()
    with pytest.raises(MergeError, match=f"to be made here first: fit {cell.trace} .*baselines"):
        merge(here, [there])
    assert not here.policy(cell).parent.exists()


def test_results_that_differ_are_told_and_never_replaced(here: Workspace, there: Path, cell: Cell) -> None:
    other = here.config.cells()[1]
    path = here.windows(other)
    frame = pd.read_csv(path)
    frame.assign(wait_s=frame["wait_s"] + 100).to_csv(path, index=False)
    mine = path.read_bytes()
    with pytest.raises(MergeError, match=f"(?s)cell {other.name}: results here that differ from those in .*--keep"):
        merge(here, [there])
    assert not here.policy(cell).parent.exists(), "nothing is taken unless all can be"
    done = merge(here, [there], keep=True)
    assert done.kept == [other.name] and list(done.taken) == [cell.name] and path.read_bytes() == mine


def test_a_folder_that_is_no_other_project_is_refused(here: Workspace, there: Path, tmp_path: Path) -> None:
    with pytest.raises(MergeError, match="expected the folder of another machine's project.*rsync"):
        merge(here, [tmp_path])
    with pytest.raises(MergeError, match="this project itself"):
        merge(here, [here.base])
    with pytest.raises(MergeError, match=r"no finished cell of config/smoke.yaml .*--share"):
        merge(replace(here, base=there), [_unrecorded(here, tmp_path)])


def _unrecorded(here: Workspace, tmp_path: Path) -> Path:
    """A project whose cells nothing is recorded of."""
    bare = tmp_path / "bare"
    shutil.copytree(here.results, bare / "results" / "smoke")
    (bare / ".snakemake" / "metadata").mkdir(parents=True)
    return bare
