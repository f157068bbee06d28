"""The traces: Tables 2 and 4 next to the paper's, and the load they put on the clusters."""

import pandas as pd

from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.paper import PaperResults

TABLE2 = ("jobs", "avg_wait_s", "avg_run_s", "arrival_per_s", "alloc")
TABLE4 = ("days", "jobs", "gpus", "nodes", "gpu_types", "users", "run_avg_s", "run_max_days", "scheduler", "network")


def table2(statistics: pd.DataFrame, paper: PaperResults) -> Table:
    """Table 2: each trace next to the paper's row, CPU traces first.

    ``statistics``: trace, data, type (GPU or CPU), jobs_per_month, avg_wait_s, wait_is (where the waits are from, ""
    where there are none), avg_run_s, arrival_per_s, alloc (per 30 days). The frame gains `<column>_paper`, empty where
    the paper has no such trace.
    """
    rows = statistics.sort_values("type", kind="stable").reset_index(drop=True)
    frame = rows[["trace", "type", "data"]].copy()
    for name in TABLE2:
        frame[name] = rows["jobs_per_month"] if name == "jobs" else rows[name]
        frame[f"{name}_paper"] = [
            paper.number("table2", paper.trace(title, data), name) for title, data in zip(rows["trace"], rows["data"])
        ]
    frame["wait_is"] = rows["wait_is"]
    return describe("table2", frame, paper), frame


def table4(statistics: pd.DataFrame, paper: PaperResults) -> Table:
    """Table 4: a row of ours and, below it, the paper's row of the same trace.

    ``statistics``: trace, data, and any of TABLE4. The frame has `row` (ours | paper) too.
    """
    rows = []
    for _, ours in statistics.iterrows():
        rows.append({**ours, "row": "ours"})
        name = paper.trace(ours["trace"], ours["data"])
        if (title := paper.find("table4", name, "title")) is not None:
            printed = {c: e for c in TABLE4 if (e := paper.find("table4", name, c)) is not None}
            values = {c: e.text if e.value is None else e.value for c, e in printed.items()}
            rows.append({"trace": title.text, "row": "paper", "data": "", **values})
    frame = pd.DataFrame(rows, columns=["trace", "row", "data", *TABLE4])
    return describe("table4", frame, paper, rows=statistics), frame


def loads(frame: pd.DataFrame) -> Table:
    """Offered load of each trace on each cluster.

    ``frame``: trace, cluster, gpus, load_all, load_test (requested GPU-seconds per second over GPUs), data.
    The frame gains `regime`: overloaded where the test part asks for more than the cluster has.
    """
    frame = frame.assign(regime=(frame["load_test"] > 1).map({True: "overloaded", False: "below capacity"}))
    return describe("loads", frame), frame


def estimates(frame: pd.DataFrame) -> Table:
    """Accuracy of each kind of estimate on each trace.

    ``frame``: trace, data, estimate, jobs, modelled, and the columns of rltune.traces.estimates.accuracy.
    """
    return describe("estimates", frame), frame


def audits(counts: pd.DataFrame) -> Table:
    """Rows kept and left out in cleaning a trace and in fitting it to a cluster: one row per count.

    ``counts`` as `report.read.audits` gives it; the frame gains its share of the rows read in the same step, and
    `unaccounted`: rows of the step that are neither kept nor left out.
    """
    step = ["trace", "cluster", "stage"]
    sums = counts.pivot_table(index=step, columns="kind", values="rows", aggfunc="sum", fill_value=0, sort=False)
    sums = sums.reindex(columns=["read", "kept", "left out"], fill_value=0)
    gaps = (sums["read"] - sums["kept"] - sums["left out"]).rename("unaccounted")
    frame = counts.join(sums["read"].rename("of"), on=step).join(gaps, on=step)
    frame["share"] = (frame["rows"] / frame["of"]).where(frame["of"] > 0)
    frame["step"] = frame["stage"].map({"clean": "cleaning", "fit": "fit to cluster"})
    gaps = frame[frame["unaccounted"] != 0].drop_duplicates(step)
    return describe("audits", frame, gaps=gaps.to_dict("records")), frame.drop(columns="of")
