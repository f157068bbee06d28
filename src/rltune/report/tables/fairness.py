"""Who pays: how unequally users, virtual clusters and job sizes are treated, and who loses most."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.style import scheduler_title
from rltune.report.tables.common import FIRST_SEED, OVER_WINDOWS, data_labels


def scheduler_names(frame: pd.DataFrame) -> pd.Series:
    """`Base: FIFO`, `Best heuristic: SAF + EASY`, `RLTune`, of the columns scheduler, policy and backfill."""
    named = {"base": "Base: {}", "strong": "Best heuristic: {}", "rltune": "RLTune"}
    return pd.Series(
        [
            named[s].format(scheduler_title(p, b))
            for s, p, b in zip(frame["scheduler"], frame["policy"], frame["backfill"], strict=True)
        ],
        index=frame.index,
        dtype=object,
    )


def fairness(
    unequal: pd.DataFrame, without: dict[str, list[str]], confidence: float, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """The table `fairness-numbers`: one row a workload × grouping × scheduler.

    ``unequal``: workload, data, sequence_jobs, grouping, policy, backfill, and the columns of
    rltune.evaluation.groups.unequal. ``without``: grouping → workloads that do not have it. The frame is the same with
    `title` (the scheduler).
    """
    frame = unequal.assign(title=scheduler_names(unequal))
    columns = {
        "workload": Column("Workload"),
        "grouping": Column("Groups by"),
        "groups": Column("Groups", "", "int"),
        "title": Column("Scheduler"),
    }
    for index, group, more in (
        ("jain_bsld", "Jain’s index of slowdowns", "More: more alike."),
        ("gini_wait", "Gini coefficient of waits", "More: less alike."),
    ):
        columns |= {
            index: Column("Value", "", "number", group, f"{index}_low", f"{index}_high"),
            f"more_{index}": Column(
                "More than under base", "", "number", group, f"more_{index}_low", f"more_{index}_high", help=more
            ),
        }
    columns["windows"] = Column("Windows", "", "int", help="Disjoint windows of the test part, evenly spread over it.")
    return Artefact(
        "fairness-numbers",
        "table",
        "How unequally groups of jobs are treated",
        caption="Jain’s index of the groups’ mean bounded slowdowns (1: all alike; 1 over the number of groups: one "
        "has all) and Gini’s coefficient of their mean waits (0: all alike, towards 1: few wait for all), every group "
        f"counting once. Brackets: {100 * confidence:.0f} % interval over windows; of differences, paired.",
        data=data_labels(frame),
        source=source,
        columns=columns,
        notes=(
            *(
                f"No {grouping} is known of the jobs of {', '.join(workloads)}: no rows."
                for grouping, workloads in without.items()
                if workloads
            ),
            "Jobs whose user or virtual cluster is not known are one group. Windows start from an idle cluster, so a "
            "user’s history of use is short.",
            f"{FIRST_SEED} {OVER_WINDOWS}",
        ),
    ), frame


def losers(found: pd.DataFrame, without: dict[str, list[str]], source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """The table `fairness-losers`: one row a workload × grouping × group that waits longer in all under RLTune than
    under the base policy, the largest first. ``found``: workload, data, grouping, policy, backfill (the base's) and the
    columns of rltune.evaluation.groups.losers; ``without`` as for `fairness`."""
    frame = found.assign(base=[scheduler_title(p, b) for p, b in zip(found["policy"], found["backfill"], strict=True)])
    return Artefact(
        "fairness-losers",
        "table",
        "Who waits longer with RLTune",
        caption="The groups with the most hours of waiting added by RLTune, over all of their jobs of the test "
        "windows, beside its base policy.",
        data=data_labels(frame),
        source=source,
        columns={
            "workload": Column("Workload"),
            "grouping": Column("Groups by"),
            "group": Column("Group"),
            "jobs": Column("Jobs", "", "int"),
            "more_h": Column("Wait added", "h", "number"),
            "base": Column("Base policy"),
            "base_wait_s": Column("Base", "s", "seconds", "Mean wait"),
            "wait_s": Column("RLTune", "s", "seconds", "Mean wait"),
            "base_bsld": Column("Base", "", "number", "Mean bounded slowdown"),
            "bsld": Column("RLTune", "", "number", "Mean bounded slowdown"),
        },
        notes=(
            *(
                f"No {grouping} is known of the jobs of {', '.join(workloads)}."
                for grouping, workloads in without.items()
                if workloads
            ),
            "Picked as the largest of many, these are in part chance: with other windows, other groups would lead.",
            FIRST_SEED,
        ),
    ), frame
