"""Every row left out of the data, by reason: cleaning a trace, fitting it to a cluster."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.tables.common import data_labels

STEP = {"clean": "cleaning", "fit": "fit to cluster"}


def audits(counts: pd.DataFrame, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """One row a count, with its share of the rows read in the same step.

    ``counts`` as `report.read.audits` gives it.
    """
    frame = counts.copy()
    step = ["trace", "cluster", "stage"]
    read = counts[counts["kind"] == "read"].set_index(step)["rows"]
    totals = [read.get(key, 0) for key in counts[step].itertuples(index=False, name=None)]
    frame["share"] = [rows / total if total else float("nan") for rows, total in zip(counts["rows"], totals)]
    frame["step"] = counts["stage"].map(STEP)
    frame["unaccounted"] = [_unaccounted(counts, step, key) for key in counts[step].itertuples(index=False, name=None)]
    missing = frame.drop_duplicates(step)
    gaps = missing[missing["unaccounted"] != 0]
    notes = ["Noted rows are remarked on (a value bounded, a fall-back used) without being left out for it."]
    notes += [
        f"{r['trace']}, {r['step']}: {r['unaccounted']:,} rows are neither kept nor left out for a reason."
        for _, r in gaps.iterrows()
    ]
    artefact = Artefact(
        "audits",
        "table",
        "Rows kept and left out",
        caption="Rows read from each trace, rows left out by reason, rows kept; then the same for the fit to a "
        "cluster, which takes what cleaning kept.",
        data=data_labels(frame),
        source=source,
        notes=tuple(notes),
        columns={
            "trace": Column("Trace"),
            "step": Column("Step"),
            "cluster": Column("Cluster"),
            "kind": Column("Rows"),
            "reason": Column("Reason or remark"),
            "rows": Column("Count", "", "int"),
            "share": Column("Share", "of rows read", "percent"),
        },
    )
    return artefact, frame


def _unaccounted(counts: pd.DataFrame, step: list[str], key: tuple[str, ...]) -> int:
    rows = counts[(counts[step] == list(key)).all(axis=1)]
    total = {kind: int(rows.loc[rows["kind"] == kind, "rows"].sum()) for kind in ("read", "kept", "left out")}
    return total["read"] - total["kept"] - total["left out"]
