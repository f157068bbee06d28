"""Every simple heuristic on the test windows, beside what no schedule can go below."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.common import data_labels, lengths, where

RULES = {
    "none": ("Nothing", ""),
    "greedy": ("What fits", ""),
    "easy": ("EASY", "EASY backfilling leaves the first job its reservation."),
    "conservative": ("Conservative", "Conservative backfilling leaves every job before its own."),
}
"""Backfill rules: what the table calls them, and what has to be said of them."""


def heuristics(cells: pd.DataFrame, windows: pd.DataFrame, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """One row a trace × window length × policy, a column a backfill rule: mean wait in s.

    ``cells`` and ``windows`` as `report.read` gives them; baselines are the same for all cells of a trace, cluster,
    estimate and locality. The frame has `policy`, `title`, `windows`, the backfill rules, `best` (the least of the
    row), `bound` (a mean wait that no schedule goes below) and `over_bound`, best / bound, NaN where that is 0. The
    policy with the least wait of a trace and length has a star in its title.
    """
    keys = ["trace_title", "data", "estimate", "locality"]
    rows = []
    for values, group in cells.groupby(keys, sort=False):
        own = where(windows, cell=group["cell"].iloc[0], role="baseline", locality=values[-1])
        for n in lengths(own):
            rows += [{**dict(zip(keys, values, strict=True)), "sequence_jobs": n, **row} for row in _rows(own, n)]
    frame = pd.DataFrame(rows)
    rules = [b for b in RULES if b in frame]
    artefact = Artefact(
        "heuristics",
        "table",
        "Simple heuristics and what no schedule can go below",
        caption="Mean wait over disjoint windows of test jobs, each from an idle cluster, with best-fit placement "
        "whatever the agents use. ★: the policy with the least of a trace and length, under its best rule. "
        + " ".join(RULES[b][1] for b in rules if RULES[b][1]),
        data=data_labels(cells),
        source=source,
        columns={
            "trace_title": Column("Trace"),
            **{c: Column(c.capitalize()) for c in ("estimate", "locality") if frame[c].nunique() > 1},
            "sequence_jobs": Column("Window", "jobs", "int"),
            "title": Column("Policy", help="★: the least mean wait of these windows."),
            **{b: Column(RULES[b][0], "s", "seconds", "May start behind a job that does not fit") for b in rules},
            "bound": Column("No schedule below", "s", "seconds"),
            "over_bound": Column("Best of the row, over that", "×", "number"),
            "windows": Column("Windows", "", "int", help="Disjoint windows of the test part."),
        },
        notes=(
            "“No schedule below” is a proven lower bound on the mean wait of the same windows under any scheduler, even "
            "one that knows all arrivals and run times beforehand. The distance to it is the most that any scheduler "
            "could still gain, and more than one can: part of it is not knowing the future, part the nodes, CPUs and "
            "memory that the bound ignores, and part the slack of the bound itself.",
        ),
    )
    return artefact, frame


def _rows(windows: pd.DataFrame, n: int) -> list[dict[str, object]]:
    mine = where(windows, sequence_jobs=n)
    means = mine.pivot_table(index="policy", columns="backfill", values="wait_s", sort=False)
    bound = float(mine.groupby("window")["bound_s"].first().mean())
    best = means.min(axis=1)
    return [
        {
            "policy": policy,
            "title": POLICY_TITLE.get(policy, policy) + (" ★" if best[policy] == best.min() else ""),
            "windows": mine["window"].nunique(),
            **row.to_dict(),
            "best": best[policy],
            "bound": bound,
            "over_bound": best[policy] / bound if bound > 0 else float("nan"),
        }
        for policy, row in means.iterrows()
    ]
