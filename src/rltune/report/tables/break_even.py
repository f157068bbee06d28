"""What training costs beside what it saves: seconds of computing against hours of waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.evaluation.compare import Comparison, compare, strong_baseline
from rltune.report.artefact import Artefact, Column
from rltune.report.style import POLICY_TITLE, scheduler_title
from rltune.report.tables.common import SETTING_TITLE, best_measured, constant_settings, data_labels, varying, where
from rltune.report.tables.rivals import NAN


def break_even(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    histories: pd.DataFrame,
    jobs_per_day: Mapping[str, float],
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a cell of RLTune's that is trained for wait (where there is none: for anything), at the window length
    with the most windows.

    ``jobs_per_day``: of the test part, by cell. ``saved_h`` and ``over_strong_h``: hours of waiting saved a day against
    the base policy and against the strongest heuristic, negative where more is waited; ``deciding_s``: seconds of
    simulating and deciding a day of jobs.
    """
    ours = where(cells, agent="rltune")
    chosen = where(ours, metric="wait") if (ours["metric"] == "wait").any() else ours
    rows: list[dict[str, Any]] = []
    for _, cell in chosen.iterrows():
        own, training = where(windows, cell=cell["cell"]), where(histories, cell=cell["cell"])
        for n, mine in own.groupby("sequence_jobs"):
            n = int(str(n))

            def against(theirs: dict[str, str]) -> Comparison:
                return compare(own, "wait", n, {"role": "rltune"}, theirs, bootstrap, confidence, seed)

            agent, daily = where(mine, role="rltune"), jobs_per_day[cell["cell"]]
            base = against({"role": "base"})
            row = {
                **{k: cell[k] for k in ("trace_title", "trace", "data", "policy", *SETTING_TITLE, "cell")},
                "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
                "sequence_jobs": n,
                "windows": base.windows,
                "jobs_per_day": daily,
                "training_s": float((training["rollout_seconds"] + training["update_seconds"]).sum()),
                "deciding_s": float(agent["seconds"].mean()) / n * daily,
                **_saved("saved", base, daily),
            }
            if (mine["role"] == "baseline").any():
                best = strong_baseline(own, "wait", n)
                row |= {
                    "strong": scheduler_title(best["policy"], best["backfill"]),
                    **_saved("over_strong", against(best), daily),
                }
            rows.append(row)
    frame = best_measured(pd.DataFrame(rows)).reset_index(drop=True)
    if len(frame):
        frame["break_even_min"] = (frame["training_s"] / 3600 / frame["saved_h"] * 24 * 60).where(frame["saved_h"] > 0)
    strong, base_group = "Against the strongest heuristic", "Against the base policy"
    columns = {
        "trace_title": Column("Trace"),
        "base": Column("Base policy"),
        **{
            c: Column(SETTING_TITLE[c].capitalize(), "", "plain-int" if c == "seed" else "text")
            for c in varying(chosen)
        },
        "jobs_per_day": Column("Jobs a day", "", "int"),
        "training_s": Column("Training", "s", "seconds"),
        "deciding_s": Column("Deciding, a day", "s", "number"),
        "saved_h": Column("Waiting saved a day", "h", "number", base_group, "saved_low", "saved_high"),
        "break_even_min": Column(
            "Saved its training in",
            "min",
            "number",
            base_group,
            help="Of operation, until as much waiting is saved as training took on one core.",
        ),
        "strong": Column("Heuristic", "", "text", strong),
        "over_strong_h": Column("Waiting saved a day", "h", "number", strong, "over_strong_low", "over_strong_high"),
    }
    return Artefact(
        "break-even",
        "table",
        "Cost of training against benefit",
        caption="Seconds of computing beside hours of waiting that jobs of the test part are saved a day; negative: "
        f"more is waited. Brackets: {100 * confidence:.0f} % interval.",
        data=data_labels(chosen),
        source=source,
        columns={c: v for c, v in columns.items() if c in frame},
        notes=tuple(
            n
            for n in (
                "Waiting saved a day: jobs submitted a day in the test part × the difference of the mean waits in its "
                "windows; the interval is that of the relative difference, times the other’s mean.",
                "Windows start from an idle cluster, so a cluster that is full all day saves, or loses, more than this.",
                "A heuristic costs nothing to train: where nothing is saved against the strongest, training is not paid "
                "back.",
                constant_settings(chosen),
            )
            if n
        ),
    ), frame


def _saved(name: str, found: Comparison, daily: float) -> dict[str, float]:
    """Hours a day from a comparison of mean waits, with the ends of the interval."""
    hours = found.theirs_mean * daily / 3600 if found.theirs_mean > 0 else NAN
    sizes = {"h": found.improvement, "low": found.low, "high": found.high}
    return {f"{name}_{end}": hours * size for end, size in sizes.items()}
