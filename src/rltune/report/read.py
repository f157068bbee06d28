"""Read the results of a run's stages, from which tables and figures are made.

Paths of a cell's files come in the order of ``run.config.cells()``, or of the ``cells`` given; each frame gets the
cell's name as its first column, `cell`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from rltune.config.cells import Cell
from rltune.config.context import Run
from rltune.files import read_json
from rltune.report.artefact import load_artefact
from rltune.report.common import planned_cells
from rltune.report.paper import PaperResults
from rltune.traces.audit import Audit

Paths = Iterable[str | Path]


def cells(run: Run, paper: PaperResults) -> pd.DataFrame:
    """One row per cell: its name as `cell`, every axis, titles and the kind of data.

    `trace_title` tells every trace × cluster apart; `machine` is CPU or GPU; `paper_trace` is the paper's name of the
    trace, "" where it has none.
    """
    cells = planned_cells(run.config)
    traces, clusters = [run.traces[n] for n in cells["trace"]], [run.clusters[n] for n in cells["cluster"]]
    return cells.assign(
        trace_title=list(map(_titles(run).get, zip(cells["trace"], cells["cluster"]))),
        cluster_title=[cluster.title for cluster in clusters],
        machine=[cluster.slots.upper() for cluster in clusters],
        paper_trace=[
            paper.trace(name, trace.data) or paper.trace(trace.title, trace.data)
            for name, trace in zip(cells["trace"], traces)
        ],
        data=[trace.data for trace in traces],
    )


def results(run: Run, paths: Paths, cells: Sequence[Cell] | None = None) -> pd.DataFrame:
    """The tables (CSV) of all cells: test results, a row per scheduler × window; training curves, a row per epoch; or
    placement questions solved twice, a row per question."""
    return _gather(run, paths, pd.read_csv, cells)


def jobs(
    run: Run, paths: Paths, columns: Sequence[str] = ("role", "sequence_jobs", "wait_s", "jct_s", "bsld")
) -> pd.DataFrame:
    """Test jobs, one row per job × {agent, base}."""
    return _gather(run, paths, partial(pd.read_parquet, columns=list(columns)), None)


def made(paths: Paths) -> dict[str, pd.DataFrame]:
    """Id → frame of artefacts by their CSV files; empty texts are "" in columns that hold any text, NaN elsewhere."""
    frames = {path.stem: load_artefact(path.parent, path.stem).frame for path in map(Path, paths)}
    return {name: frame.fillna(dict.fromkeys(frame.select_dtypes("str"), "")) for name, frame in frames.items()}


def audits(run: Run, clean_paths: Paths, fit_paths: Paths) -> pd.DataFrame:
    """What cleaning and fitting kept and left out, one row per count.

    ``clean_paths`` in the order of `run.config.traces()`, ``fit_paths`` of `run.config.all_workloads()`. Columns: trace
    (title), cluster (title, "" for cleaning), data, stage (clean | fit), kind (read | kept | left out | noted), reason
    ("" for read and kept), rows.
    """
    titles = run.trace_titles()
    steps = [(name, "", "clean") for name in run.config.traces()]
    steps += [(w.trace, run.clusters[w.cluster].title, "fit") for w in run.config.all_workloads()]
    frames = []
    for (trace, cluster, stage), path in zip(steps, [*clean_paths, *fit_paths], strict=True):
        about = {"trace": titles[trace], "cluster": cluster, "data": run.traces[trace].data, "stage": stage}
        counts = Audit(**read_json(Path(path))).to_frame().drop(columns="share")
        frames.append(pd.DataFrame([about]).merge(counts, how="cross"))
    return pd.concat(frames, ignore_index=True)


def _titles(run: Run) -> dict[tuple[str, str], str]:
    """Title of each trace × cluster: the trace's, with the cluster's where it is not the trace's first."""
    names, titles = run.trace_titles(), {}
    first: dict[str, str] = {}
    for cell in run.config.cells():
        other = first.setdefault(cell.trace, cell.cluster) != cell.cluster
        titles[cell.trace, cell.cluster] = names[cell.trace] + f" · {run.clusters[cell.cluster].title}" * other
    return titles


def _gather(run: Run, paths: Paths, read: Callable[[Path], pd.DataFrame], cells: Sequence[Cell] | None) -> pd.DataFrame:
    found = {cell.name: read(Path(path)) for cell, path in zip(cells or run.config.cells(), paths, strict=True)}
    return pd.concat(found, names=["cell"]).reset_index("cell").reset_index(drop=True)
