"""Figures 7 to 9: the system with the life of a job, one epoch of training, and the networks of the run's agent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.templates import fill

DIAGRAMS = files("rltune.report").joinpath("page", "diagrams")


def fig7(paper: PaperResults) -> tuple[Artefact, pd.DataFrame, str]:
    """The system with the life of a job: a committed drawing; the frame has its words."""
    return _committed("fig7", paper)


def fig8(paper: PaperResults) -> tuple[Artefact, pd.DataFrame, str]:
    """One epoch of training: a committed drawing; the frame has its words."""
    return _committed("fig8", paper)


def _committed(name: str, paper: PaperResults) -> tuple[Artefact, pd.DataFrame, str]:
    svg = DIAGRAMS.joinpath(f"{name}.svg").read_text(encoding="utf-8")
    frame = pd.DataFrame({"text": re.findall(r">([^<]+)</text>", svg)})
    return describe(name, frame, paper), frame, svg


def fig9(
    features: str,
    columns: Sequence[str],
    critic_columns: Sequence[str],
    queue: int,
    actor: Sequence[int],
    critic: Sequence[int],
    base_policy_bias: bool,
    others: Sequence[str],
    paper: PaperResults,
) -> tuple[Artefact, pd.DataFrame, str]:
    """The networks of an agent: a box per layer, with its shape and its number of weights; the frame has a row for each.

    ``features``: name of the set; ``columns``, ``critic_columns``: what a row of actor and critic has; ``queue``: rows
    at most; ``actor``, ``critic``: units of every layer, the last 1, ``critic`` empty where there is none;
    ``base_policy_bias``: whether the base policy's order is added to the scores; ``others``: other agents of the run, in words.
    """
    seen = [f"{queue} × {len(columns)}", f"feature set {features}", "each row separately"]
    last = ("base order", "added, then", "softmax") if base_policy_bias else ("softmax", "over the", "queue")
    layers = _layers(len(columns), actor)
    networks: list[dict[str, Any]] = [
        {"title": "Actor: the queue", "rows": queue, "input": seen, "layers": layers, "out": ("Scores", *last)}
    ]
    if critic:
        flat = queue * len(critic_columns)
        seen = [f"{queue} × {len(critic_columns)}, flattened:", f"{show(flat, 'int')} numbers,", "all rows at once"]
        out, layers = ("Value", "expected", "reward"), _layers(flat, critic)
        networks.append({"title": "Critic: the queue", "rows": 1, "input": seen, "layers": layers, "out": out})
    frame = pd.DataFrame(
        [{"network": net["title"].partition(":")[0], **row} for net in networks for row in net["layers"]]
    )
    artefact = describe(
        "fig9",
        frame,
        paper,
        queue=queue,
        columns=columns,
        critic_columns=critic_columns,
        actor=actor,
        critic=critic,
        others=others,
        actor_weights=weights(len(columns), actor),
        critic_weights=weights(queue * len(critic_columns), critic),
    )
    return artefact, frame, fill("fig9.svg.j2", networks=networks)


def weights(inputs: int, layers: Sequence[int]) -> int:
    """Kernels and biases of dense layers of these units after so many inputs."""
    return sum((a + 1) * b for a, b in pairwise([inputs, *layers]))


def _layers(inputs: int, units: Sequence[int]) -> list[dict[str, int]]:
    return [{"units": b, "weights": (a + 1) * b} for a, b in pairwise([inputs, *units])]
