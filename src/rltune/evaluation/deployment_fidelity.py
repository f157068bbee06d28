"""What the simulator says of the deployment's jobs, beside what Slurm did with them.

Frames of jobs as in rltune.evaluation.deployment; those of the simulator have ``backfill`` too, a rule of backfilling, and a
row for each.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.evaluation.deployment import COLUMN, JOB, Pair, pairs_of, per_run, with_measures

KEY = ["scheduler", "repetition"]
PREDICTED = ("wait", "makespan")
"""Measures whose gain is compared with the one the simulator predicts."""


def fidelity(measured: pd.DataFrame, simulated: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """A row a scheduler × repetition that was measured: jobs, wait_s and makespan_s on Slurm (``…_slurm``) and in the
    simulator under each rule (``…_easy``, ``…_conservative``), ``…_easy_error`` (simulated over measured − 1), ``rank_easy``
    (Spearman's correlation of the waits job by job; NaN where either are all alike). Over the jobs with a start and an end
    on Slurm."""
    rows = []
    for where, mine in with_measures(measured).groupby(KEY, sort=False):
        row = dict(zip(KEY, where, strict=True))
        there = simulated[(simulated["scheduler"] == where[0]) & (simulated["repetition"] == where[1])]
        if not len(there):
            continue
        mine = mine.set_index(JOB)
        theirs = per_run(mine.reset_index(), gpus).iloc[0]
        row["jobs"] = len(mine)
        row |= {f"{column}_slurm": float(theirs[column]) for column in ("wait_s", "makespan_s")}
        for rule, frame in there.groupby("backfill", sort=False):
            told = with_measures(frame).set_index(JOB).loc[mine.index]
            ours = per_run(told.reset_index(), gpus).iloc[0]
            for column in ("wait_s", "makespan_s"):
                error = ours[column] / theirs[column] - 1 if theirs[column] else np.nan
                row |= {f"{column}_{rule}": float(ours[column]), f"{column}_{rule}_error": float(error)}
            waits = [mine["wait_s"], told["wait_s"]]
            varied = all(side.nunique() > 1 for side in waits)
            row[f"rank_{rule}"] = float(waits[0].corr(waits[1], method="spearman")) if varied else np.nan
        rows.append(row)
    return pd.DataFrame(rows)


def predicted(measured: pd.DataFrame, simulated: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """A row a pair of schedulers (rltune.evaluation.deployment.pairs_of) × measure of PREDICTED: ours, theirs, measure,
    repetitions, gain (fraction less on Slurm), and of each rule of the simulator ``gain_<rule>`` for the same jobs and
    ``agrees_<rule>`` (1 where it has the sign of ``gain``, else 0); NaN where theirs is nothing."""
    rows = []
    for ours, theirs in pairs_of(list(dict.fromkeys(measured["scheduler"])) if len(measured) else []):
        pair = Pair.of(measured, ours, theirs)
        if not len(pair.ours):
            continue
        same = pair.ours.set_index(JOB).index
        runs = {"gain": pair.runs(gpus)}
        for rule, frame in simulated.groupby("backfill", sort=False):
            by_job = {name: side.set_index(JOB) for name, side in frame.groupby("scheduler")}
            runs[f"gain_{rule}"] = tuple(per_run(by_job[name].loc[same].reset_index(), gpus) for name in (ours, theirs))
        for measure in PREDICTED:
            gains = {name: _gain(x[COLUMN[measure]], y[COLUMN[measure]]) for name, (x, y) in runs.items()}
            agrees = {
                name.replace("gain", "agrees"): np.nan
                if np.isnan(gain * gains["gain"])
                else float(np.sign(gain) == np.sign(gains["gain"]))
                for name, gain in gains.items()
                if name != "gain"
            }
            rows.append(
                {
                    "ours": ours,
                    "theirs": theirs,
                    "measure": measure,
                    "repetitions": len(runs["gain"][0]),
                    **gains,
                    **agrees,
                }
            )
    return pd.DataFrame(rows)


def _gain(ours: pd.Series, theirs: pd.Series) -> float:
    """1 − Σ ours / Σ theirs; NaN where theirs is nothing."""
    total = float(theirs.sum())
    return 1 - float(ours.sum()) / total if total > 0 else float("nan")
