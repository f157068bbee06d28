"""Figure 9: actor and critic, layer by layer, with the shapes they have here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.figures.flowchart import Arrow, Box, draw, frame_of
from rltune.report.format import show
from rltune.report.paper import PaperResults

FIRST, LAST, GAP = 1.0, 99.0, 3.0
INPUT, HIGH = 20.0, 13.6
ROWS = (1.0, 18.6)
"""Upper edges of the actor's boxes and of the critic's."""
LEGEND = {"data": "what is seen", "learning": "layers that learn", "result": "what comes out"}


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
    source: str = "",
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """The networks of an agent: a box a layer, with its shape and its number of weights.

    ``features``: name of the set; ``columns``, ``critic_columns``: what a row of actor and critic has; ``queue``: rows
    at most; ``actor``, ``critic``: units of every layer, the last 1, ``critic`` empty where there is none;
    ``base_policy_bias``: whether the base policy's order is added to the scores; ``others``: other agents of the
    run, in words.
    """
    boxes, arrows = _actor(features, len(columns), queue, actor, base_policy_bias)
    more = _critic(len(critic_columns), queue, critic) if critic else _no_critic()
    boxes, arrows = boxes + more[0], arrows + more[1]
    count = {"actor": weights(len(columns), actor), "critic": weights(queue * len(critic_columns), critic)}
    notes = [f"The actor sees of a job, in order: {', '.join(columns)}."]
    if critic:
        notes.append(f"The critic sees of a job: {', '.join(critic_columns)}.")
    if others:
        notes.append(f"Other agents of this run: {'; '.join(others)}.")
    reads = f"{show(count['critic'], 'int')} in the critic, which reads the whole queue at once"
    shapes = " then ".join(map(str, actor))
    artefact = Artefact(
        "fig9",
        "figure",
        "Actor and critic",
        paper_ref=paper.ref("fig9"),
        caption=f"The networks of this run’s first RLTune agent: {show(count['actor'], 'int')} weights in the actor, "
        f"the same for every job of the queue; {reads if critic else 'no critic'}. Shapes are for a full queue of "
        f"{queue} jobs; shorter ones are padded with zeros, which changes neither scores nor value.",
        source=source,
        notes=tuple(notes),
        alt=f"A diagram of two rows of boxes. Actor: {queue} rows of {len(columns)} features, layers of {shapes} "
        "units, softmax over the queue. "
        + (
            f"Critic: {queue} rows of {len(critic_columns)} features flattened, layers of "
            f"{' then '.join(map(str, critic))} units, one value."
            if critic
            else "There is no critic."
        ),
    )
    return artefact, frame_of(boxes, arrows), draw(boxes, arrows, LEGEND)


def weights(inputs: int, layers: Sequence[int]) -> int:
    """Kernels and biases of dense layers of these units behind so many inputs."""
    return sum((a + 1) * b for a, b in pairwise([inputs, *layers]))


def _layers(who: str, inputs: int, rows: int, units: Sequence[int], y: float, out: tuple[str, str]) -> list[Box]:
    """The dense layers of a network and what comes out, side by side behind the input's box."""
    n = len(units) + 1
    width = (LAST - FIRST - INPUT - n * GAP) / n
    at = [FIRST + INPUT + GAP + i * (width + GAP) for i in range(n)]
    boxes = []
    for i, (a, b) in enumerate(pairwise([inputs, *units])):
        last = i == len(units) - 1
        text = f"{rows} × {b}\n{'linear' if last else 'ReLU'}\n{show((a + 1) * b, 'int')}\nweights"
        boxes.append(Box(f"{who}-{i + 1}", f"Dense {b}", text, "learning", at[i], y, width, HIGH))
    return [*boxes, Box(f"{who}-out", *out, "result", at[-1], y, width, HIGH)]


def _chain(boxes: Sequence[Box]) -> list[Arrow]:
    return [Arrow(a.name, b.name, "right", "left") for a, b in pairwise(boxes)]


def _actor(
    features: str, width: int, queue: int, units: Sequence[int], base_policy_bias: bool
) -> tuple[list[Box], list[Arrow]]:
    seen = Box(
        "actor-in",
        "Actor: the queue",
        f"{queue} × {width}\nfeature set {features}\neach row by itself",
        "data",
        FIRST,
        ROWS[0],
        INPUT,
        HIGH,
    )
    last = "base order\nadded, then\nsoftmax" if base_policy_bias else "softmax\nover the\nqueue"
    boxes = [seen, *_layers("actor", width, queue, units, ROWS[0], ("Scores", last))]
    return boxes, _chain(boxes)


def _critic(width: int, queue: int, units: Sequence[int]) -> tuple[list[Box], list[Arrow]]:
    text = f"{queue} × {width}, flattened:\n{show(queue * width, 'int')} numbers,\nall rows at once"
    seen = Box("critic-in", "Critic: the queue", text, "data", FIRST, ROWS[1], INPUT, HIGH)
    out = ("Value", "reward to\nexpect")
    boxes = [seen, *_layers("critic", queue * width, 1, units, ROWS[1], out)]
    return boxes, _chain(boxes)


def _no_critic() -> tuple[list[Box], list[Arrow]]:
    told = "several rollouts of a sequence are compared with one another"
    return [Box("critic-none", "No critic", told, "data", FIRST, ROWS[1], LAST - FIRST, 7.0)], []
