"""Tables in words: schedulers compared (Table 1), features (Table 3), policies (Table 5)."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.artefacts import describe
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


def table1(paper: PaperResults) -> tuple[Artefact, pd.DataFrame]:
    """Table 1: a row a scheduler as the paper has it, and one of this software (`row`: paper | ours)."""
    rows = [{"row": "paper", **s.model_dump()} for s in paper.schedulers] + [{"row": "ours", **OURS.model_dump()}]
    artefact = describe("table1", frame, paper)
    return artefact, pd.DataFrame(rows)


def table3(features: pd.DataFrame, paper: PaperResults) -> tuple[Artefact, pd.DataFrame]:
    """Table 3: a row a feature.

    ``features``: category, feature, definition, low, high, raw (bool), per (what it belongs to), sets (names of the
    feature sets with it, "critic" among them, parted by commas), source.
    """
    frame = features.copy()
    frame["kind"] = ["raw" if raw else "engineered" for raw in frame["raw"]]
    ranges = [f"{low:g} … {high:g}" for low, high in zip(frame["low"], frame["high"])]
    frame["range"] = [r.replace("-", "−").replace(" ", NBSP) for r in ranges]
    artefact = describe("table3", frame, paper)
    return artefact, frame


def table5(policies: pd.DataFrame, symbols: dict[str, str], paper: PaperResults) -> tuple[Artefact, pd.DataFrame]:
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
    artefact = describe("table5", frame, paper, upper=letters[0].upper(), fact=letters[1:])
    return artefact, frame
