"""Figures 12, 14, 15 and 16: what jobs got under each base policy and under RLTune."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import SETTINGS, constant_settings, distinct_names, lengths, policy_title, proper, where
from rltune.report.format import show, three_digits
from rltune.report.paper import PaperResults
from rltune.report.studies import Study, cells_of
from rltune.report.style import (
    INK,
    PAPER,
    SCHEDULER,
    WIDTH_IN,
    label,
    name_ticks,
    rows_only,
    scheduler_title,
    styled,
    upright_in,
)
from rltune.report.transferred import SAME_AGENT

LINEAR_BELOW_S = 10.0
"""The wait axis is logarithmic above this and linear below, since many jobs do not wait at all."""
QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
NAME = {"wait": ("Wait", "waits"), "bsld": ("Bounded slowdown", "slowdowns"), "jct": ("Completion time", "times")}
"""Metric → what a job has of it, and the plural."""


def boxes(
    cells: pd.DataFrame, jobs: pd.DataFrame, paper: PaperResults, study: Study, sequence_jobs: int | None = None
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Distribution of a metric over test jobs, base policy beside RLTune: a panel a trace, a pair of boxes a setting.

    ``jobs``: cell, role (rltune | base), sequence_jobs, and the study's column. Without ``sequence_jobs`` the longest
    windows there are, under the study's id; with it, those, as `<id>-<n>`. The frame has one row a box: p05 … p95 and
    mean, in the metric's unit, and `setting`, what it is called. Agents trained for a mix of metrics are drawn only
    where none is trained for this alone; the jobs of several seeds are pooled. Raises ValueError when there is no job
    to draw.
    """
    chosen, left = _chosen(study, cells)
    there = lengths_of(study, cells, jobs)
    longest = max(there, default=0)
    n = sequence_jobs or longest
    rows = []
    chosen = chosen.assign(setting=_settings(chosen))
    for _, group in chosen.groupby(SAME_AGENT, sort=False):
        pooled = jobs[jobs["cell"].isin(group["cell"]) & (jobs["sequence_jobs"] == n)]
        for role in ("base", "rltune"):
            rows.append(_box(study, group, role, where(pooled, role=role)[study.column], n))
    frame = pd.DataFrame([r for r in rows if r is not None])
    if frame.empty:
        raise ValueError(f"no test jobs of windows of {n} jobs; there are {there}")
    figure = _draw(study, frame)
    several = chosen.groupby(["trace_title", "setting"], sort=False)["cell"].nunique()
    pooled = "; ".join(f"{t}, {setting} ({k})" for (t, setting), k in several[several > 1].items())
    artefact = describe(
        study.boxes if n == longest else f"{study.boxes}-{n}",
        frame,
        rows=chosen,
        paper_ref=paper.ref(study.paper) if study.paper else "",
        study=study,
        name=NAME[study.metric][0],
        n=n,
        unit=f", in {study.unit}" if study.unit else "",
        linear_below=LINEAR_BELOW_S if study.metric == "wait" else 0,
        left=left,
        pooled=pooled,
        shared_settings=constant_settings(chosen),
        alt=_alt(study, frame, n),
    )
    return artefact, frame, figure


def lengths_of(study: Study, cells: pd.DataFrame, jobs: pd.DataFrame) -> list[int]:
    """Window lengths that the agents of a study have test jobs of, longest first."""
    return lengths(jobs[jobs["cell"].isin(_chosen(study, cells)[0]["cell"])])


def _chosen(study: Study, cells: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The agents drawn, and a sentence on those that are not."""
    chosen, left = proper(cells_of(study, cells))
    alone = chosen["metric"] == study.metric
    mixed = ~alone & alone.groupby([chosen["trace_title"], chosen["policy"]]).transform("any")
    if mixed.any():
        mixes = ", ".join(dict.fromkeys(chosen.loc[mixed, "metric"]))
        left = f"{left} Agents trained for a mix ({mixes}) are in the table only.".strip()
    return chosen[~mixed], left


def _settings(cells: pd.DataFrame) -> pd.Series:
    """Base policy and its backfill rule, and what else tells the settings of a trace apart."""
    parts = [part for _, part in cells.groupby("trace_title", sort=False)]
    names = [distinct_names(p, list(map(scheduler_title, p["policy"], p["backfill"]))) for p in parts]
    named = [pd.Series(name, index=part.index) for name, part in zip(names, parts)]
    return pd.concat(named) if named else pd.Series(dtype=object)


def _box(study: Study, seeds: pd.DataFrame, role: str, values: pd.Series, n: int) -> dict[str, Any] | None:
    """One box; ``seeds``: the cells whose jobs are pooled."""
    if values.empty:
        return None
    quantiles, cell = values.quantile(list(QUANTILES.values())).to_numpy(), seeds.iloc[0]
    return {
        "trace_title": cell["trace_title"],
        "base": policy_title(cell["policy"]),
        **{c: cell[c] for c in SETTINGS if c not in ("metric", "seed")},
        "seeds": len(seeds),
        "setting": cell["setting"],
        "role": role,
        "metric": study.metric,
        "sequence_jobs": n,
        "jobs": len(values),
        "mean": float(values.mean()),
        **dict(zip(QUANTILES, map(float, quantiles))),
    }


def _alt(study: Study, frame: pd.DataFrame, n: int) -> str:
    means = frame.pivot_table(index=["trace_title", "setting"], columns="role", values="mean", sort=False)
    unit = f" {study.unit}" if study.unit else ""
    means_of = [
        f"{trace}, {setting}: {show(r['base'], study.format)}{unit} against {show(r['rltune'], study.format)}{unit}"
        for (trace, setting), r in means.dropna().iterrows()
    ]
    return (
        f"Box plots of {NAME[study.metric][1]} in windows of {n} jobs; means, base policy against RLTune: "
        f"{'; '.join(means_of)}."
    )


def _short(value: float) -> str:
    """A mean in the space over a box: 2.31, 951, 8.7k, 38k."""
    if value < 1000:
        return f"{value:.0f}" if value >= 100 else three_digits(value)
    return f"{value / 1000:.1f}k" if value < 9950 else f"{value / 1000:,.0f}k"


@styled()
def _draw(study: Study, frame: pd.DataFrame) -> Figure:
    settings = {trace: list(dict.fromkeys(part["setting"])) for trace, part in frame.groupby("trace_title", sort=False)}
    room = [max(len(names), 2) for names in settings.values()]
    upright = upright_in(frame["setting"], (WIDTH_IN - 0.8) / sum(room))
    figure = Figure(figsize=(WIDTH_IN, 3.4 + upright))
    axes = figure.subplots(1, len(settings), sharey=True, squeeze=False, width_ratios=room)[0]
    for axis, (trace, names) in zip(axes, settings.items()):
        if study.metric == "wait":
            axis.set_yscale("symlog", linthresh=LINEAR_BELOW_S, linscale=0.6)
        else:
            axis.set_yscale("log")
        for i, setting in enumerate(names):
            for role, shift in (("base", -0.2), ("rltune", 0.2)):
                found = where(frame, trace_title=trace, setting=setting, role=role)
                if len(found):
                    _draw_box(axis, found.iloc[0], i + shift, SCHEDULER[role])
        axis.set_title(trace)
        name_ticks(axis, names, upright > 0)
        axis.set_xlim(-0.55, len(names) - 0.45)
        rows_only(axis)
    low, high, ticks = _extent(study, frame)
    axes[0].set_ylim(low, high)
    axes[0].yaxis.set_major_locator(FixedLocator(ticks))
    axes[0].yaxis.set_minor_locator(FixedLocator([]))
    axes[0].yaxis.set_major_formatter(
        FuncFormatter(lambda v, _: three_digits(v).split(".")[0] if v >= 1 or v == 0 else three_digits(v).rstrip("0"))
    )
    axes[0].set_ylabel(NAME[study.metric][0] + (f" ({study.unit})" if study.unit else ""))
    figure.legend(
        handles=[Patch(color=SCHEDULER["base"], label="base policy"), Patch(color=SCHEDULER["rltune"], label="RLTune")],
        loc="outside upper center",
        ncols=2,
    )
    return figure


def _extent(study: Study, frame: pd.DataFrame) -> tuple[float, float, Sequence[float]]:
    """Both ends of the axis, room for the means' numbers above, and ticks at powers of ten or, of few, 1-2-5 steps."""
    top = float(frame[["p95", "mean"]].max().max())
    if study.metric == "wait":
        return 0.0, max(8 * top, 50.0), [0, 10, *(10.0**k for k in range(2, 9) if 10.0**k <= 3 * top)]
    bottom = float(frame["p05"].min()) or 1.0
    high = top * max(2.0, (top / bottom) ** 0.3)
    low, first = 0.8 * bottom, int(np.floor(np.log10(bottom)))
    ticks = [10.0**k for k in range(first, 10) if low <= 10.0**k <= high]
    if len(ticks) < 3:
        ticks = [step * 10.0**k for k in range(first, 10) for step in (1, 2, 5) if low <= step * 10.0**k <= high]
    return low, high, ticks


def _draw_box(axis: Any, row: pd.Series, x: float, colour: str) -> None:
    axis.bxp(
        [{"med": row["p50"], "q1": row["p25"], "q3": row["p75"], "whislo": row["p05"], "whishi": row["p95"]}],
        positions=[x],
        widths=0.32,
        showfliers=False,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": colour, "edgecolor": colour},
        medianprops={"color": PAPER, "linewidth": 1.6},
        whiskerprops={"color": colour},
        capprops={"color": colour},
    )
    axis.plot(
        [x], [row["mean"]], marker="D", markersize=3.8, color=INK, markeredgecolor=PAPER, markeredgewidth=0.7, zorder=5
    )
    label(
        axis, _short(row["mean"]), (x, max(row["p95"], row["mean"])), (0, 4), 7, rotation=90, ha="center", va="bottom"
    )
