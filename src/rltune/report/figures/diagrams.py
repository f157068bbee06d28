"""Figures 7 to 9: the system with the life of a job, one epoch of training, and the networks of the run's agent."""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pandas as pd

from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.paper import PaperResults
from rltune.report.templates import fill

DIAGRAMS = files("rltune.report").joinpath("page", "diagrams")


def diagram(name: str, paper: PaperResults) -> Drawing:
    """The system with the life of a job (fig7), or one epoch of training (fig8): a committed drawing; the frame has its
    words."""
    svg = DIAGRAMS.joinpath(f"{name}.svg").read_text(encoding="utf-8")
    frame = pd.DataFrame({"text": re.findall(r">([^<]+)</text>", svg)})
    return describe(name, frame, paper), frame, svg


def fig9(network: Mapping[str, Any], paper: PaperResults) -> Drawing:
    """The networks of an agent: a box per layer, with its shape and its number of weights; the frame has a row for each.

    ``network``: as rltune.evaluation.studies.system.network gives it.
    """
    flat = network["queue"] * len(network["critic_columns"])
    layers = {
        "Actor": layers_of(len(network["columns"]), network["actor"]),
        "Critic": layers_of(flat, network["critic"]),
    }
    frame = pd.DataFrame([{"network": name, **row} for name, rows in layers.items() for row in rows])
    weights = {f"{name.lower()}_weights": sum(row["weights"] for row in rows) for name, rows in layers.items()}
    svg = fill("fig9.svg.j2", layers=layers, flat=flat, **network)
    return describe("fig9", frame, paper, **network, **weights), frame, svg


def layers_of(inputs: int, units: Sequence[int]) -> list[dict[str, int]]:
    """Units of dense layers after ``inputs``, and the weights of each, kernel and bias."""
    return [{"units": b, "weights": (a + 1) * b} for a, b in pairwise([inputs, *units])]
