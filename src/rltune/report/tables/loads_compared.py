"""Overloaded slices beside the same nodes with arrivals they can keep up with."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.style import scheduler_title
from rltune.report.tables.common import FIRST_SEED, OVER_WINDOWS, data_labels
from rltune.report.tables.holm import holm_note, with_holm

LOADS = {"slice": "Slice", "balanced": "Balanced"}
AGENT = "rltune"
TESTED = {f"{load}_p": f"{load}_holm" for load in LOADS}


def loads_compared(
    loaded: pd.DataFrame, confidence: float, too_short: Sequence[str] = (), source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """The table `loads-compared-numbers`: one row a workload × scheduler, both clusters side by side.

    ``loaded`` as rltune.evaluation.studies.summaries.loaded gives it; the frame is the same with `title` (the scheduler, ★ where it
    is the best heuristic of the slice, ☆ of the balanced cluster). ``too_short``: workloads that were left out, in words.
    """
    title = [
        ("RLTune, trained on the slice" if r["role"] == AGENT else scheduler_title(r["policy"], r["backfill"]))
        + (" ★" if r["slice_best"] else "")
        + (" ☆" if r["balanced_best"] else "")
        for _, r in loaded.iterrows()
    ]
    fewest = loaded[[f"{load}_windows" for load in LOADS]].min(axis=1)
    frame = with_holm(loaded.assign(title=title, windows=fewest), TESTED).drop(columns="windows")
    columns = {
        "workload": Column("Workload"),
        "title": Column("Scheduler", help="★: best heuristic of the slice; ☆: of the balanced cluster."),
    }
    for load, group in LOADS.items():
        columns |= {
            f"{load}_wait_s": Column("Mean wait", "s", "seconds", group),
            f"{load}_less": Column("Less than base", "", "percent", group, f"{load}_low", f"{load}_high"),
            f"{load}_holm": Column("Holm p", "", "p", group, help="After Holm’s correction over this table."),
            f"{load}_windows": Column("Windows", "", "int", group),
        }
    columns["sequence_jobs"] = Column("Window", "jobs", "int")
    return Artefact(
        "loads-compared-numbers",
        "table",
        "Overloaded and balanced, in numbers",
        caption="Every heuristic under every backfill rule, and RLTune, on the slice that RLTune was trained for and "
        "on the same nodes with fewer arrivals. Less than base: than the base policy under the backfill rule of the "
        "agent’s setting, both named below; RLTune itself blocks as it chose to in training, where it chose. "
        f"Brackets: {100 * confidence:.0f} % interval, paired by window.",
        data=data_labels(frame),
        source=source,
        columns=columns,
        notes=(
            *(_told(part) for _, part in frame.groupby("workload", sort=False)),
            "RLTune goes to the balanced cluster as it is, with no training there (zero-shot): an agent trained there "
            "could do better. Windows have the same number of jobs, so those of the balanced cluster span more time.",
            *(
                [f"Left out, as too few jobs for a window are left on the balanced cluster: {', '.join(too_short)}."]
                if too_short
                else []
            ),
            *filter(None, [holm_note(frame, TESTED, "over base policies", confidence)]),
            f"{FIRST_SEED} {OVER_WINDOWS}",
        ),
    ), frame


def _told(part: pd.DataFrame) -> str:
    first = part.iloc[0]
    each = [
        f"the test part offers {show(first[f'{load}_offered'], 'number')} times what {first[f'{load}_cluster']} has"
        for load in LOADS
    ]
    idle = [LOADS[load] for load in LOADS if not part[f"{load}_wait_s"].any()]
    nothing = "".join(f" {name} cluster: nobody waits, whoever schedules; there is nothing to win." for name in idle)
    base = scheduler_title(first["base"], first["base_backfill"])
    return f"{first['workload']}: {', and '.join(each)}. Base: {base}.{nothing}"
