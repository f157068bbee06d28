"""When training breaks even: seconds of computing against hours of waiting saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.evaluation.compare import Comparison, compare, strong_baseline
from rltune.evaluation.intervals import Intervals
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import NAN, about, best_measured, where
from rltune.report.style import scheduler_title

AGENT = {"role": "rltune"}


def break_even(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    histories: pd.DataFrame,
    jobs_per_day: Mapping[str, float],
    by: Intervals,
) -> tuple[Artefact, pd.DataFrame]:
    """One row per cell of RLTune trained for wait (if there is none: for anything), at the window length with the most
    windows.

    ``jobs_per_day``: of the test part, by cell. ``saved_h`` and ``over_strong_h``: hours of waiting saved per day
    against the base policy and against the strongest heuristic, negative for more waiting; ``deciding_s``: seconds of
    simulating and deciding a day of jobs; ``break_even_min``: operation until training has paid off.
    """
    ours = where(cells, agent="rltune")
    chosen = where(ours, metric="wait") if (ours["metric"] == "wait").any() else ours
    rows: list[dict[str, Any]] = []
    for _, cell in chosen.iterrows():
        own, training = where(windows, cell=cell["cell"]), where(histories, cell=cell["cell"])
        daily = jobs_per_day[cell["cell"]]
        for n in sorted(own["sequence_jobs"].unique().tolist()):
            mine = where(own, sequence_jobs=n)
            base = compare(own, "wait", n, AGENT, {"role": "base"}, by)
            row = {
                **about(cell),
                "sequence_jobs": n,
                "windows": base.windows,
                "jobs_per_day": daily,
                "training_s": float((training["rollout_seconds"] + training["update_seconds"]).sum()),
                "deciding_s": float(where(mine, **AGENT)["seconds"].mean()) / n * daily,
                **_saved("saved", base, daily),
            }
            if (mine["role"] == "baseline").any():
                best = strong_baseline(own, "wait", n)
                row |= _saved("over_strong", compare(own, "wait", n, AGENT, best, by), daily)
                row["strong"] = scheduler_title(best["policy"], best["backfill"])
            rows.append(row)
    frame = best_measured(pd.DataFrame(rows)).reset_index(drop=True)
    if len(frame):
        frame["break_even_min"] = (frame["training_s"] / 3600 / frame["saved_h"] * 24 * 60).where(frame["saved_h"] > 0)
    return describe("break-even", frame, cells=chosen, by=by), frame


def _saved(name: str, found: Comparison, daily: float) -> dict[str, float]:
    """Hours a day from a comparison of mean waits, with the ends of the interval."""
    hours = found.theirs_mean * daily / 3600 if found.theirs_mean > 0 else NAN
    sizes = {"h": found.improvement, "low": found.low, "high": found.high}
    return {f"{name}_{end}": hours * size for end, size in sizes.items()}
