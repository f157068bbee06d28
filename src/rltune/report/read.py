"""Gather the tables a run has written, through its workspace: what tables and figures are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from rltune.config import Cell, Workspace
from rltune.errors import DataError
from rltune.files import read_json
from rltune.report.artefact import load_artefact
from rltune.report.page.contents import expected
from rltune.report.paper import PaperResults


def cells(workspace: Workspace, paper: PaperResults) -> pd.DataFrame:
    """One row a cell of the run's matrix: its name as `cell`, every axis, titles, data label.

    `trace_title` tells every trace × cluster apart; `machine` is CPU or GPU; `paper_trace` is the paper's name of the
    trace, "" where it has none.
    """
    rows = []
    titles = _titles(workspace)
    for cell in workspace.config.cells():
        trace, cluster = workspace.trace(cell.trace), workspace.cluster(cell.cluster)
        rows.append(
            {
                "cell": cell.name,
                **asdict(cell),
                "agent": workspace.config.preset(cell.preset).agent,
                "trace_title": titles[cell.trace, cell.cluster],
                "cluster_title": cluster.title,
                "machine": cluster.slots.upper(),
                "paper_trace": paper.trace(cell.trace) or paper.trace(trace.title),
                "data": trace.data,
            }
        )
    return pd.DataFrame(rows)


def windows(workspace: Workspace, of: Sequence[Cell] | None = None) -> pd.DataFrame:
    """Test results of every cell, or of those given, one row a scheduler × window, with the cell's name as `cell`.

    Raises DataError naming the first file that is missing.
    """
    return _gather(of or workspace.config.cells(), workspace.windows, pd.read_csv)


def histories(workspace: Workspace, of: Sequence[Cell] | None = None) -> pd.DataFrame:
    """Training curves of every cell, or of those given, one row an epoch, with the cell's name as `cell`. Raises as
    `windows`."""

    def read(path: Path) -> pd.DataFrame:
        frame = pd.read_csv(path)
        if "kept_epoch" not in frame:
            raise DataError(
                f"{path}: column kept_epoch: not found, an older version wrote this; delete it and train again"
            )
        return frame

    return _gather(of or workspace.config.cells(), workspace.history, read)


def jobs(
    workspace: Workspace, columns: Iterable[str] = ("role", "sequence_jobs", "wait_s", "jct_s", "bsld")
) -> pd.DataFrame:
    """Test jobs of every cell, one row a job × {agent, base}, with the cell's name as `cell`. Raises as `windows`."""
    names = list(columns)
    return _gather(workspace.config.cells(), workspace.test_jobs, lambda p: pd.read_parquet(p, columns=names))


def made(workspace: Workspace, *names: str) -> dict[str, pd.DataFrame]:
    """Id → frame of those artefacts that this run makes and that its stages have written so far; empty texts are ""."""
    there = {
        name: load_artefact(workspace.artefacts, name)
        for name in names
        if name in expected(workspace.config) and (workspace.artefacts / f"{name}.json").is_file()
    }
    return {
        name: saved.frame.fillna(dict.fromkeys(saved.frame.select_dtypes("str"), "")) for name, saved in there.items()
    }


def audits(workspace: Workspace) -> pd.DataFrame:
    """What cleaning and fitting kept and left out, one row a count.

    Columns: trace (title), cluster (title, "" for cleaning), data, stage (clean | fit), kind (read | kept | left out
    | noted), reason ("" for read and kept), rows. Raises DataError naming the first audit that is missing.
    """
    rows: list[dict[str, object]] = []
    titles = workspace.trace_titles()
    for name in workspace.config.traces():
        trace = workspace.trace(name)
        rows += _audit(workspace.clean_audit(name), trace=titles[name], cluster="", data=trace.data, stage="clean")
    for workload in workspace.config.all_workloads():
        trace, cluster = workspace.trace(workload.trace), workspace.cluster(workload.cluster)
        rows += _audit(
            workspace.fit_audit(workload.trace, workload.cluster),
            trace=titles[workload.trace],
            cluster=cluster.title,
            data=trace.data,
            stage="fit",
        )
    return pd.DataFrame(rows)


def _titles(workspace: Workspace) -> dict[tuple[str, str], str]:
    """Title of each trace × cluster: the trace's, with what tells it apart where two would be called the same."""
    names = workspace.trace_titles()
    pairs = list(dict.fromkeys((c.trace, c.cluster) for c in workspace.config.cells()))
    clusters = {trace: [c for t, c in pairs if t == trace] for trace, _ in pairs}
    return {
        (trace, cluster): f"{names[trace]} · {workspace.cluster(cluster).title}"
        if len(clusters[trace]) > 1
        else names[trace]
        for trace, cluster in pairs
    }


def _audit(path: Path, **where: str) -> list[dict[str, object]]:
    if not path.is_file():
        raise DataError(f"{path}: no such file; run the stage that prepares the trace")
    audit = read_json(path)
    counts = [("read", "", audit["rows_read"])]
    counts += [("left out", reason, rows) for reason, rows in audit.get("left_out", {}).items()]
    counts += [("kept", "", audit["rows_kept"])]
    counts += [("noted", remark, rows) for remark, rows in audit.get("noted", {}).items()]
    return [{**where, "kind": kind, "reason": reason, "rows": rows} for kind, reason, rows in counts]


def _gather(cells: Iterable[Cell], place: Callable[[Cell], Path], read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    frames = []
    for cell in cells:
        path = place(cell)
        if not path.is_file():
            raise DataError(f"{path}: no such file; train and evaluate the cell {cell.name} first")
        frame = read(path)
        frame.insert(0, "cell", cell.name)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)
