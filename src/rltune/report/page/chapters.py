"""The page's chapters: the paper's sections in their order, then what the paper leaves out."""

from __future__ import annotations

from dataclasses import dataclass

from rltune.report.artefact import Saved
from rltune.report.page.deployment import DEPLOYMENT
from rltune.report.page.whatif import WHATIF
from rltune.report.studies import BSLD, JCT, SLURM, UTILISATION, WAIT, Study


@dataclass(frozen=True)
class Section:
    """A chapter of the page: what it is about and the artefacts it shows."""

    id: str
    title: str
    where: str
    """The paper's section; "" where the paper has none."""
    lead: str
    artefacts: tuple[str, ...]
    """Their ids; `fig12-*` stands for all of that beginning that no chapter names."""


def _of(study: Study) -> tuple[str, ...]:
    return (study.numbers, *((study.boxes, f"{study.boxes}-*") if study.boxes else ()))


SECTIONS = (
    Section(
        "whatif-section",
        "Your cluster: what if",
        "",
        "The log’s last part replayed under today’s order, simple rules, predictions from history, and RLTune: what "
        "a change of scheduler would have been worth, to whom, and whether to bother.",
        tuple(WHATIF),
    ),
    Section(
        "example-schedules-section",
        "Why the order of a queue matters",
        "§1 and §2",
        "What another order of the same queue is worth, on two nodes and seven jobs; how jobs that ask for GPUs "
        "differ from those that ask for CPUs. None of this needs a trained agent.",
        ("fig1", "fig2", "fig3", "fig4", "example-schedules", "table1", "table2", "fig5", "fig6"),
    ),
    Section(
        "design",
        "How it is built",
        "§3",
        "The parts of the system, how a job goes through them, what the agent sees of it and how it learns.",
        ("fig7", "table3", "fig8", "fig9", "sensitivity"),
    ),
    Section(
        "set-up",
        "Traces, clusters and policies",
        "§4",
        "What the traces hold, what they ask of the clusters, what can be known of a run time beforehand, and the "
        "orders that RLTune is compared with.",
        ("table4", "table5", "distributions", "arrivals", "loads", "estimates", "audits"),
    ),
    Section(
        "choices",
        "What features and placement are worth",
        "§5.1",
        "The same training with raw features and simple placement, beside RLTune proper; then, where the run "
        "asks for it, the same agents under other placements.",
        ("ablation", "ablation-numbers", "ablation-training", "placements"),
    ),
    Section(
        "waits",
        "Waiting time",
        "§5.2",
        "Base policy and RLTune schedule the same test jobs on the same nodes, given the same estimates. What "
        "differs is the order of the queue and, of agents that chose their own way in training, what they chose "
        "beside it, such as for whom nodes are reserved. Then a random order and the strongest of the heuristics "
        "take the base policy’s place.",
        (*_of(WAIT), "fig11"),
    ),
    Section(
        "metrics",
        "Other metrics",
        "§5.3",
        "The same for agents that were trained for bounded slowdown, completion time, utilisation or a mix.",
        (*_of(BSLD), *_of(JCT), "fig13", *_of(UTILISATION), "training-utilisation", "training-mixes"),
    ),
    Section(
        "cross-policy",
        "Trained against one policy, judged against another",
        "§5.3.1",
        "Every agent of a trace against the base policies that others of it were trained with.",
        ("table7",),
    ),
    Section(
        "slurm",
        "Slurm’s multifactor priority as base policy",
        "§5.4",
        "Age, fair share and job size in Slurm’s own formula, in the simulator.",
        (*_of(SLURM), "fig16-training"),
    ),
    Section(
        "peers-section",
        "Against other learners and predictors",
        "§5.5",
        "The same jobs under schedulers that other authors built: one that predicts run times from history, two "
        "that learn otherwise, and a tuned score of twelve weights.",
        ("table8", "fig17", "fig17-numbers", "table9", "table9-numbers"),
    ),
    Section(
        "deployment-section",
        "On a Slurm cluster",
        "§5.6",
        "The agent’s controller writes priorities on a cluster of real Slurm daemons, beside Slurm’s own order and, "
        "where the run asks for one, a simple rule’s that the same controller writes; then what the simulator had "
        "said of the same jobs. The GPUs are made up, the clock is fast, and jobs sleep.",
        tuple(DEPLOYMENT),
    ),
    Section(
        "cost",
        "Costs of training and deciding",
        "§5.7",
        "Time to train, time to decide, how the placement model’s solver fared, and when training has paid for itself.",
        ("costs", "latency", "break-even"),
    ),
    Section(
        "beyond",
        "What the paper leaves out",
        "",
        "Simple heuristics and a bound that no schedule goes below; what better rules do without any learning; "
        "what is left to gain; which jobs, users and virtual clusters wait longer for it; what remains of the gain "
        "on a cluster that keeps up with its load, on other traces and with worse estimates.",
        (
            "heuristics",
            "scheduling-rules",
            "scheduling-rules-numbers",
            "headroom",
            "fairness",
            "fairness-numbers",
            "fairness-losers",
            "loads-compared",
            "loads-compared-numbers",
            "transfer",
            "robustness",
        ),
    ),
    Section(
        "claims",
        "Every claim of the paper",
        "",
        "Each relative improvement that the paper prints, and what this run measured in its place.",
        ("verdicts",),
    ),
)
SUMMARY = ("improvements",)
AGENT = Section(
    "agent",
    "The agent and its training",
    "",
    "How its training went, and what training and deciding cost.",
    ("fig11", "costs"),
)
LOG = Section(
    "log",
    "The log and the cluster",
    "",
    "What the log holds, what was left out, what its jobs ask of the cluster, and how good the estimates are that "
    "the schedulers go by.",
    ("table4", "audits", "loads", "estimates", "distributions", "arrivals"),
)
"""Chapters of a page about a user's cluster besides the first."""


def section_artefacts(section: Section, there: dict[str, Saved]) -> list[Saved]:
    """The section's artefacts that are there, in order."""
    named = [a for s in SECTIONS for a in s.artefacts]
    chosen: list[Saved] = []
    for name in section.artefacts:
        if name.endswith("*"):
            chosen += [v for k, v in there.items() if k.startswith(name[:-1]) and k not in named]
        elif name in there:
            chosen.append(there[name])
    return chosen


def chapter_of(name: str) -> str:
    """Title of the chapter that shows an artefact."""
    for section in SECTIONS:
        if any(name == a or (a.endswith("*") and name.startswith(a[:-1])) for a in section.artefacts):
            return f"{section.where} {section.title}".strip()
    return "Summary" if name in SUMMARY else "More results"


def unplaced(there: dict[str, Saved]) -> list[Saved]:
    """Artefacts no section names: shown all the same."""
    placed = {s.artefact.id for section in SECTIONS for s in section_artefacts(section, there)} | set(SUMMARY)
    return [saved for name, saved in there.items() if name not in placed]


def with_results(there: dict[str, Saved]) -> list[tuple[Section, list[Saved]]]:
    """Every chapter with what it shows, and one more for what none of them names; the first in runs that have it."""
    found = [(section, section_artefacts(section, there)) for section in SECTIONS]
    found = found if found[0][1] else found[1:]
    if rest := unplaced(there):
        found.append((Section("more", "More results", "", "", ()), rest))
    return found


Chapters = list[tuple[Section, list[Saved]]]


def for_an_operator(there: dict[str, Saved]) -> tuple[Chapters, Chapters]:
    """(The chapters of a page about a user's cluster, those of the paper's kind that are left); none of them empty.

    The replay comes first, then the agent, then the log.
    """
    first = (SECTIONS[0], AGENT, LOG)
    named = {name for section in first for name in section.artefacts}
    rest = {name: saved for name, saved in there.items() if name not in named}
    return tuple(
        [(section, shown) for section, shown in chapters if shown]
        for chapters in ([(section, section_artefacts(section, there)) for section in first], with_results(rest))
    )  # type: ignore[return-value]
