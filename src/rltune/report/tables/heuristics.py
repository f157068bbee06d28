"""Every simple heuristic on the test windows, and a lower bound for any schedule."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import lengths, policy_title, setting_columns, where

RULES = {
    "none": ("Nothing", ""),
    "greedy": ("What fits", ""),
    "easy": ("EASY", "EASY backfilling keeps the first job’s reservation."),
    "conservative": ("Conservative", "Conservative backfilling keeps every job’s reservation."),
}
"""Backfill rules: the table's heading, and an explanation."""


def heuristics(cells: pd.DataFrame, windows: pd.DataFrame) -> Table:
    """One row per trace × window length × policy, a column per backfill rule: mean wait in s.

    ``cells`` and ``windows`` as `report.read` gives them; baselines are the same for all cells of a trace, cluster,
    estimate and locality. The frame has `policy`, `title`, `windows`, the backfill rules, `best` (the least of the
    row), `bound` (a lower bound on the mean wait of any schedule) and `over_bound`, best / bound, NaN where that is 0.
    The policy with the least wait of a trace and length has a star in its title.
    """
    keys = ["trace_title", "data", "estimate", "locality"]
    rows = []
    for values, group in cells.groupby(keys, sort=False):
        own = where(windows, cell=group["cell"].iloc[0], role="baseline", locality=values[-1])
        for n in lengths(own):
            rows += [{**dict(zip(keys, values, strict=True)), "sequence_jobs": n, **row} for row in _rows(own, n)]
    frame = pd.DataFrame(rows)
    rules = {b: rule for b, rule in RULES.items() if b in frame}
    return describe(
        "heuristics",
        frame,
        settings={c: v for c, v in setting_columns(cells).items() if c in ("estimate", "locality")},
        backfills={b: heading for b, (heading, _) in rules.items()},
        rules=" ".join(text for _, text in rules.values() if text),
    ), frame


def _rows(windows: pd.DataFrame, n: int) -> list[dict[str, object]]:
    mine = where(windows, sequence_jobs=n)
    means = mine.pivot_table(index="policy", columns="backfill", values="wait_s", sort=False)
    bound = float(mine.groupby("window")["bound_s"].first().mean())
    best = means.min(axis=1)
    return [
        {
            "policy": policy,
            "title": policy_title(policy) + (" ★" if best[policy] == best.min() else ""),
            "windows": mine["window"].nunique(),
            **row.to_dict(),
            "best": best[policy],
            "bound": bound,
            "over_bound": best[policy] / bound if bound > 0 else float("nan"),
        }
        for policy, row in means.iterrows()
    ]
