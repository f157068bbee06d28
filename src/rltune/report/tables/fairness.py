"""How unequally users, virtual clusters and job sizes are treated, and who loses most."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.style import scheduler_title

NAMED = {"base": "Base: {}", "strong": "Best heuristic: {}", "rltune": "RLTune"}
INDICES = {"jain_bsld": "Jain’s index of slowdowns", "gini_wait": "Gini coefficient of waits"}


def scheduler_names(frame: pd.DataFrame) -> pd.Series:
    """`Base: FIFO`, `Best heuristic: SAF + EASY`, `RLTune`, of the columns scheduler, policy and backfill."""
    rows = zip(frame["scheduler"], frame["policy"], frame["backfill"], strict=True)
    return pd.Series([NAMED[s].format(scheduler_title(p, b)) for s, p, b in rows], index=frame.index, dtype=object)


def _unknown(without: dict[str, list[str]]) -> list[str]:
    return [f"{grouping} is unknown for the jobs of {', '.join(some)}." for grouping, some in without.items() if some]


def fairness(unequal: pd.DataFrame, without: dict[str, list[str]], confidence: float) -> tuple[Artefact, pd.DataFrame]:
    """The table `fairness-numbers`: one row per workload × grouping × scheduler.

    ``unequal``: workload, data, sequence_jobs, grouping, policy, backfill, and the columns of
    rltune.evaluation.groups.unequal. ``without``: grouping → workloads that do not have it. The frame is the same with
    `title` (the scheduler).
    """
    frame = unequal.assign(title=scheduler_names(unequal))
    facts = {"confidence": confidence, "unknown": _unknown(without), "indices": INDICES}
    return describe("fairness-numbers", frame, **facts), frame


def losers(found: pd.DataFrame, without: dict[str, list[str]]) -> tuple[Artefact, pd.DataFrame]:
    """The table `fairness-losers`: one row per workload × grouping × group that waits longer in total under RLTune than
    under the base policy, the largest first. ``found``: workload, data, grouping, policy, backfill (the base's) and the
    columns of rltune.evaluation.groups.losers; ``without`` as for `fairness`."""
    frame = found.assign(base=[scheduler_title(p, b) for p, b in zip(found["policy"], found["backfill"], strict=True)])
    return describe("fairness-losers", frame, unknown=_unknown(without)), frame
