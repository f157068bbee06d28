"""How good the run-time estimates are that policies are told."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.tables.common import data_labels


def estimates(frame: pd.DataFrame, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """Accuracy of each kind of estimate on each trace.

    ``frame``: trace, data, estimate, jobs, modelled, and the columns of rltune.traces.estimates.accuracy.
    """
    artefact = Artefact(
        "estimates",
        "table",
        "Run-time estimates",
        caption="How near each kind of estimate comes to the run time. lognormal-1 is the true run time, blurred; "
        "requested is the user’s own limit; history-rolling and history-lightgbm are made of earlier jobs alone, whose "
        "run times are known from their ends on. Counted are the jobs before any test part.",
        data=data_labels(frame),
        source=source,
        notes=(
            "A job’s end is taken as submission + recorded wait + run time; where a trace records no wait, as "
            "submission + run time, so its run times are known sooner than they were.",
        ),
        columns={
            "trace": Column("Trace"),
            "data": Column("Data"),
            "estimate": Column("Estimate"),
            "jobs": Column("Jobs", "", "int"),
            "modelled": Column(
                "By the model",
                "of jobs",
                "percent",
                help="The rest are from its fall-back: nothing known yet, no limit given.",
            ),
            "median_abs_log": Column(
                "Median error",
                "|ln ratio|",
                "number",
                help="Median of |ln(estimate / run time)|; 0.69 is a factor of two.",
            ),
            "spearman": Column(
                "Rank correlation",
                "",
                "number",
                help="Spearman’s, of estimate and run time: 1 when they order the jobs alike.",
            ),
            "within_2": Column("Within a factor of 2", "of jobs", "percent"),
            "median_ratio": Column("Median of estimate / run time", "", "number"),
        },
    )
    return artefact, frame
