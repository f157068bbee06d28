"""A single simulation: its metrics as text, its jobs as a Gantt chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rltune.report.artefact import save_picture
from rltune.report.format import show

ROWS = {"wait_s": "wait (s)", "jct_s": "JCT (s)", "bsld": "bounded slowdown"}


def summary(metrics: dict[str, float], bound: tuple[float, float] | None = None) -> str:
    """A few lines: mean, median and largest of each of ROWS; then utilisation (a share), mean_queue and jobs_per_s.

    ``bound``: a lower bound on the mean wait of all jobs, and that mean, s.
    """
    lines = [f"{'':<36}{'mean':>14}{'median':>14}{'largest':>14}"]
    for column, title in ROWS.items():
        values = [show(metrics[f"{column}_{how}"], "number") for how in ("mean", "median", "max")]
        lines.append(f"{title:<36}" + "".join(f"{value:>14}" for value in values))
    single = {
        "utilisation over the span": show(metrics["utilisation"], "percent"),
        "jobs waiting, mean over the span": show(metrics["mean_queue"], "number"),
        "jobs simulated a second": show(metrics["jobs_per_s"], "number"),
    }
    if bound is not None:
        least, ours = bound
        single["mean wait of any policy (s), at least"] = show(least, "number")
        single["mean wait of all jobs, times that"] = show(ours / least if least > 0 else None, "number")
    return "\n".join(lines + [f"{title:<38}{value:>10}" for title, value in single.items()])


def groups_summary(groups: pd.DataFrame, facts: dict[str, float], most: int = 15) -> str:
    """The groups with the largest parts of all waiting, a line each; then how unequally groups are treated."""
    shown = groups.sort_values(["wait_share", "group"], ascending=[False, True]).head(most)
    lines = [f"{'':<24}{'jobs':>9}{'GPU-hours':>12}{'wait (s)':>12}{'slowdown':>10}{'of all wait':>13}"]
    for _, row in shown.iterrows():
        lines.append(
            f"{str(row['group'])[:23]:<24}{row['jobs']:>9,}{show(row['gpu_hours'], 'number'):>12}"
            f"{show(row['wait_s'], 'number'):>12}{show(row['bsld'], 'number'):>10}{show(row['wait_share'], 'percent'):>13}"
        )
    if len(groups) > most:
        lines.append(f"… and {len(groups) - most:,} more")
    return "\n".join(
        [
            *lines,
            f"Jain's index of their mean slowdowns (1: all alike): {facts['jain_bsld']:.2f}; "
            f"Gini coefficient of their mean waits (0: all alike): {facts['gini_wait']:.2f}",
        ]
    )


def until_s(bars: pd.DataFrame) -> float | None:
    """Where to end a drawing, s after the first submission; None: nowhere before the makespan.

    By then all jobs have started and nine in ten have ended, and a tenth of that time more has passed; only if that is
    under half of the makespan, which a few long jobs then set.
    """
    jobs = bars.drop_duplicates("job")
    begin = float(jobs["submit_s"].min())
    enough = 1.1 * (max(float(jobs["start_s"].max()), float(jobs["end_s"].quantile(0.9))) - begin)
    return enough if 0 < enough < 0.5 * (float(jobs["end_s"].max()) - begin) else None


def draw(bars: pd.DataFrame, node_gpus: Sequence[int], title: str, path: Path) -> None:
    """Write a Gantt chart (rltune.report.figures.gantt) as .svg or .png; the same bars give the same bytes.

    It ends at ``until_s``, so that one very long job does not squeeze all others.
    """
    from rltune.report.figures.gantt import gantt  # seaborn takes seconds, which a simulation need not wait for

    save_picture(path, gantt(bars, node_gpus, title, until_s=until_s(bars)), "gantt")
