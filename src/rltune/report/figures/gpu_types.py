"""Where completion time goes under each rule for the GPU type."""

import pandas as pd

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import scheduler_titles
from rltune.report.format import show
from rltune.report.tables.gpu_types import TITLES, best_of_each

PARTS = {
    "run_s": ("run time on the fastest type", style.SKY),
    "slower_s": ("lost on slower types or more nodes", style.VERMILION),
    "wait_s": ("wait", style.ORANGE),
}
"""Parts of a mean completion time: name and colour."""


@style.styled()
def gpu_types(numbers: pd.DataFrame) -> Drawing:
    """A panel a workload, a bar a rule for the GPU type; ``numbers``: the frame of `tables.gpu_types`."""
    frame = best_of_each(numbers).reset_index(drop=True)
    frame["rule"] = frame["choice"].map(TITLES)
    parts = dict(list(frame.groupby("workload", sort=False)))
    tall = 0.46 * max(map(len, parts.values()))  # two lines a bar
    figure, axes = style.panels(list(parts), 1, tall, 0.5)
    for axis, rows in zip(axes, parts.values()):
        left = pd.Series(0.0, rows.index)
        for column, (name, colour) in PARTS.items():
            axis.barh(range(len(rows)), rows[column], 0.62, left, color=colour, label=name)
            left += rows[column]
        axis.bar_label(axis.containers[-1], [show(total, "seconds") for total in left], padding=4, fontsize=7.5)
        axis.axvline(rows["bound_s"].iloc[0], color=style.INK, linewidth=0.9, linestyle="--")
        style.name_rows(axis, [f"{rule}\n({title})" for rule, title in zip(rows["rule"], scheduler_titles(rows))])
        axis.set_xlim(0, float(left.max()) * 1.12)
        axis.xaxis.set_major_formatter(style.COUNT)
    axes[-1].set_xlabel("Mean completion time (s)")
    style.legend_of(axes[0])
    return describe("gpu-types", frame), frame, figure
