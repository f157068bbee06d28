"""Overloaded slices next to the same nodes with arrivals they can handle."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, with_holm
from rltune.report.format import show
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
    return describe(
        "loads-compared-numbers",
        frame,
        confidence=confidence,
        workloads=[_summary(part) for _, part in frame.groupby("workload", sort=False)],
        too_short=too_short,
        loads=LOADS,
        holm=holm_note(frame, TESTED, "over base policies", confidence),
    ), frame


def _summary(part: pd.DataFrame) -> str:
    first = part.iloc[0]
    each = [
        f"the test part offers {show(first[f'{load}_offered'], 'number')} times the capacity of {first[f'{load}_cluster']}"
        for load in LOADS
    ]
    idle = [LOADS[load] for load in LOADS if not part[f"{load}_wait_s"].any()]
    nothing = "".join(
        f" {name} cluster: no job waits under any scheduler, so there is nothing to gain." for name in idle
    )
    base = scheduler_title(first["base"], first["base_backfill"])
    return f"{first['workload']}: {' and '.join(each)}. Base: {base}.{nothing}"
