"""What daemons, clock and controller took of the deployment's runs, in s of the cluster's clock where nothing else is said.

Frames of jobs as in rltune.evaluation.deployment.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.config.deployment import LONG_CYCLE_S
from rltune.evaluation.deployment import with_measures

TURN_S = 1.0
"""Jobs that waited at least as long count for the time from an end to a start."""


def machinery(jobs: pd.DataFrame, cycles: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """A row a scheduler × repetition.

    speed (asked for), true_s (of the run, on the true clock), drift_s (by which the cluster's clock was behind at the end),
    late_s and late_p95_s (from when a job was to be submitted to when Slurm had it), longer_s (how much longer jobs held
    their GPUs than they were to run, mean), turn_s (from the last end of a job to a start of one that waited, median);
    tries (until it went through to its end), retries (reasons), resumed (names of nodes that Slurm took out of service for
    a hanging process and that were set to work again, one for each time), code and policy (digests): NaN and empty where a run does
    not say; cycles, failed (of them), cycle_s and cycle_p95_s (time of a cycle), long_share (of those over LONG_CYCLE_S),
    gap_s (from the beginning of one to that of the next, mean), changed (priorities written): NaN without controller.
    """
    rows = []
    for (scheduler, repetition), all_of_it in jobs.groupby(["scheduler", "repetition"], sort=False):
        ran = with_measures(all_of_it)
        late = np.maximum(all_of_it["submit_s"] - all_of_it["at_s"], 0.0)
        of_it = facts[(facts["scheduler"] == scheduler) & (facts["repetition"] == repetition)].iloc[0]
        retries, resumed = (
            told if isinstance(told := of_it.get(name), list) else [] for name in ("retries", "resumed")
        )
        mine = (
            cycles[(cycles["scheduler"] == scheduler) & (cycles["repetition"] == repetition)] if len(cycles) else cycles
        )
        rows.append(
            {
                "scheduler": scheduler,
                "repetition": repetition,
                "speed": of_it["speed"],
                "true_s": of_it["true_s"],
                "drift_s": of_it.get("drift_s", np.nan),
                "late_s": late.mean(),
                "late_p95_s": late.quantile(0.95),
                "longer_s": (ran["end_s"] - ran["start_s"] - ran["run_s"]).mean(),
                "turn_s": _turn(ran),
                "tries": of_it.get("tries", np.nan),
                "retries": retries,
                "resumed": resumed,
                "code": of_it.get("code"),
                "policy": of_it.get("policy"),
                **_of_cycles(mine),
            }
        )
    return pd.DataFrame(rows)


def _of_cycles(mine: pd.DataFrame) -> dict[str, float]:
    """What :func:`machinery` says of a run's cycles."""
    known = mine[mine["took_s"].notna()] if len(mine) and "took_s" in mine else mine.iloc[:0]
    if not len(known):
        unknown = dict.fromkeys(("cycle_s", "cycle_p95_s", "long_share", "gap_s", "changed"), np.nan)
        return {"cycles": 0, "failed": 0, **unknown}
    took = known["took_s"]
    return {
        "cycles": len(known),
        "failed": int((~known["ok"].astype(bool)).sum()),
        "cycle_s": took.mean(),
        "cycle_p95_s": took.quantile(0.95),
        "long_share": (took > LONG_CYCLE_S).mean(),
        "gap_s": known["began_s"].sort_values().diff().mean(),
        "changed": float(known["changed"].sum()),
    }


def _turn(ran: pd.DataFrame) -> float:
    """Median time from the last end before it to the start of a job that waited."""
    ends = np.sort(ran["end_s"].to_numpy())
    starts = ran.loc[ran["wait_s"] >= TURN_S, "start_s"].to_numpy()
    before = np.searchsorted(ends, starts, side="right")
    gaps = starts[before > 0] - ends[before[before > 0] - 1]
    return float(np.median(gaps)) if len(gaps) else float("nan")
