"""How long jobs of each size wait under the base policy, the best heuristic and the agent."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.tables.fairness import scheduler_names

LOOKS = {
    "base": ("base policy", "o", style.SCHEDULER["base"]),
    "strong": ("best heuristic", "s", style.SCHEDULER["baseline"]),
    "rltune": ("RLTune", "D", style.SCHEDULER["rltune"]),
}
MEASURES = {"wait_s": "Mean wait (s)", "bsld": "Mean slowdown"}
LINEAR_BELOW_S = 10.0
"""Where some class hardly waits, the axis of waits is logarithmic above this and linear below."""


def fairness(sizes: pd.DataFrame) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Mean wait on the left and mean bounded slowdown on the right by class of job size: a row of panels a workload.

    ``sizes``: workload, data, sequence_jobs, policy, backfill and the columns of rltune.evaluation.groups.by_group by
    size; the frame is the same with `title` (the scheduler).
    """
    frame = sizes.assign(title=scheduler_names(sizes))
    who = [f"{w}: {', '.join(p['title'].drop_duplicates())}." for w, p in frame.groupby("workload", sort=False)]
    names = {scheduler: name for scheduler, (name, *_) in LOOKS.items()}
    sizes_there = list(dict.fromkeys(frame["group"]))
    return describe("fairness", frame, heuristics=who, who=names, sizes=sizes_there), frame, _draw(frame)


@style.styled()
def _draw(frame: pd.DataFrame) -> Figure:
    import seaborn as sns  # a second that other figures need not wait for

    panels = [(workload, measure) for workload in dict.fromkeys(frame["workload"]) for measure in MEASURES]
    figure, axes = style.panels([workload for workload, _ in panels], 2, 2.2)
    for axis, (workload, measure) in zip(axes, panels):
        part = where(frame, workload=workload)
        colours, markers = ({who: look[k] for who, look in LOOKS.items()} for k in (2, 1))
        look = {"hue": "scheduler", "palette": colours, "linestyle": "none"}
        look |= {"hue_order": list(LOOKS), "markers": list(markers.values())}
        sns.pointplot(part, x="group", y=measure, dodge=0.4, markersize=5, errorbar=None, legend=False, ax=axis, **look)
        if measure == "wait_s" and part[measure].min() < 2 * LINEAR_BELOW_S:
            axis.set_yscale("symlog", linthresh=LINEAR_BELOW_S, linscale=0.5)
            axis.set_ylim(-1, max(3 * part[measure].max(), 2 * LINEAR_BELOW_S))
        else:
            axis.set_yscale("log")
        axis.set(xlabel="GPUs of a job", ylabel=MEASURES[measure])
        axis.yaxis.set_major_formatter(style.PLAIN)
        style.rows_only(axis)
    style.legend(figure, [style.handle(name, colour, marker) for name, marker, colour in LOOKS.values()])
    return figure
