"""Figure 12: how long jobs wait under each base policy and under RLTune."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from rltune.report.artefact import Artefact
from rltune.report.format import show, three_digits
from rltune.report.paper import PaperResults
from rltune.report.style import INK, PAPER, POLICY_TITLE, SCHEDULER, WIDTH_IN, rows_only, styled
from rltune.report.tables.common import constant_settings, data_labels, lengths, pro_cells, where

LINEAR_BELOW_S = 10.0
"""The wait axis is logarithmic above this and linear below, since many jobs do not wait at all."""
QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}


def waits(
    cells: pd.DataFrame, jobs: pd.DataFrame, paper: PaperResults, sequence_jobs: int | None = None, source: str = ""
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Distribution of test jobs' waits, base policy beside RLTune: a panel a trace, a pair of boxes a base policy.

    ``jobs``: cell, role (rltune | base), sequence_jobs, wait_s. Without ``sequence_jobs`` the longest windows there
    are, as `fig12`; with it, those, as `fig12-<n>`. The frame has one row a box: p05 … p95 and mean, in seconds.
    Where a setting was run in several variants or seeds, their jobs are pooled.
    """
    longest = max(lengths(jobs))
    n = sequence_jobs or longest
    chosen = pro_cells(cells)
    rows = []
    for (trace, policy), group in chosen.groupby(["trace_title", "policy"], sort=False):
        pooled = jobs[jobs["cell"].isin(group["cell"]) & (jobs["sequence_jobs"] == n)]
        for role in ("base", "rltune"):
            rows.append(_box(trace, policy, role, where(pooled, role=role)["wait_s"], n))
    frame = pd.DataFrame([r for r in rows if r is not None])
    if frame.empty:
        raise ValueError(f"no test jobs of windows of {n} jobs; there are {lengths(jobs)}")
    with styled():
        figure = _draw(frame)
    artefact = Artefact(
        "fig12" if n == longest else f"fig12-{n}", "figure", f"Waits in windows of {show(n, 'int')} jobs",
        paper_ref=paper.ref("fig12"),
        caption=f"Wait of every job in the test windows of {show(n, 'int')} jobs under the base policy and "
        "under RLTune. Box: middle half, line: median, whiskers: 5th to 95th percentile, diamond and number: mean, "
        "in seconds. "
        f"Logarithmic above {LINEAR_BELOW_S:.0f} s, linear below.",
        data=data_labels(chosen), source=source, notes=tuple(x for x in (constant_settings(chosen),) if x),
        alt=_alt(frame, n),
    )
    return artefact, frame, figure


def _box(trace: str, policy: str, role: str, wait_s: pd.Series, n: int) -> dict[str, Any] | None:
    if wait_s.empty:
        return None
    quantiles = wait_s.quantile(list(QUANTILES.values())).to_numpy()
    return {
        "trace_title": trace, "base": POLICY_TITLE.get(policy, policy), "role": role, "sequence_jobs": n,
        "jobs": len(wait_s), "mean_s": float(wait_s.mean()), **dict(zip(QUANTILES, map(float, quantiles))),
    }


def _alt(frame: pd.DataFrame, n: int) -> str:
    means = frame.pivot_table(index=["trace_title", "base"], columns="role", values="mean_s", sort=False)
    told = [f"{trace} {base} {show(r['base'], 'seconds')} s against {show(r['rltune'], 'seconds')} s"
            for (trace, base), r in means.dropna().iterrows()]
    return f"Box plots of waits in windows of {n} jobs; means, base policy against RLTune: {'; '.join(told)}."


def _short(seconds: float) -> str:
    """A mean in the space over a box: 951, 8.7k, 38k."""
    if seconds < 1000:
        return f"{seconds:.0f}"
    return f"{seconds / 1000:.1f}k" if seconds < 9950 else f"{seconds / 1000:,.0f}k"


def _draw(frame: pd.DataFrame) -> Figure:
    traces, policies = list(dict.fromkeys(frame["trace_title"])), list(dict.fromkeys(frame["base"]))
    figure = Figure(figsize=(WIDTH_IN, 3.4))
    axes = figure.subplots(1, len(traces), sharey=True, squeeze=False)[0]
    top = float(frame[["p95", "mean_s"]].max().max())
    for axis, trace in zip(axes, traces):
        axis.set_yscale("symlog", linthresh=LINEAR_BELOW_S, linscale=0.6)
        for i, base in enumerate(policies):
            for role, shift in (("base", -0.2), ("rltune", 0.2)):
                found = where(frame, trace_title=trace, base=base, role=role)
                if len(found):
                    _draw_box(axis, found.iloc[0], i + shift, SCHEDULER[role])
        axis.set_title(trace)
        axis.set_xticks(range(len(policies)), policies)
        axis.set_xlim(-0.55, len(policies) - 0.45)
        rows_only(axis)
    ticks = [0, 10, *(10.0 ** k for k in range(2, 9) if 10.0 ** k <= 3 * top)]
    axes[0].set_ylim(0, max(8 * top, 50))
    axes[0].yaxis.set_major_locator(FixedLocator(ticks))
    axes[0].yaxis.set_minor_locator(FixedLocator([]))
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda v, _: "0" if v == 0 else three_digits(v).split(".")[0]))
    axes[0].set_ylabel("Wait (s)")
    figure.legend(
        handles=[Patch(color=SCHEDULER["base"], label="base policy"), Patch(color=SCHEDULER["rltune"], label="RLTune")],
        loc="outside upper center", ncols=2,
    )
    return figure


def _draw_box(axis: Any, row: pd.Series, x: float, colour: str) -> None:
    axis.bxp(
        [{"med": row["p50"], "q1": row["p25"], "q3": row["p75"], "whislo": row["p05"], "whishi": row["p95"]}],
        positions=[x], widths=0.32, showfliers=False, manage_ticks=False, patch_artist=True,
        boxprops={"facecolor": colour, "edgecolor": colour}, medianprops={"color": PAPER, "linewidth": 1.6},
        whiskerprops={"color": colour}, capprops={"color": colour},
    )
    axis.plot([x], [row["mean_s"]], marker="D", markersize=3.8, color=INK, markeredgecolor=PAPER, markeredgewidth=0.7,
              zorder=5)
    axis.annotate(_short(row["mean_s"]), (x, max(row["p95"], row["mean_s"])), xytext=(0, 4), fontsize=7, rotation=90,
                  textcoords="offset points", ha="center", va="bottom", color=INK)
