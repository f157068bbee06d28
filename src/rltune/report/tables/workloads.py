"""What the traces look like: Tables 2 and 4 beside the paper's, and the load they put on the clusters."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.paper import PaperResults
from rltune.report.tables.common import data_labels

TABLE2 = {
    "jobs": ("Jobs", "per 30 days", "int"),
    "avg_wait_s": ("Mean wait", "s", "seconds"),
    "avg_run_s": ("Mean run time", "s", "seconds"),
    "arrival_per_s": ("Arrivals", "jobs/s", "number"),
    "alloc": ("Allocated GPUs, of CPU traces CPUs", "per 30 days", "int"),
}
TABLE4 = {
    "days": Column("Days", "", "int"),
    "jobs": Column("Jobs", "", "int"),
    "gpus": Column("GPUs", "", "int"),
    "nodes": Column("Nodes", "", "int"),
    "gpu_types": Column("GPU types"),
    "users": Column("Users", "", "int"),
    "run_avg_s": Column("Mean run time", "s", "seconds"),
    "run_max_days": Column("Longest run", "days", "number"),
    "scheduler": Column("Scheduler"),
    "network": Column("Network"),
}


def table2(statistics: pd.DataFrame, paper: PaperResults, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """Table 2: each trace beside the paper's row, CPU traces first.

    ``statistics``: trace, data, type (GPU or CPU), jobs_per_month, avg_wait_s, wait_is (where the waits are from, ""
    where there are none), avg_run_s, arrival_per_s, alloc (per 30 days). The frame gains `<column>_paper`, empty where
    the paper has no such trace.
    """
    rows = statistics.sort_values("type", kind="stable").reset_index(drop=True)
    frame = rows[["trace", "type", "data"]].copy()
    columns = {"trace": Column("Trace"), "type": Column("Type"), "data": Column("Data")}
    for name, (heading, unit, format) in TABLE2.items():
        frame[name] = rows["jobs_per_month"] if name == "jobs" else rows[name]
        frame[f"{name}_paper"] = [_paper_value(paper, "table2", title, name) for title in rows["trace"]]
        group = f"{heading}{f' ({unit})' if unit else ''}"
        columns[name] = Column("ours", "", format, group)
        columns[f"{name}_paper"] = Column("paper", "", format, group)
    frame["wait_is"] = rows["wait_is"]
    columns["wait_is"] = Column("Our waits are")
    artefact = Artefact(
        "table2",
        "table",
        "CPU and GPU traces over one month",
        paper_ref=paper.ref("table2"),
        caption="Jobs, waits, run times, arrivals and allocated GPUs or CPUs of each trace, normalised to 30 days, "
        "beside the paper’s figures. Waits are those the trace itself recorded; where it recorded none, those of a "
        "simulation, which says as much about its cluster as about the trace.",
        data=data_labels(rows),
        source=source,
        columns=columns,
    )
    return artefact, frame


def table4(statistics: pd.DataFrame, paper: PaperResults, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """Table 4: a row of ours and, below it, the paper's row of the same trace.

    ``statistics``: trace, data, and any of days, jobs, gpus, nodes, gpu_types, users, run_avg_s, run_max_days,
    scheduler, network. The frame has `row` (ours | paper) beside them.
    """
    rows = []
    for _, ours in statistics.iterrows():
        rows.append(
            {"trace": ours["trace"], "row": "ours", "data": ours["data"], **{c: ours[c] for c in TABLE4 if c in ours}}
        )
        name = paper.trace(ours["trace"])
        if paper.find("table4", name, "jobs") is not None:
            printed = {c: paper.find("table4", name, c) for c in TABLE4}
            rows.append(
                {
                    "trace": paper.find("table4", name, "title").text,
                    "row": "paper",
                    "data": "",
                    **{c: e.text if e.value is None else e.value for c, e in printed.items() if e is not None},
                }
            )
    frame = pd.DataFrame(rows, columns=["trace", "row", "data", *TABLE4])
    shown = {c: v for c, v in TABLE4.items() if frame[c].notna().any()}
    artefact = Artefact(
        "table4",
        "table",
        "Trace summary",
        paper_ref=paper.ref("table4"),
        caption="The traces as this run has them, and as the paper describes them. Of ours, GPUs, nodes, GPU types, "
        "scheduler and network are those published for the system the trace comes from (or, generated, imitates); the "
        "rest is measured on the rows.",
        data=data_labels(statistics),
        source=source,
        columns={"trace": Column("Trace"), "row": Column("Row"), "data": Column("Data"), **shown},
    )
    return artefact, frame


def loads(frame: pd.DataFrame, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """Offered load of each trace on each cluster.

    ``frame``: trace, cluster, gpus, load_all, load_test (requested GPU-seconds per second over GPUs), data.
    The frame gains `regime`: overloaded where the test part asks for more than the cluster has.
    """
    frame = frame.copy()
    frame["regime"] = ["overloaded" if load > 1 else "below capacity" for load in frame["load_test"]]
    artefact = Artefact(
        "loads",
        "table",
        "Offered load",
        caption="GPU-seconds requested per second, divided by the cluster’s GPUs: 1 keeps every GPU busy for ever. "
        "Above 1 the queue grows as long as jobs arrive; windows that start from an idle cluster then measure a burst, "
        "not a steady state.",
        data=data_labels(frame),
        source=source,
        columns={
            "trace": Column("Trace"),
            "cluster": Column("Cluster"),
            "data": Column("Data"),
            "gpus": Column("GPUs", "", "int"),
            "load_all": Column("Load, whole trace", "", "number"),
            "load_test": Column("Load, test part", "", "number"),
            "regime": Column("Test part is"),
        },
    )
    return artefact, frame


def _paper_value(paper: PaperResults, artefact: str, title: str, column: str) -> float:
    entry = paper.find(artefact, paper.trace(title), column)
    return float("nan") if entry is None or entry.value is None else entry.value
