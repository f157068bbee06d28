"""The overhead of daemons, clock and controller in the deployment's runs, in s of the cluster's clock unless stated.

Frames of jobs as in rltune.evaluation.studies.deployment.
"""

import numpy as np
import pandas as pd

from rltune.config.deployment import LONG_CYCLE_S
from rltune.evaluation.studies.deployment import RUN, with_measures

TURN_S = 1.0
"""Jobs that waited at least as long count for the time from an end to a start."""
FACTS = ("speed", "true_s", "drift_s", "tries", "retries", "resumed", "code", "policy")
"""What a run records of itself that is passed on."""


def machinery(jobs: pd.DataFrame, cycles: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """One row per scheduler × repetition.

    speed (asked for), true_s (real seconds of the run), drift_s (how far the cluster's clock was behind at the end), late_s
    and late_p95_s (from a job's planned submission until Slurm had it), longer_s (how much longer jobs held their GPUs than
    they ran, mean), turn_s (from the last end of a job to the start of one that waited, median); tries, retries (reasons),
    resumed (nodes that Slurm took out of service for a hanging process and that were resumed, once per time), code and policy
    (digests); cycles, failed (of them), cycle_s and cycle_p95_s (duration of a cycle), long_share (of those over
    LONG_CYCLE_S), gap_s (from one cycle's beginning to the next, mean), changed (priorities
    written): NaN without a controller.
    """
    rows, known = [], facts.set_index(RUN).sort_index()
    by_run = dict(list(cycles.groupby(RUN))) if len(cycles) else {}
    for key, submitted in jobs.groupby(RUN, sort=False):
        ran, fact = with_measures(submitted), known.loc[key]
        late = np.maximum(submitted["submit_s"] - submitted["at_s"], 0.0)
        rows.append(
            {
                **dict(zip(RUN, key, strict=True)),
                **fact[list(FACTS)],
                "late_s": late.mean(),
                "late_p95_s": late.quantile(0.95),
                "longer_s": (ran["end_s"] - ran["start_s"] - ran["lasts_s"]).mean(),
                "turn_s": _turn(ran),
                **_of_cycles(by_run.get(key, pd.DataFrame())),
            }
        )
    return pd.DataFrame(rows)


def _of_cycles(cycles: pd.DataFrame) -> dict[str, float]:
    """What :func:`machinery` says of a run's cycles."""
    known = cycles[cycles["took_s"].notna()] if "took_s" in cycles else cycles
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
