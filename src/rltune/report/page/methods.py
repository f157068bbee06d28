"""What the chapter on methods and data takes from the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from rltune.config import Workspace
from rltune.evaluation.intervals import FEWEST
from rltune.report.format import show
from rltune.report.style import POLICY_TITLE


@dataclass(frozen=True)
class Source:
    """One trace: what its rows are and where they are from."""

    title: str
    data: str
    format: str
    licence: str
    citation: str
    clusters: list[str]
    """Titles of the clusters that the run puts it on."""


@dataclass(frozen=True)
class Methods:
    """The run's own figures in the description of its methods; words, where a list would be too long."""

    train: str
    """Share of the jobs, in time, for training and validation."""
    validation: str
    test: str
    lengths: str
    """Of test windows, in jobs."""
    windows: str
    """How many of each, in words."""
    policies: str
    backfills: str
    """Of the heuristics."""
    rivals: int
    """Policies times backfills."""
    bootstrap: str
    confidence: str
    fewest: int
    """Fewer windows have no verdict."""
    estimates: str
    sticky_head: bool
    overrun: str
    multi_node_slowdown: float
    interference_slowdown: float
    seeds: str
    sources: list[Source]


def methods(workspace: Workspace) -> Methods:
    """Everything the chapter says that a configuration can change."""
    config = workspace.config
    split, judging, rules = config.split, config.evaluation, config.simulation
    cells = config.cells()
    return Methods(
        train=show(split.train, "percent"),
        validation=show(split.validation, "percent"),
        test=show(1 - split.train, "percent"),
        lengths=_listed([show(n, "int") for n in sorted(judging.sequence_jobs)]),
        windows="all that fit"
        if judging.max_windows is None
        else f"at most {show(judging.max_windows, 'int')} of each length, evenly spread",
        policies=_listed([POLICY_TITLE.get(p, p) for p in judging.baseline_policies]),
        backfills=_listed(list(judging.baseline_backfills)),
        rivals=len(judging.baseline_policies) * len(judging.baseline_backfills),
        bootstrap=show(judging.bootstrap, "int"),
        confidence=f"{100 * judging.confidence:.0f}\u00a0%",
        fewest=FEWEST,
        estimates=_listed(sorted({c.estimate for c in cells})),
        sticky_head=rules.sticky_head,
        overrun=rules.overrun,
        multi_node_slowdown=rules.multi_node_slowdown,
        interference_slowdown=rules.interference_slowdown,
        seeds=_listed([str(s) for s in sorted({c.seed for c in cells})]),
        sources=[_source(workspace, name) for name in config.traces()],
    )


def _source(workspace: Workspace, name: str) -> Source:
    trace = workspace.trace(name)
    clusters = [workspace.cluster(w.cluster).title for w in workspace.config.all_workloads() if w.trace == name]
    return Source(trace.title, trace.data, trace.format, trace.licence, trace.citation, clusters)


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
