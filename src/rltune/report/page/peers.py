"""Artefacts of the stage ``peers``: which a run's configuration has room for, and why not the others."""

from __future__ import annotations

from rltune.config import RunConfig
from rltune.config.comparisons import against_qssf, agent_of, by_features

PEERS = {
    "table8": "RLTune against QSSF, with backfilling",
    "fig17": "JCT of one long sequence, QSSF and RLTune",
    "fig17-numbers": "JCT of one long sequence in numbers",
    "table9": "Schedulers side by side",
    "table9-numbers": "RLTune against each of them",
    "sensitivity": "What the number of features is worth",
    "latency": "Time of a decision by the length of the queue",
    "break-even": "Cost of training against benefit",
}
"""Id → title."""
FIGURES = ("fig17", "sensitivity")


def absent(config: RunConfig) -> dict[str, str]:
    """Id → reason of each that the run's matrix cannot give."""
    reasons: dict[str, str] = {}
    if not any(agent_of(config, cell) == "rltune" for cell in config.cells()):
        reasons |= dict.fromkeys(("table9-numbers", "break-even"), "the run’s matrix has no agent of RLTune’s")
    if not against_qssf(config):
        reasons |= dict.fromkeys(
            ("table8", "fig17", "fig17-numbers"),
            "the run’s matrix has no agent of RLTune’s with EASY backfilling and estimates made of earlier jobs",
        )
    if not by_features(config):
        reasons["sensitivity"] = "the run’s matrix has no two agents of RLTune’s that differ in their feature set only"
    return reasons


def made(config: RunConfig) -> tuple[list[str], list[str]]:
    """(Tables, figures) that the stage writes."""
    ids = [name for name in PEERS if name not in absent(config)]
    return [name for name in ids if name not in FIGURES], [name for name in ids if name in FIGURES]
