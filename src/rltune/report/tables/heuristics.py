"""Every simple heuristic on the test windows, beside what no schedule can go below."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.common import data_labels, lengths, where

BLOCKING_TITLE = {
    "none": "Nothing", "fits": "What fits", "easy": "EASY", "conservative": "Conservative",
}
BOUND = "no schedule below"


def heuristics(cells: pd.DataFrame, windows: pd.DataFrame, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """One row a trace × window length × policy, a column a blocking rule: mean wait in s; one row a lower bound.

    ``cells`` and ``windows`` as `report.read` gives them; baselines are the same for all cells of a trace, cluster,
    estimate and locality. The frame has `policy` (its name, or "bound"), `title`, `windows`, `best` (the smallest of
    the row) and the blocking rules.
    """
    rows = []
    keys = ["trace_title", "data", "estimate", "locality"]
    for values, group in cells.groupby(keys, sort=False):
        own = where(windows, cell=group["cell"].iloc[0], role="baseline", locality=values[-1])
        for n in lengths(own):
            rows += [{**dict(zip(keys, values, strict=True)), "sequence_jobs": n, **row} for row in _rows(own, n)]
    frame = pd.DataFrame(rows)
    rules = [b for b in BLOCKING_TITLE if b in frame]
    columns = {
        "trace_title": Column("Trace"),
        **{c: Column(c.capitalize()) for c in ("estimate", "locality") if frame[c].nunique() > 1},
        "sequence_jobs": Column("Window", "jobs", "int"),
        "title": Column("Policy"),
        **{b: Column(BLOCKING_TITLE[b], "s", "seconds", "May start behind a job that does not fit") for b in rules},
        "windows": Column("Windows", "", "int", help="Disjoint windows of the test part."),
    }
    artefact = Artefact(
        "heuristics", "table", "Simple heuristics and what no schedule can go below",
        caption="Mean wait over disjoint windows of test jobs, each from an idle cluster, best-fit placement. EASY leaves "
        "the first job its reservation, conservative backfilling leaves every job before its own.",
        data=data_labels(cells), source=source, columns=columns,
        notes=(
            "“No schedule below” is a proven lower bound on the mean wait of the same windows under any scheduler, even "
            "one that knows all arrivals and run times beforehand; it ignores nodes, CPUs and memory. The distance to "
            "it is what any scheduler could at most gain, and mostly the price of not knowing the future.",
        ),
    )  # fmt: skip
    return artefact, frame


def _rows(windows: pd.DataFrame, n: int) -> list[dict[str, object]]:
    mine = where(windows, sequence_jobs=n)
    means = mine.pivot_table(index="policy", columns="blocking", values="wait_s", sort=False)
    number = mine["window"].nunique()
    rows: list[dict[str, object]] = [
        {"policy": p, "title": POLICY_TITLE.get(p, p), "windows": number, "best": row.min(), **row.to_dict()}
        for p, row in means.iterrows()
    ]
    bound = mine.groupby("window")["bound_s"].first().mean()
    return [*rows, {
        "policy": "bound", "title": BOUND, "windows": number, "best": bound, **dict.fromkeys(means.columns, bound),
    }]  # fmt: skip
