"""Tables in words: schedulers compared (Table 1), features (Table 3), policies (Table 5)."""

import pandas as pd

from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.format import NBSP
from rltune.report.paper import PaperResults, PaperScheduler

KNOWS = ("gpu_types", "application_agnostic", "no_profiling", "adapts")
OURS = PaperScheduler(
    name="RLTune, this software",
    decides_by="reinforcement learning and a mixed-integer program",
    **dict.fromkeys(KNOWS, "yes"),
    **dict.fromkeys(("preempts", "elastic"), "no"),
)
"""This project: it needs only GPU types, run-time estimates and resources, and simulates rigid jobs."""


def table1(paper: PaperResults) -> Table:
    """Table 1: a row per scheduler of the paper, and one of this software (`row`: paper | ours)."""
    rows = [{"row": "paper", **s.model_dump()} for s in paper.schedulers] + [{"row": "ours", **OURS.model_dump()}]
    frame = pd.DataFrame(rows)
    return describe("table1", frame, paper), frame


def table3(features: pd.DataFrame, paper: PaperResults) -> Table:
    """Table 3: a row per feature.

    ``features``: category, feature, definition, low, high, raw (bool), per (what it belongs to), sets (names of the
    feature sets with it, "critic" among them, separated by commas), source.
    """
    ranges = [f"{low:g} … {high:g}" for low, high in zip(features["low"], features["high"])]
    frame = features.assign(
        kind=features["raw"].map({True: "raw", False: "engineered"}),
        range=[r.replace("-", "−").replace(" ", NBSP) for r in ranges],
    )
    return describe("table3", frame, paper), frame


def table5(policies: pd.DataFrame, symbols: dict[str, str], paper: PaperResults) -> Table:
    """Table 5: a row per policy.

    ``policies``: policy, title, formula ("" of custom ones), letters (those in the formula, separated by commas),
    dynamic (bool, whether scores change with time), in_table5, source, remark, role (in this run, "" for none).
    ``symbols``: letter → its meaning.
    """
    frame = policies.assign(
        characteristics=[", ".join(symbols[a] for a in letters.split(", ") if a) for letters in policies["letters"]],
        ranked=policies["dynamic"].map({True: "at every decision", False: "once"}),
        paper_has=policies["in_table5"].map({True: "yes", False: ""}),
    )
    explained = "; ".join(f"{letter} {meaning}" for letter, meaning in symbols.items())
    return describe("table5", frame, paper, symbols=explained[0].upper() + explained[1:]), frame
