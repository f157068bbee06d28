"""Bring together what several machines made of one matrix: their cells, checked to be what this one would make.

A cell counts as another machine's result where Snakemake recorded there, for every file of its training and its
evaluation, how it was made. It is taken where those records say what this machine would record: the same parameters
(the configuration, and the digest of the sources), the same notebooks, the same jobs and estimates. What then depends
on cells (chapters, figures, report) the next run makes anew; cells it leaves alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from rltune.config import Cell, Workspace
from rltune.errors import RLTuneError
from rltune.pipeline.workflow.jobs import Job
from rltune.pipeline.workflow.launch import alone, at_work
from rltune.pipeline.workflow.snakemake import would_run

STAGES = ("train", "evaluate")
WORKLOADS = ("clean", "fit", "estimate", "baselines")
"""What cells depend on: each machine makes it for itself, so that it can be compared."""
STATE = ".snakemake"
FOLLOWS = "Input files updated by another job"
"""Snakemake's reason of a stage that only follows one that it names too."""
RELATIVE = 1e-6
"""Numbers of two machines may differ by as much; dates, names and whole numbers may not."""


class MergeError(RLTuneError):
    """Results of another machine cannot stand beside those of this one."""


@dataclass(frozen=True)
class Merged:
    """What became of the cells."""

    taken: dict[str, Path]
    """Name of each cell that was taken, and the folder it came from."""
    same: list[str]
    """Cells that were here already, with the same results."""
    kept: list[str]
    """Cells of which both had results that differ, where this machine's were to be kept."""
    left: int
    """Cells of the configuration that are still to do."""


def merge(workspace: Workspace, folders: Sequence[Path], keep: bool = False) -> Merged:
    """Take the finished cells of the configuration from projects of other machines, whose folders these are.

    Nothing is taken unless all can be. A cell that has results here already, and others there, stops it; with ``keep``
    this machine's stay.

    Raises MergeError: a folder is not a project's, a run is at work in one, or results of another configuration, of
    other sources or of other data.
    """
    with alone(workspace):
        (every,) = would_run(workspace, 1, ["--forceall"])
        mine: dict[str, list[Job]] = {}
        for job in sorted((job for job in every if job.rule in STAGES), key=lambda job: STAGES.index(job.rule)):
            mine.setdefault(job.wildcards["cell"], []).append(job)
        (todo,) = would_run(workspace, 1, [])
        undone = {job.wildcards["cell"] for job in todo if job.rule in STAGES}
        # of what is missing Snakemake wants nothing as long as all that was made of it is there
        undone |= {
            n for n, jobs in mine.items() if not all((workspace.base / o).is_file() for j in jobs for o in j.output)
        }
        taken: dict[str, Path] = {}
        same, kept, wrong = [], [], []
        for folder in folders:
            there = _project(workspace, folder)
            found = [name for name, jobs in mine.items() if _finished(there, jobs)]
            if not found:
                raise MergeError(
                    f"{there}: no finished cell of {workspace.config_path} in its {workspace.config.results}; a "
                    "share is made there with: rltune run --share 1/2 (docs/scale-out.md)"
                )
            new = [name for name in found if name in undone and name not in taken]
            for name in set(found) - set(new):
                first = taken.get(name, workspace.base)
                if _equal(first, there, workspace, workspace.config.cell(name)):
                    same.append(name)
                elif keep:
                    kept.append(name)
                else:
                    mine_too = first == workspace.base
                    differ = f"results here that differ from those in {there}"
                    wrong.append(f"cell {name}: {differ if mine_too else f'different results in {first} and {there}'}")
            wrong += _unmade(workspace, todo, new) or _differences(workspace, there, {name: mine[name] for name in new})
            taken.update(dict.fromkeys(new, there))
        if wrong:
            shown = wrong[:10] + ([f"… and {len(wrong) - 10} more"] if len(wrong) > 10 else [])
            raise MergeError(
                "\n  ".join(
                    [
                        "nothing was merged:",
                        *shown,
                        "make both sides alike (same commit, same configuration, same traces) and do what is told again on one "
                        "side; where both have a cell, --keep leaves this machine's",
                    ]
                )
            )
        for name, there in taken.items():
            _take(workspace, there, name, mine[name])
    return Merged(taken, sorted(same), sorted(kept), len(undone - set(taken)))


def _project(workspace: Workspace, folder: Path) -> Path:
    """The other machine's project (or its --base), checked."""
    there = folder.expanduser().resolve()
    if there == workspace.base:
        raise MergeError(f"{folder}: this project itself; name the folder of the other machine's project")
    results = there / workspace.config.results
    if not (results / "cells").is_dir() or not (there / STATE / "metadata").is_dir():
        raise MergeError(
            f"{folder}: expected the folder of another machine's project, with {workspace.config.results}/cells and "
            f"{STATE}/metadata in it; copy both with: rsync -a OTHER:RLTune/{{results,{STATE}}} FOLDER/"
        )
    if at_work(there) is not None:
        raise MergeError(f"{folder}: a run is at work there; merge when it has ended")
    return there


def _finished(there: Path, jobs: Sequence[Job]) -> bool:
    """Whether every file of a cell's stages is there, with the record of how it was made."""
    return all((there / out).is_file() and _record(there, out).is_file() for job in jobs for out in job.output)


def _unmade(workspace: Workspace, todo: Sequence[Job], names: Sequence[str]) -> list[str]:
    """Workloads of these cells that this machine has to make first: cells taken before that would be trained again."""
    cells = [workspace.config.cell(name) for name in names]
    first = [
        job
        for job in todo
        if job.rule in WORKLOADS
        and any(all(getattr(cell, axis) == value for axis, value in job.wildcards.items()) for cell in cells)
    ]
    if not first:
        return []
    files = [workspace.baselines(cell.trace, cell.cluster, cell.estimate) for cell in cells]
    last = dict.fromkeys(str(file.relative_to(workspace.base)) for file in files)
    named = ", ".join(job.label(workspace.config) for job in first[:4]) + (" …" if len(first) > 4 else "")
    return [f"to be made here first: {named}; with: rltune run --config {workspace.config_path} -- {' '.join(last)}"]


def _differences(workspace: Workspace, there: Path, cells: dict[str, list[Job]]) -> list[str]:
    """In what the cells are not what this machine would make."""
    wrong = [text for name, jobs in cells.items() for job in jobs for text in _job_differences(workspace, there, job)]
    for workload in dict.fromkeys((c.trace, c.cluster, c.estimate) for c in map(workspace.config.cell, cells)):
        wrong += _data_differences(workspace, there, *workload)
    if not wrong and cells:
        wrong = _parameter_differences(workspace, there, cells)
    return list(dict.fromkeys(wrong))


def _job_differences(workspace: Workspace, there: Path, job: Job) -> Iterator[str]:
    """Notebooks that differ, and files that changed there after they were used."""
    for out in job.output:
        sums = _read(there, out).get("input_checksums") or {}
        for name, recorded in sums.items():
            inside = there / name
            if name.startswith(workspace.config.results):
                if not inside.is_file() or _checksum(inside) != recorded:
                    yield f"{there / out}: made from another {name} than lies there; run it there again"
            elif _checksum(_source(workspace, name)) != recorded:
                yield f"{there / out}: made with another {Path(*Path(name).parts[-2:])} than this machine has"


def _data_differences(workspace: Workspace, there: Path, trace: str, cluster: str, estimate: str) -> Iterator[str]:
    """Whether the workload is the same on both sides."""
    files = (
        workspace.jobs(trace),
        workspace.fitted(trace, cluster),
        workspace.estimates(trace, cluster, estimate),
        workspace.baselines(trace, cluster, estimate),
    )
    for mine in files:
        theirs = there / mine.relative_to(workspace.base)
        if not mine.is_file():
            yield f"{mine}: not here, to compare with; make it: rltune run … -- --force {mine.relative_to(workspace.base)}"
        elif not theirs.is_file():
            yield f"{theirs}: no such file; copy the whole of {workspace.config.results}"
        elif not _same_rows(mine, theirs):
            yield f"{theirs}: other rows than {mine}: another trace file, or cleaned in another way"


def _parameter_differences(workspace: Workspace, there: Path, cells: dict[str, list[Job]]) -> list[str]:
    """What Snakemake would do again if these cells were here, and why: asked in a folder made for that."""
    with tempfile.TemporaryDirectory(dir=workspace.base / STATE) as scratch:
        trial = replace(workspace, base=Path(scratch))
        for shared in ("traces", "workloads"):
            (trial.results / shared).parent.mkdir(parents=True, exist_ok=True)
            (trial.results / shared).symlink_to(workspace.results / shared)
        for jobs in cells.values():
            for out in (out for job in jobs for out in job.output):
                _link(there / out, trial.base / out)
                _link(_record(there, out), _record(trial.base, out))
        wanted = [str(workspace.windows(workspace.config.cell(name)).relative_to(workspace.base)) for name in cells]
        (again,) = would_run(trial, 1, [*wanted, "--rerun-triggers", "params"])
    return [
        f"cell {job.wildcards['cell']}: {job.rule} was made with other settings or other sources: {_why(job.reason)}"
        for job in again
        if job.rule in STAGES and not job.reason.startswith(FOLLOWS)
    ]


def _why(reason: str) -> str:
    """Snakemake's reason, with there and here for before and now."""
    text = reason.split("across all output: ")[-1].strip().replace("before: ", "there ").replace(" now: ", ", here ")
    digests = re.fullmatch(r"there '[0-9a-f]{12}',? here '[0-9a-f]{12}'", text)
    return f"{text} (digests of the sources)" if digests else text


def _take(workspace: Workspace, there: Path, name: str, jobs: Sequence[Job]) -> None:
    """Copy a cell aside, then put it in its place with its records."""
    cell = workspace.config.cell(name)
    folder = workspace.policy(cell).parent
    aside = folder.with_name(f".{name[:80]}.{os.getpid()}")
    shutil.copytree(there / folder.relative_to(workspace.base), aside)
    if folder.exists():
        shutil.rmtree(folder)
    os.replace(aside, folder)
    for job in jobs:
        extra = [*job.log, *([job.benchmark] if job.benchmark else [])]
        for out in (*job.output, *extra):
            here = workspace.base / out
            if not here.is_relative_to(folder) and (there / out).is_file():
                here.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(there / out, here)
        now = time.time()
        for out in job.output:  # newer than what it was made of, and than the stage before
            os.utime(workspace.base / out, (now, now))
            path = _record(workspace.base, out)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(_as_here(workspace, _read(there, out))), encoding="utf-8")


def _as_here(workspace: Workspace, record: dict[str, Any]) -> dict[str, Any]:
    """A record with the project's own files where they are here."""

    def placed(name: str) -> str:
        return name if name.startswith(workspace.config.results) else str(_source(workspace, name))

    sums = {placed(name): value for name, value in (record.get("input_checksums") or {}).items()}
    return {**record, "input": [placed(name) for name in record["input"]], "input_checksums": sums}


def _source(workspace: Workspace, name: str) -> Path:
    """A file of the project that a record of another machine names: by its folder and name."""
    return workspace.root.joinpath(*Path(name).parts[-2:])


def _equal(first: Path, second: Path, workspace: Workspace, cell: Cell) -> bool:
    """Whether two projects have the same results of a cell."""
    path = workspace.windows(cell).relative_to(workspace.base)
    return (first / path).is_file() and _same_rows(first / path, second / path)


def _same_rows(mine: Path, theirs: Path) -> bool:
    """Whether two tables hold the same, numbers up to what two machines' arithmetic may differ by."""
    if mine.read_bytes() == theirs.read_bytes():
        return True
    first, second = map(pd.read_parquet if mine.suffix == ".parquet" else pd.read_csv, (mine, theirs))
    timed = [column for column in first if column.endswith(("_ms", "seconds"))]  # what a clock says differs always
    try:
        second = second.drop(columns=timed, errors="ignore")
        pd.testing.assert_frame_equal(first.drop(columns=timed), second, rtol=RELATIVE)
    except AssertionError:
        return False
    return True


def _link(real: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(real)


def _read(base: Path, out: str) -> dict[str, Any]:
    return json.loads(_record(base, out).read_text(encoding="utf-8"))


def _record(base: Path, out: str) -> Path:
    """Where Snakemake keeps how a file was made: its name in base 64, in pieces that a file system takes."""
    name, most = urlsafe_b64encode(out.encode()).decode(), os.pathconf("/", "PC_NAME_MAX") - 1
    pieces = [name[i : i + most] for i in range(0, len(name), most)]
    return base.joinpath(STATE, "metadata", *(f"@{piece}" for piece in pieces[:-1]), pieces[-1])


def _checksum(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}" if path.is_file() else ""
