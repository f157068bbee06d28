"""Overloaded slices next to the same nodes with arrivals they can handle."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, with_holm
from rltune.report.style import scheduler_title

LOADS = {"slice": "Slice", "balanced": "Balanced"}
AGENT = "rltune"
TESTED = {f"{load}_p": f"{load}_holm" for load in LOADS}


def loads_compared(
    loaded: pd.DataFrame, confidence: float, too_short: Sequence[str] = ()
) -> tuple[Artefact, pd.DataFrame]:
    """The table `loads-compared-numbers`: one row per workload × scheduler, both clusters side by side.

    ``loaded`` as rltune.evaluation gives it; the frame is the same with `title` (the scheduler, ★ where it is the best
    heuristic of the slice, ☆ of the balanced cluster). ``too_short``: workloads that were left out, in words.
    """
    title = [
        ("RLTune, trained on the slice" if r["role"] == AGENT else scheduler_title(r["policy"], r["backfill"]))
        + (" ★" if r["slice_best"] else "")
        + (" ☆" if r["balanced_best"] else "")
        for _, r in loaded.iterrows()
    ]
    fewest = loaded[[f"{load}_windows" for load in LOADS]].min(axis=1)
    frame = with_holm(loaded.assign(title=title, windows=fewest), TESTED).drop(columns="windows")
    idle = frame.groupby("workload")[[f"{load}_wait_s" for load in LOADS]].max().eq(0)
    workloads = [
        row
        | {"base_title": scheduler_title(row["base"], row["base_backfill"])}
        | {f"{load}_idle": idle.loc[row["workload"], f"{load}_wait_s"] for load in LOADS}
        for row in frame.drop_duplicates("workload").to_dict("records")
    ]
    return describe(
        "loads-compared-numbers",
        frame,
        confidence=confidence,
        workloads=workloads,
        too_short=too_short,
        loads=LOADS,
        holm=holm_note(frame, TESTED, "over base policies", confidence),
    ), frame
