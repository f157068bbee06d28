"""The deployment in figures (paper §5.6): each run on the Slurm cluster, runs against one another, simulator against Slurm.

Frames of jobs have a row a scheduler × repetition × job: ``scheduler``, ``repetition``, ``index`` (its place in the order of
submission; the same job under every scheduler), ``asked_gpus``, ``at_s`` (when it was to be submitted), ``submit_s``,
``start_s``, ``end_s`` (s since the run began; NaN where it did not happen), ``run_s`` (asked for), ``state``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.evaluation.intervals import Improvement
from rltune.evaluation.paired import Judge
from rltune.simulator.metrics import BSLD_FLOOR_S

COMPLETED = "COMPLETED"
BY_BLOCK = ("wait", "jct", "bsld")
"""Measures that are sums over jobs, and compared block by block of submissions …"""
BY_REPETITION = ("makespan", "utilisation")
"""… and those of which a repetition has one."""
MEASURES = (*BY_REPETITION, *BY_BLOCK)
TURN_S = 1.0
"""Jobs that waited at least as long count for the time from an end to a start."""


def with_measures(jobs: pd.DataFrame) -> pd.DataFrame:
    """The jobs that ran, with wait_s, jct_s (both from the submission as Slurm has it) and bsld."""
    ran = jobs[jobs["start_s"].notna() & jobs["end_s"].notna()]
    jct = ran["end_s"] - ran["submit_s"]
    bsld = np.maximum(1.0, jct / np.maximum(ran["run_s"], BSLD_FLOOR_S))
    return ran.assign(wait_s=np.maximum(ran["start_s"] - ran["submit_s"], 0.0), jct_s=jct, bsld=bsld)


def per_run(jobs: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """One row a scheduler × repetition: jobs, ``others`` (that ended otherwise than COMPLETED), makespan_s (first submission
    to last end), utilisation (GPU-seconds over GPUs × makespan), wait_s, wait_median_s, wait_p95_s, jct_s, bsld. Empty without jobs."""
    rows = []
    for (scheduler, repetition), all_of_it in jobs.groupby(["scheduler", "repetition"], sort=False) if len(jobs) else ():
        mine = with_measures(all_of_it)
        makespan = float(mine["end_s"].max() - all_of_it["submit_s"].min())
        area = float((mine["asked_gpus"] * (mine["end_s"] - mine["start_s"])).sum())
        rows.append({
            "scheduler": scheduler, "repetition": repetition, "jobs": len(all_of_it),
            "others": int((all_of_it["state"] != COMPLETED).sum()), "makespan_s": makespan,
            "utilisation": area / (gpus * makespan), "wait_s": mine["wait_s"].mean(),
            "wait_median_s": mine["wait_s"].median(), "wait_p95_s": mine["wait_s"].quantile(0.95),
            "jct_s": mine["jct_s"].mean(), "bsld": mine["bsld"].mean(),
        })  # fmt: skip
    return pd.DataFrame(rows)


def compare(jobs: pd.DataFrame, gpus: int, block_jobs: int, judge: Judge) -> pd.DataFrame:
    """One row a pair of schedulers × measure, RLTune against each of the others, then each of those against Slurm: ours,
    theirs, measure, windows, gain (fraction better: less, of utilisation more), low, high, p.

    Over the repetitions that both have. Of wait, jct and bsld a window is a block of ``block_jobs`` consecutive submissions
    of a repetition, of makespan and utilisation a repetition.
    """
    runs, schedulers = per_run(jobs, gpus), list(dict.fromkeys(jobs["scheduler"]))
    blocks = {name: _by_block(jobs, name, block_jobs) for name in schedulers}
    others = [name for name in schedulers if name != "rltune"]
    pairs = [("rltune", name) for name in others] + [(name, "slurm") for name in others if name != "slurm"]
    rows = []
    for ours, theirs in pairs:
        if not {ours, theirs} <= set(schedulers):
            continue
        for measure in MEASURES:
            if measure in BY_BLOCK:
                both = blocks[ours].join(blocks[theirs], how="inner", lsuffix="_ours", rsuffix="_theirs")
                x, y = (both[f"{measure}_{side}"].to_numpy(float) for side in ("ours", "theirs"))
            else:
                column = "makespan_s" if measure == "makespan" else measure
                sides = [runs[runs["scheduler"] == name].set_index("repetition")[column] for name in (ours, theirs)]
                x, y = pd.concat(sides, axis=1, join="inner").to_numpy(float).T
            found = judge.less(x, y)
            if measure == "utilisation":
                found = Improvement(-found.gain, -found.high, -found.low, found.p)
            rows.append({"ours": ours, "theirs": theirs, "measure": measure, "windows": len(x), **found._asdict()})
    return pd.DataFrame(rows)


def _by_block(jobs: pd.DataFrame, scheduler: str, block_jobs: int) -> pd.DataFrame:
    """Sums of the measures over each block [repetition, block], in order of time."""
    mine = with_measures(jobs[jobs["scheduler"] == scheduler])
    block = (mine["index"] // block_jobs).rename("block")
    sums = mine.groupby([mine["repetition"], block])[["wait_s", "jct_s", "bsld"]].sum()
    return sums.rename(columns={"wait_s": "wait", "jct_s": "jct"})


def in_use(jobs: pd.DataFrame, gpus: int, step_s: float) -> pd.DataFrame:
    """Utilisation over time: scheduler, repetition, hour (middle of the step, since the first submission), utilisation (mean
    share of the GPUs in use during the step, until the last end of any scheduler's run of the repetition), waiting (mean
    number of jobs that wait)."""
    frames = []
    for repetition, all_of_it in jobs.groupby("repetition", sort=True):
        edges = np.arange(0.0, float(all_of_it["end_s"].max()) + step_s, step_s)
        for scheduler, mine in with_measures(all_of_it).groupby("scheduler", sort=False):
            used = _area(edges, mine["start_s"], mine["end_s"], mine["asked_gpus"])
            queued = _area(edges, mine["submit_s"], mine["start_s"], pd.Series(1.0, mine.index))
            frames.append(pd.DataFrame({
                "scheduler": scheduler, "repetition": repetition, "hour": (edges[:-1] + step_s / 2) / 3600,
                "utilisation": used / (gpus * step_s), "waiting": queued / step_s,
            }))  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def _area(edges: np.ndarray, begin: pd.Series, end: pd.Series, weight: pd.Series) -> np.ndarray:
    """Weight × time of intervals inside each step between ``edges``."""
    inside = np.minimum(end.to_numpy()[:, None], edges[None, 1:]) - np.maximum(begin.to_numpy()[:, None], edges[None, :-1])
    return (np.maximum(inside, 0.0) * weight.to_numpy()[:, None]).sum(axis=0)


def machinery(jobs: pd.DataFrame, cycles: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """What the daemons and the controller took, a row a scheduler × repetition, in s of the cluster's clock.

    speed (asked for), true_s (of the run), tries (until it went through to its end), late_s and late_p95_s (from when a
    job was to be submitted to when Slurm had it), longer_s (how much longer jobs held their GPUs than they were to run,
    mean), turn_s (from the last end of a job to a start of one that waited, median), cycles, failed (of them), cycle_s and cycle_p95_s (time of a cycle; NaN without
    controller), changed (jobs given a priority).
    """
    rows = []
    for (scheduler, repetition), all_of_it in jobs.groupby(["scheduler", "repetition"], sort=False):
        ran = with_measures(all_of_it)
        late = np.maximum(all_of_it["submit_s"] - all_of_it["at_s"], 0.0)
        of_it = facts[(facts["scheduler"] == scheduler) & (facts["repetition"] == repetition)].iloc[0]
        row = {
            "scheduler": scheduler, "repetition": repetition, "speed": of_it["speed"], "true_s": of_it["true_s"],
            "tries": of_it.get("tries", 1),
            "late_s": late.mean(), "late_p95_s": late.quantile(0.95),
            "longer_s": (ran["end_s"] - ran["start_s"] - ran["run_s"]).mean(), "turn_s": _turn(ran),
        }  # fmt: skip
        mine = cycles[(cycles["scheduler"] == scheduler) & (cycles["repetition"] == repetition)] if len(cycles) else cycles
        known = mine[mine["took_s"].notna()] if len(mine) and "took_s" in mine else mine.iloc[:0]
        row |= {
            "cycles": len(known), "failed": int((~known["ok"].astype(bool)).sum()) if len(known) else 0,
            "cycle_s": known["took_s"].mean() if len(known) else np.nan,
            "cycle_p95_s": known["took_s"].quantile(0.95) if len(known) else np.nan,
            "changed": float(known["changed"].sum()) if len(known) else np.nan,
        }  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def _turn(ran: pd.DataFrame) -> float:
    """Median time from the last end before it to the start of a job that waited."""
    ends = np.sort(ran["end_s"].to_numpy())
    starts = ran.loc[ran["wait_s"] >= TURN_S, "start_s"].to_numpy()
    before = np.searchsorted(ends, starts, side="right")
    gaps = starts[before > 0] - ends[before[before > 0] - 1]
    return float(np.median(gaps)) if len(gaps) else float("nan")


def fidelity(measured: pd.DataFrame, simulated: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """The simulator beside Slurm, a row a scheduler × repetition that was measured: wait_s, makespan_s and utilisation of
    both (``…_slurm``, ``…_simulated``), ``…_error`` (simulated over measured − 1), ``rank`` (Spearman's correlation of the
    waits job by job; NaN where either are all alike), ``apart_s`` (mean absolute difference of a job's waits)."""
    ours, theirs = (per_run(frame, gpus).set_index(["scheduler", "repetition"]) for frame in (simulated, measured))
    key, rows = ["scheduler", "repetition", "index"], []
    both = with_measures(measured).set_index(key)[["wait_s"]].join(
        with_measures(simulated).set_index(key)["wait_s"], rsuffix="_simulated", how="inner"
    ).sort_index()  # fmt: skip
    for where, row in theirs.iterrows():
        if where not in ours.index:
            continue
        pair = both.loc[where]
        varied = all(pair[c].nunique() > 1 for c in pair)
        values = {
            "scheduler": where[0], "repetition": where[1], "jobs": len(pair),
            "rank": float(pair["wait_s"].corr(pair["wait_s_simulated"], method="spearman")) if varied else np.nan,
            "apart_s": float((pair["wait_s"] - pair["wait_s_simulated"]).abs().mean()),
        }  # fmt: skip
        for column in ("wait_s", "makespan_s", "utilisation"):
            measured_value, simulated_value = float(row[column]), float(ours.loc[where, column])
            values |= {f"{column}_slurm": measured_value, f"{column}_simulated": simulated_value,
                       f"{column}_error": simulated_value / measured_value - 1 if measured_value else np.nan}  # fmt: skip
        rows.append(values)
    return pd.DataFrame(rows)
