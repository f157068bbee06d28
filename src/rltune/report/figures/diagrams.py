"""Figures 7 to 9: the system with the life of a job, one epoch of training, and the networks of the run's agent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pandas as pd

from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.templates import fill

DIAGRAMS = files("rltune.report").joinpath("page", "diagrams")


def fig7(paper: PaperResults) -> Drawing:
    """The system with the life of a job: a committed drawing; the frame has its words."""
    return _committed("fig7", paper)


def fig8(paper: PaperResults) -> Drawing:
    """One epoch of training: a committed drawing; the frame has its words."""
    return _committed("fig8", paper)


def _committed(name: str, paper: PaperResults) -> Drawing:
    svg = DIAGRAMS.joinpath(f"{name}.svg").read_text(encoding="utf-8")
    frame = pd.DataFrame({"text": re.findall(r">([^<]+)</text>", svg)})
    return describe(name, frame, paper), frame, svg


def fig9(network: Mapping[str, Any], paper: PaperResults) -> Drawing:
    """The networks of an agent: a box per layer, with its shape and its number of weights; the frame has a row for each.

    ``network``: as rltune.evaluation.studies.system.network gives it.
    """
    queue, columns, flat = network["queue"], network["columns"], network["queue"] * len(network["critic_columns"])
    seen = [f"{queue} × {len(columns)}", f"feature set {network['features']}", "each row separately"]
    last = ("base order", "added, then", "softmax") if network["base_policy_bias"] else ("softmax", "over the", "queue")
    layers = {"Actor": layers_of(len(columns), network["actor"]), "Critic": layers_of(flat, network["critic"])}
    drawn = [
        {"title": "Actor: the queue", "rows": queue, "input": seen, "layers": layers["Actor"], "out": ("Scores", *last)}
    ]
    if network["critic"]:
        seen = [
            f"{queue} × {len(network['critic_columns'])}, flattened:",
            f"{show(flat, 'int')} numbers,",
            "all rows at once",
        ]
        out = ("Value", "expected", "reward")
        drawn.append({"title": "Critic: the queue", "rows": 1, "input": seen, "layers": layers["Critic"], "out": out})
    frame = pd.DataFrame([{"network": name, **row} for name, rows in layers.items() for row in rows])
    weights = {f"{name.lower()}_weights": sum(row["weights"] for row in rows) for name, rows in layers.items()}
    return describe("fig9", frame, paper, **network, **weights), frame, fill("fig9.svg.j2", networks=drawn)


def layers_of(inputs: int, units: Sequence[int]) -> list[dict[str, int]]:
    """Units of dense layers after so many inputs, and the weights of each, kernel and bias."""
    return [{"units": b, "weights": (a + 1) * b} for a, b in pairwise([inputs, *units])]
