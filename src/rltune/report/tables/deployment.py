"""The deployment in tables (paper §5.6): RLTune beside Slurm, and every run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rltune.config.deployment import LONG_CYCLE_S
from rltune.evaluation.intervals import FEWEST
from rltune.report.artefact import Artefact, Column
from rltune.report.artefacts import describe
from rltune.report.format import NBSP, show
from rltune.report.paper import PaperResults
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.deployment_words import HOUR_S, in_words, listed, short, sizes_in, times, who
from rltune.report.common import holm_note, with_holm
from rltune.report.verdict import RULE, TOO_FEW, TOO_SLOW, direction, verdict

NAN = float("nan")
MEASURES = {
    "makespan": ("Makespan", "h"),
    "utilisation": ("Utilisation", "%"),
    "wait": ("Mean wait", "s"),
    "jct": ("Mean JCT", "s"),
    "bsld": ("Mean bounded slowdown", ""),
}
"""Measure → (title, unit)."""
SCALE = {"makespan": 1 / HOUR_S, "utilisation": 100.0}
PAPER_KEY = {"makespan": "makespan", "utilisation": "utilisation", "wait": "wait"}
"""Measures that the paper prints a comparison of."""
TESTED = {"p": "p_holm"}
ON = {"easy": "simulator, EASY", "conservative": "simulator, conservative"}
"""Rule of backfilling → what a row of it was made on."""
Facts = Mapping[str, Any]


def deployment_numbers(
    compared: pd.DataFrame,
    paired: pd.DataFrame,
    machinery: pd.DataFrame,
    facts: Facts,
    cell: pd.Series,
    paper: PaperResults,
    block_jobs: int,
    confidence: float,
    learned: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-numbers`: one row a comparison × measure, with the paper's figure and the verdict.

    ``compared`` and ``paired`` as rltune.evaluation.deployment.compare and paired_runs give them, ``machinery`` as
    rltune.evaluation.deployment_machinery does; ``cell``: the row of rltune.report.read.cells of the agent; ``learned``:
    rltune.report.tables.comparison.learned_in of it. Where a scheduler's mean cycle is over LONG_CYCLE_S in any run there
    is no verdict.
    """
    slow = machinery.groupby("scheduler")["cycle_s"].max() > LONG_CYCLE_S
    hindered = [any(slow.get(row[side], False) for side in ("ours", "theirs")) for _, row in compared.iterrows()]
    printed = [_printed(row, paper) for _, row in compared.iterrows()]
    scale = compared["measure"].map(SCALE).fillna(1.0)
    tested = compared.assign(p=compared["p"].where(~np.array(hindered, dtype=bool)))
    frame = with_holm(tested, TESTED).assign(
        ours_title=compared["ours"].map(who),
        theirs_title=compared["theirs"].map(who),
        measure_title=[", ".join(filter(None, MEASURES[m])) for m in compared["measure"]],
        ours_mean=compared["ours_mean"] * scale,
        theirs_mean=compared["theirs_mean"] * scale,
        paper=printed,
        verdict=[
            (TOO_SLOW if late else verdict(p, r["low"], r["high"], int(r["windows"]))) if not np.isnan(p) else ""
            for p, late, (_, r) in zip(printed, hindered, compared.iterrows(), strict=True)
        ],
        shows=[_shown(row, late) for late, (_, row) in zip(hindered, compared.iterrows(), strict=True)],
        sequence_jobs=facts["jobs"],
        trace_title=facts["trace"],
        preset=cell["preset"],
        estimate=cell["estimate"],
        seed=cell["seed"],
        data=facts["data"],
        learned=learned,
    )
    busy = float((machinery["cycle_s"] / machinery["gap_s"]).mean())
    repetitions = int(paired["repetition"].nunique())
    printed_min = {who_: show(paper.value("fig18", f"{who_}.makespan_min"), "int") for who_ in ("slurm", "rltune")}
    columns = {
        "ours_title": Column("Scheduler"),
        "theirs_title": Column("Against"),
        "measure_title": Column("Measure"),
        "ours_mean": Column("Ours", "", "number"),
        "theirs_mean": Column("The other", "", "number"),
        "gain": Column("Better by", "", "percent", low="low", high="high"),
        "windows": Column("Repetitions", "", "int"),
        "shows": Column("Shown"),
    }
    if frame["p_holm"].notna().any():
        columns["p_holm"] = Column("Holm p", "", "p")
    columns |= {
        "paper": Column("The paper", "", "percent"),
        "verdict": Column("Verdict"),
        "block_low": Column(
            "From", "", "percent", "Within these repetitions", help="Interval of “Better by” by blocks."
        ),
        "block_high": Column("To", "", "percent", "Within these repetitions"),
        "blocks": Column("Blocks", "", "int", "Within these repetitions"),
        "dropped": Column(
            "Left out", "jobs", "int", help="Submissions without a start and an end under both schedulers."
        ),
    }
    return describe(
        "deployment-numbers",
        frame,
        paper,
        data=facts["data"],
        facts=facts,
        times=times(repetitions),
        lines=in_words(paired),
        repetitions=repetitions,
        cell=cell,
        block_jobs=block_jobs,
        too_slow=_too_slow(frame, machinery),
        fact=set(compared["theirs"]) != {"slurm"},
        busy=busy,
        printed_min=printed_min,
        value=paper.value("fig18", "jobs"),
        holm_note=holm_note(frame, TESTED, "over the others", confidence),
        confidence=confidence,
        more=columns,
    ), frame


def _shown(row: pd.Series, late: bool) -> str:
    if late:
        return TOO_SLOW
    return TOO_FEW if row["windows"] < FEWEST else direction(row["low"], row["high"], int(row["windows"]))


def _too_slow(frame: pd.DataFrame, machinery: pd.DataFrame) -> str:
    """Why comparisons have no verdict for their cycles; "" where none lacks it."""
    if not (frame["shows"] == TOO_SLOW).any():
        return ""
    mean = machinery.groupby("scheduler")["cycle_s"].max()
    told = listed(f"{short(s)} {show(v, 'seconds')} s" for s, v in mean[mean > LONG_CYCLE_S].items())
    return (
        f"“{TOO_SLOW}”: in a run of the scheduler a cycle of the controller took over {LONG_CYCLE_S:.0f} s of the "
        f"cluster’s clock in the mean ({told} in the slowest), so what was measured is the machine as much as the "
        "order. A lower `deployment.speed` shortens them."
    )


def _printed(row: pd.Series, paper: PaperResults) -> float:
    if (row["ours"], row["theirs"]) != ("rltune", "slurm") or row["measure"] not in PAPER_KEY:
        return NAN
    return paper.value("fig18", PAPER_KEY[row["measure"]])


def deployment_runs(
    runs: pd.DataFrame, simulated: pd.DataFrame, facts: Facts, missing: str
) -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-runs`: a row a scheduler × repetition on the Slurm cluster, then as many in the simulator under
    each rule of backfilling.

    ``runs`` (may be empty) and ``simulated`` as rltune.evaluation.deployment.per_run gives them. ``missing``: why runs are
    not there; "" where all are.
    """
    frame = pd.concat(
        [
            runs.assign(system="Slurm", system_title="Slurm") if len(runs) else runs,
            *(
                simulated[simulated["backfill"] == rule]
                .sort_values("repetition", kind="stable")
                .assign(system="simulator", system_title=title)
                for rule, title in ON.items()
            ),
        ],
        ignore_index=True,
    )
    waits = {"wait_s": "Mean", "wait_median_s": "Median", "wait_p95_s": f"95{NBSP}%", "wait_max_s": "Longest"}
    sizes = sizes_in(frame)
    in_hours = ["makespan_s", *waits, *sizes.values(), "last_wait_s", "jct_s"]
    frame = frame.assign(
        title=frame["scheduler"].map(short),
        data=facts["data"],
        **{_hours(column): frame[column] / HOUR_S for column in in_hours},
    )

    return describe(
        "deployment-runs",
        frame,
        data=facts["data"],
        len=len(runs),
        facts=facts,
        fact=POLICY_TITLE["multifactor_size"],
        missing=missing,
        more={_hours(column): Column(title, "h", "number", "Wait") for column, title in waits.items()},
        more2={_hours(column): Column(str(gpus), "h", "number", "Mean wait by GPUs") for gpus, column in sizes.items()},
    ), frame


def _hours(column: str) -> str:
    """`wait_s` → `wait_h`."""
    return f"{column.removesuffix('_s')}_h"
