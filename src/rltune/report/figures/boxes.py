"""Figures 12, 14, 15 and 16: distributions of a metric over jobs, under each base policy and under RLTune."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import SETTINGS, distinct_names, lengths, scheduler_titles, without_variants
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.studies import Study, cells_of
from rltune.report.style import policy_title
from rltune.report.transferred import SAME_AGENT

QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
ABOUT = ("trace_title", "base", *(name for name in SETTINGS if name not in ("metric", "seed")), "seeds", "setting")
COLUMNS = (*ABOUT, "role", "metric", "sequence_jobs", "jobs", "mean", *QUANTILES)
ROLES = {"base": "base policy", "rltune": "RLTune"}
"""Role → its name in the legend, from left to right."""
NAMES = {"wait": ("Wait", "waits"), "bsld": ("Bounded slowdown", "slowdowns"), "jct": ("Completion time", "times")}
"""Metric → its name for a single job, and the plural."""


def boxes(
    cells: pd.DataFrame, jobs: pd.DataFrame, paper: PaperResults, study: Study, sequence_jobs: int | None = None
) -> Drawing:
    """Distribution of a metric over test jobs under base policy and RLTune: a panel a trace, a pair of boxes a setting.

    ``jobs``: cell, role (rltune | base), sequence_jobs, and the study's column. Without ``sequence_jobs`` the longest
    windows, under the study's id; with it, those, as `<id>-<n>`. The frame has one row a box: p05 … p95 and
    mean, in the metric's unit, and `setting`, its name. Agents trained for a mix of metrics are drawn only
    where none is trained for this alone; the jobs of several seeds are pooled. Raises ValueError when there is no job
    to draw.
    """
    chosen, left = _chosen(study, cells)
    known = lengths_of(study, cells, jobs)
    longest = max(known, default=0)
    n = sequence_jobs or longest
    chosen = chosen.assign(
        base=chosen["policy"].map(policy_title),
        setting=_settings(chosen),
        agent=chosen.groupby(SAME_AGENT, sort=False).ngroup(),
        seeds=chosen.groupby(SAME_AGENT)["cell"].transform("size"),
    )
    agent = jobs["cell"].map(chosen.set_index("cell")["agent"])
    values = jobs[jobs["sequence_jobs"] == n].groupby([agent.rename("agent"), "role"])[study.column]
    if not len(values):
        raise ValueError(f"no test jobs of windows of {n} jobs; there are {known}")
    quantiles = values.quantile(list(QUANTILES.values())).unstack().set_axis(list(QUANTILES), axis=1)
    numbers = values.agg(jobs="size", mean="mean").join(quantiles).reset_index()
    frame = chosen.drop_duplicates("agent").drop(columns="metric").merge(numbers, on="agent")
    frame = frame.assign(metric=study.metric, sequence_jobs=n)[list(COLUMNS)]
    several = chosen.groupby(["trace_title", "setting"], sort=False)["cell"].nunique()
    means = frame.pivot_table(index=["trace_title", "setting"], columns="role", values="mean", sort=False)
    artefact = describe(
        study.boxes if n == longest else f"{study.boxes}-{n}",
        frame,
        paper,
        cells=chosen,
        study=study,
        names=NAMES[study.metric],
        n=n,
        linear_below=style.LINEAR_BELOW_S if study.metric == "wait" else 0,
        left=left,
        pooled=several[several > 1].to_dict(),
        means=means.dropna().to_dict("index"),
    )
    return artefact, frame, _draw(study, frame)


def lengths_of(study: Study, cells: pd.DataFrame, jobs: pd.DataFrame) -> list[int]:
    """Window lengths that the agents of a study have test jobs of, longest first."""
    return lengths(jobs[jobs["cell"].isin(_chosen(study, cells)[0]["cell"])])


def _chosen(study: Study, cells: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The agents drawn, and a sentence on those that are not."""
    chosen, left = without_variants(cells_of(study, cells))
    alone = chosen["metric"] == study.metric
    mixed = ~alone & alone.groupby([chosen["trace_title"], chosen["policy"]]).transform("any")
    if mixed.any():
        mixes = ", ".join(dict.fromkeys(chosen.loc[mixed, "metric"]))
        left = f"{left} Agents trained for a mix ({mixes}) are in the table only.".strip()
    return chosen[~mixed], left


def _settings(cells: pd.DataFrame) -> pd.Series:
    """Base policy and its backfill rule, and what else distinguishes the settings of a trace."""
    parts = [part for _, part in cells.groupby("trace_title", sort=False)]
    named = [pd.Series(distinct_names(part, scheduler_titles(part)), index=part.index) for part in parts]
    return pd.concat(named) if named else pd.Series(dtype=object)


@style.styled()
def _draw(study: Study, frame: pd.DataFrame) -> Figure:
    parts = dict(list(frame.groupby("trace_title", sort=False)))
    widths = [max(part["setting"].nunique(), 2) for part in parts.values()]
    upright = style.upright_in(frame["setting"], (style.WIDTH_IN - 0.8) / sum(widths))
    figure, axes = style.panels(list(parts), len(widths), 2.9 + upright, sharey=True, width_ratios=widths)
    for axis, part in zip(axes, parts.values()):
        _draw_boxes(axis, part, study.format)
        axis.tick_params(axis="x", rotation=90 if upright else 0)
        style.rows_only(axis)
    top = float(frame[["p95", "mean"]].max().max())
    if study.metric == "wait":
        axes[0].set_yscale("symlog", linthresh=style.LINEAR_BELOW_S, linscale=0.6)
        axes[0].set_ylim(0.0, max(8 * top, 50.0))
        style.fixed_ticks(axes[0].yaxis, style.decades(3 * top))
    else:
        axes[0].set_yscale("log")
        bottom = float(frame["p05"].min()) or 1.0
        axes[0].set_ylim(0.8 * bottom, top * max(2.0, (top / bottom) ** 0.3))
        axes[0].yaxis.set_major_formatter(style.PLAIN)
    axes[0].set_ylabel(NAMES[study.metric][0] + (f" ({study.unit})" if study.unit else ""))
    style.legend(figure, [Patch(color=style.SCHEDULER[role], label=text) for role, text in ROLES.items()])
    return figure


def _draw_boxes(axis: Axes, part: pd.DataFrame, form: str) -> None:
    """A pair of boxes a setting, drawn from the five quantiles, which seaborn's boxes of these reproduce."""
    part = part.assign(name=part["setting"].str.replace(", ", "\n"))
    look = {"hue": "role", "hue_order": list(ROLES), "palette": style.SCHEDULER, "legend": False, "ax": axis}
    look |= {"saturation": 1, "gap": 0.2, "whis": (0, 100), "medianprops": {"color": style.PAPER, "linewidth": 1.6}}
    sns.boxplot(part.melt(["name", "role"], list(QUANTILES)), x="name", y="value", linecolor=style.INK, **look)
    x = pd.factorize(part["name"])[0] + part["role"].map({"base": -0.2, "rltune": 0.2})
    style.marks(axis, x, part["mean"], "D", style.INK, 3.8, mec=style.PAPER, mew=0.7, zorder=5)
    for at, mean, above in zip(x, part["mean"], part[["p95", "mean"]].max(axis=1)):
        style.label(axis, show(mean, form), (at, above), (0, 4), 7, rotation=90, ha="center", va="bottom")
    axis.set(xlabel="", ylabel="")
