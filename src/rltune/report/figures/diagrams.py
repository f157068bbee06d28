"""Figures 7 and 8: the system with the life of a job, and the training of an agent, as this software has them."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.figures.flowchart import Arrow, Box, draw, frame_of
from rltune.report.paper import PaperResults

LEFT, MIDDLE, RIGHT = 1.0, 35.0, 69.0
WIDE, HIGH, STEP = 30.0, 10.4, 14.4
LEGEND = {
    "data": "data",
    "simulator": "simulator",
    "optimisation": "optimisation",
    "learning": "learning",
    "result": "results",
}
"""Kinds of boxes as the legend calls them."""


def _box(name: str, title: str, text: str, kind: str, x: float, row: float, width: float = WIDE) -> Box:
    return Box(name, title, text, kind, x, 1 + STEP * row, width, HIGH)


SYSTEM = (
    _box(
        "traces",
        "Traces",
        "published logs, SWF, sacct,\nCSV, or generated; every row\nleft out is counted",
        "data",
        LEFT,
        0,
    ),
    _box(
        "workload",
        "Jobs and cluster",
        "cleaned, fitted to pools of nodes,\nwith estimates of run times",
        "data",
        MIDDLE,
        0,
    ),
    _box(
        "policy",
        "Base policy",
        "a heuristic’s order: which\n256 jobs are seen, and\nthe one to compare with",
        "simulator",
        LEFT,
        1,
    ),
    _box("queue", "1  Queue", "a job is submitted\nand waits", "simulator", MIDDLE, 1),
    _box(
        "features",
        "2  Features",
        "a row of numbers for each job,\nwhich ones: by the state\nof the cluster",
        "learning",
        MIDDLE,
        2,
    ),
    _box(
        "state", "State of the cluster", "free GPUs, CPUs, memory by\nnode; expected ends of jobs", "simulator", LEFT, 3
    ),
    _box("actor", "3  Actor", "scores each row;\nthe best job is next", "learning", MIDDLE, 3),
    _box(
        "placement",
        "4  Placement",
        "its nodes, jointly with the next\njobs’: a small integer program,\nor a simple rule",
        "optimisation",
        MIDDLE,
        4,
    ),
    _box(
        "cluster",
        "5  Cluster",
        "the job runs to its end;\nbehind one that does not fit\na backfill rule decides",
        "simulator",
        MIDDLE,
        5,
    ),
    _box("ppo", "PPO", "gradient steps towards what\ndid better than expected", "learning", RIGHT, 3),
    _box("reward", "Reward", "how much better than the\nbase policy on the same jobs", "learning", RIGHT, 4),
    _box("results", "6  Results", "wait, completion time,\nbounded slowdown,\nutilisation", "result", RIGHT, 5),
)
SYSTEM_ARROWS = (
    Arrow("traces", "workload", "right", "left"),
    Arrow("workload", "queue", label="submissions"),
    Arrow("policy", "queue", "right", "left"),
    Arrow("queue", "features", label="queued jobs"),
    Arrow("features", "actor", label="256 rows at most"),
    Arrow("actor", "placement", label="ranking"),
    Arrow("placement", "cluster", label="start"),
    Arrow("cluster", "state", "left", "bottom"),
    Arrow("state", "features", "top", "left"),
    Arrow("cluster", "results", "right", "left"),
    Arrow("results", "reward", "top", "bottom", dashed=True),
    Arrow("reward", "ppo", "top", "bottom", dashed=True),
    Arrow("ppo", "actor", "left", "right", dashed=True),
)

_BOTH = RIGHT - LEFT - 4
TRAINING = (
    _box(
        "sequences",
        "Sequences of consecutive jobs",
        "drawn anew every epoch from the training part; each starts on an idle cluster\n"
        "and is scheduled twice or more, by the rules of one simulator",
        "data",
        LEFT,
        0,
        _BOTH,
    ),
    _box("base-idle", "Base policy’s run", "the same jobs, once", "simulator", LEFT, 1),
    _box("base-rank", "1a  Rank", "the queue by the base policy;\nthe first job is next", "simulator", LEFT, 2),
    _box("base-place", "1b  Place", "nodes for that job, by the\nrule of the run", "optimisation", LEFT, 3),
    _box("base-score", "2  Score", "the metric over all jobs\nof the sequence", "result", LEFT, 4),
    _box("features", "0  Features", "of every queued job, from the\nstate at this decision", "learning", MIDDLE, 1),
    _box("draw", "1a  Draw", "the next job from the actor’s\nsoftmax over the queue", "learning", MIDDLE, 2),
    _box("place", "1b  Place", "nodes for that job, by the\nrule of the run", "optimisation", MIDDLE, 3),
    _box("score", "2  Score", "the same metric of each of\nthe agent’s rollouts", "result", MIDDLE, 4),
    _box(
        "reward",
        "Reward",
        "(base − agent) / the larger of both, for the whole sequence,\n"
        "or decision by decision: the waiting that came after it",
        "learning",
        LEFT,
        5,
        _BOTH,
    ),
    _box(
        "advantages",
        "Advantages",
        "against the critic’s value, or\nagainst other rollouts of the\nsame sequence",
        "learning",
        RIGHT,
        5,
    ),
    _box(
        "ppo",
        "PPO",
        "clipped gradient steps, until\nthe policy has moved far\nenough for one epoch",
        "learning",
        RIGHT,
        4,
    ),
    _box("weights", "Actor’s weights", "one small network,\nthe same for every job", "learning", RIGHT, 2),
    _box(
        "validation",
        "Validation",
        "every few epochs, greedy, on\nwindows of the validation part",
        "simulator",
        RIGHT,
        1,
    ),
    _box("file", "Policy file", "the weights that did best there;\nthe test part is never read", "result", RIGHT, 0),
)
TRAINING_ARROWS = (
    Arrow("sequences", "base-idle"),
    Arrow("base-idle", "base-rank"),
    Arrow("base-rank", "base-place"),
    Arrow("base-place", "base-score", label="until all have started"),
    Arrow("base-score", "reward", label="base"),
    Arrow("sequences", "features"),
    Arrow("features", "draw"),
    Arrow("draw", "place"),
    Arrow("place", "score", label="until all have started"),
    Arrow("score", "reward", label="agent"),
    Arrow("reward", "advantages", "right", "left"),
    Arrow("advantages", "ppo", "top", "bottom"),
    Arrow("ppo", "weights", "top", "bottom", "once an epoch"),
    Arrow("weights", "draw", "left", "right"),
    Arrow("weights", "validation", "top", "bottom", dashed=True),
    Arrow("validation", "file", "top", "bottom", dashed=True),
)


def fig7(paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """The system, and the life of a job in it."""
    artefact = describe("fig7", frame, paper)
    return artefact, frame_of(SYSTEM, SYSTEM_ARROWS), draw(SYSTEM, SYSTEM_ARROWS, LEGEND)


def fig8(paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """One epoch of training: two runs of the same jobs, their gap, and what is made of it."""
    artefact = describe("fig8", frame, paper)
    return artefact, frame_of(TRAINING, TRAINING_ARROWS), draw(TRAINING, TRAINING_ARROWS, LEGEND)
