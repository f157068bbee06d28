"""Tables in words: schedulers compared (Table 1), features (Table 3), policies (Table 5)."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import NBSP
from rltune.report.paper import PaperResults, PaperScheduler

OURS = PaperScheduler(
    name="RLTune, this software",
    decides_by="reinforcement learning and a mixed-integer program",
    gpu_types="yes",
    application_agnostic="yes",
    no_profiling="yes",
    adapts="yes",
    preempts="no",
    elastic="no",
)
"""Of this project: it asks for GPU types, run-time estimates and resources alone, and simulates rigid jobs."""
BACKFILL = (
    "Behind a first job that does not fit may start, by the run’s backfill rule: nothing (none); whatever fits (greedy); "
    "under EASY backfilling, what does not delay that job’s reservation; under conservative backfilling, what delays "
    "no "
    "reservation, and every job before it has one. Any policy goes with any of these."
)


def table1(paper: PaperResults, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """Table 1: a row a scheduler as the paper has it, and one of this software (`row`: paper | ours)."""
    rows = [{"row": "paper", **s.model_dump()} for s in paper.schedulers] + [{"row": "ours", **OURS.model_dump()}]
    artefact = Artefact(
        "table1",
        "table",
        "Job schedulers compared",
        paper_ref=paper.ref("table1"),
        caption="What each scheduler knows and may do, as the paper judges it; the last row is this software, in the "
        "same "
        "terms.",
        source=source,
        columns={
            "name": Column("Scheduler"),
            "row": Column("Row"),
            "decides_by": Column("Decides by"),
            "gpu_types": Column("GPU types", help="Whether it knows that GPUs differ."),
            "application_agnostic": Column("Any application", help="Without knowing what a job computes."),
            "no_profiling": Column("No profiling", help="Without measurements or models of jobs made beforehand."),
            "adapts": Column("Adapts", help="Whether its policy changes with what happens."),
            "preempts": Column("Pre-empts", help="Whether it stops running jobs for others."),
            "elastic": Column("Elastic", help="Whether it changes how many GPUs a running job has."),
        },
        notes=(
            "This software needs nothing of a job but what was asked for and an estimate of its run time, which may be "
            "the user’s own limit or a prediction from earlier jobs; the paper would call the latter history, as "
            "QSSF’s.",
            "Its policy adapts by reading the state of queue and cluster at every decision. Its weights are fixed once "
            "trained; it does not learn on while it schedules.",
        ),
    )
    return artefact, pd.DataFrame(rows)


def table3(features: pd.DataFrame, paper: PaperResults, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """Table 3: a row a feature.

    ``features``: category, feature, definition, low, high, raw (bool), per (what it belongs to), sets (names of the
    feature sets with it, "critic" among them, parted by commas), source.
    """
    frame = features.copy()
    frame["kind"] = ["raw" if raw else "engineered" for raw in frame["raw"]]
    ranges = [f"{low:g} … {high:g}" for low, high in zip(frame["low"], frame["high"])]
    frame["range"] = [r.replace("-", "−").replace(" ", NBSP) for r in ranges]
    artefact = Artefact(
        "table3",
        "table",
        "Features by category",
        paper_ref=paper.ref("table3"),
        caption="Every number that an agent can see of a queued job, in the paper’s categories, as it is computed "
        "here, "
        "with the feature sets that have it. All are without unit, scaled to about 0 to 1. Raw: one fact, only scaled; "
        "engineered: computed of several.",
        source=source,
        columns={
            "category": Column("Category"),
            "feature": Column("Feature"),
            "definition": Column("Definition"),
            "range": Column("Range"),
            "kind": Column("Kind"),
            "sets": Column("In the sets"),
            "source": Column("From", help="T3: the paper’s Table 3."),
        },
        notes=(
            "Seconds are estimated ones; free is now; seen are the jobs whose rows the agent gets.",
            "The paper’s list also has the job’s id and its user. No network sees them: they are names, kept beside "
            "the "
            "rows to tell jobs and fair shares apart.",
        ),
    )
    return artefact, frame


def table5(
    policies: pd.DataFrame, symbols: dict[str, str], paper: PaperResults, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """Table 5: a row a policy.

    ``policies``: policy, title, formula ("" of one's own), letters (those in the formula, parted by commas), dynamic
    (bool, whether scores change with time), in_table5, source, remark, role (what it is in this run, "" for nothing).
    ``symbols``: letter → what it stands for.
    """
    frame = policies.copy()
    frame["characteristics"] = [
        ", ".join(symbols[letter] for letter in letters.split(", ") if letter) for letters in frame["letters"]
    ]
    frame["ranked"] = ["at every decision" if dynamic else "once" for dynamic in frame["dynamic"]]
    frame["paper_has"] = ["yes" if there else "" for there in frame["in_table5"]]
    letters = "; ".join(f"{letter} {meaning}" for letter, meaning in symbols.items())
    artefact = Artefact(
        "table5",
        "table",
        "Scheduling policies",
        paper_ref=paper.ref("table5"),
        caption="How every heuristic scores a queued job; the lowest score goes first, ties by submission. "
        f"{letters[0].upper()}{letters[1:]}; times in seconds, d a day.",
        source=source,
        columns={
            "title": Column("Policy"),
            "formula": Column("Score, lower first"),
            "characteristics": Column("Goes by"),
            "ranked": Column("Ranked", help="Whether scores change with time."),
            "paper_has": Column("In the paper’s table"),
            "source": Column("From"),
            "remark": Column("Remark"),
            "role": Column("In this run"),
        },
        notes=(
            BACKFILL,
            "QSSF is smallest area first (SAF) with run times predicted from earlier jobs in place of the users’.",
            "Fair share is 2 to the power of −U/S, U the account’s part of all GPU-seconds used, older use halved "
            "every "
            "7 days, S its part of the shares.",
        ),
    )
    return artefact, frame
