"""A single simulation: its metrics as text, its jobs as a Gantt chart."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rltune.report.artefact import save_picture
from rltune.report.templates import fill


def summary(metrics: dict[str, float], bound: tuple[float, float] | None = None) -> str:
    """A few lines: mean, median and largest wait, JCT and slowdown; then utilisation (a share), mean_queue and jobs_per_s.

    ``bound``: a lower bound on the mean wait of all jobs, and that mean, s.
    """
    return fill("simulation.j2", metrics=metrics, bound=bound)


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
