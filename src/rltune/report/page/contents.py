"""What belongs on the page, in which order; what of it is missing; what of the paper is there."""

from __future__ import annotations

from dataclasses import dataclass, field

from rltune.config import RunConfig
from rltune.report.artefact import Saved
from rltune.report.page.peers import PEERS, absent
from rltune.report.paper import PaperResults
from rltune.report.tables.common import NAIVE, PRO


@dataclass(frozen=True)
class Section:
    """A chapter of the page: what it is about and the artefacts it shows."""

    id: str
    title: str
    lead: str
    artefacts: tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """An artefact that should be here."""

    id: str
    title: str
    why: str


@dataclass
class Covered:
    """One artefact of the paper and what this page has of it."""

    title: str
    where: str
    ours: list[tuple[str, str]] = field(default_factory=list)
    """(id, title) of our artefacts."""


SECTIONS = (
    Section("results", "RLTune against others",
            "Base policy and RLTune schedule the same test jobs under the same conditions; only the order of the queue "
            "differs. Then the strongest of the heuristics takes the base policy’s place.",
            ("fig12-numbers", "fig12", "fig12-*")),
    Section("heuristics-section", "Simple heuristics, and how much is left",
            "Simple orders under each blocking rule of this run, beside a bound that no schedule goes below.",
            ("heuristics",)),
    Section("training", "Training",
            "What the agent learned against each base policy, on training sequences and on validation windows.",
            ("fig11",)),
    Section("ablation-section", "What features and placement are worth",
            "The same training with raw features and simple placement, beside RLTune proper; then, where the run "
            "asks for it, the same agents under other placements.",
            ("ablation", "ablation-numbers", "placements")),
    Section("peers-section", "Against other learners and predictors",
            "The same jobs under schedulers that other authors built: one that predicts run times from history, two "
            "that learn otherwise, and a tuned score of twelve weights; then what the number of features is worth.",
            ("table8", "fig17", "fig17-numbers", "table9", "table9-numbers", "sensitivity")),
    Section("workloads", "Workloads",
            "What the traces hold, what they ask of the clusters, and what can be known of a run time beforehand.",
            ("table2", "fig5", "table4", "distributions", "arrivals", "fig6", "loads", "estimates", "audits")),
    Section("cost", "Costs", "Time to train, time to decide, and how the placement model’s solver fared.",
            ("costs", "latency", "payback")),
)
SUMMARY = ("improvements",)

TITLES = {
    "improvements": "How much less RLTune waits",
    "fig12-numbers": "Mean wait in numbers",
    "fig12": "Waits in the longest windows",
    "fig11": "Training curves",
    "ablation": "Naive against pro RLTune",
    "ablation-numbers": "Naive and pro RLTune in numbers",
    "placements": "The same agents under other placements",
    "table2": "CPU and GPU traces over one month",
    "fig5": "CPU and GPU workloads compared",
    "table4": "Trace summary",
    "distributions": "Run times and sizes",
    "arrivals": "Arrivals over day and week",
    "fig6": "Jobs above the median wait, batch by batch",
    "loads": "Offered load",
    "estimates": "Run-time estimates",
    "audits": "Rows kept and left out",
    "heuristics": "Simple heuristics and what no schedule can go below",
    "costs": "Cost of training and deciding",
    **PEERS,
}


def has_ablation(config: RunConfig) -> bool:
    """Whether some setting of the run has both pro and another variant."""
    cells = config.cells()
    pro = {c.but(features="", placement="") for c in cells if (c.features, c.placement) == tuple(PRO.values())}
    rest = {c.but(features="", placement="") for c in cells if (c.features, c.placement) != tuple(PRO.values())}
    return bool(pro & rest)


def has_placements(config: RunConfig) -> bool:
    """Whether some agent of the run is judged under a placement or locality other than its own."""
    others = {(other.placement, other.locality) for other in config.evaluation.also}
    return any(others - {(c.placement, c.locality)} for c in config.cells())


def expected(config: RunConfig) -> dict[str, str]:
    """Id → title of every artefact a full run of this configuration makes."""
    shorter = sorted(set(config.evaluation.sequence_jobs), reverse=True)[1:]
    unmade = absent(config)
    made = {name: title for name, title in TITLES.items()
            if name not in unmade and (name != "placements" or has_placements(config))}
    return {**made, **{f"fig12-{n}": f"Waits in windows of {n:,} jobs" for n in shorter}}


def pages(config: RunConfig) -> set[str]:
    """Names of the executed notebooks of a run."""
    cells = {f"{stage}-{cell.name}" for cell in config.cells() for stage in ("train", "evaluate")}
    return {"characterise", "ablation", "figures", "peers"} | {f"clean-{trace}" for trace in config.traces()} | cells


def steps(config: RunConfig) -> set[str]:
    """Names of the workflow's steps of a run, as their benchmark files have them."""
    workloads = {(w.trace, w.cluster) for w in config.all_workloads()}
    estimated = {(c.trace, c.cluster, c.estimate) for c in config.cells()}
    return (
        {"characterise", "ablation", "figures", "peers", "report"} | {f"clean/{trace}" for trace in config.traces()}
        | {f"fit/{'__'.join(w)}" for w in workloads}
        | {f"{step}/{'__'.join(e)}" for e in estimated for step in ("estimate", "baselines")}
        | {f"{step}/{cell.name}" for cell in config.cells() for step in ("train", "evaluate")}
    )


def missing(config: RunConfig, there: dict[str, Saved]) -> list[Missing]:
    """Expected artefacts that are not there, each with the reason as far as the configuration tells it."""
    found = []
    drawn = int(there["fig12"].frame["sequence_jobs"].max()) if "fig12" in there else 0
    wanted = expected(config)
    if 0 < drawn < (longest := max(config.evaluation.sequence_jobs)):
        wanted.pop(f"fig12-{drawn}", None)
        found.append(Missing(f"fig12-{longest}", f"Waits in windows of {longest:,} jobs",
                             "no test part is long enough for such a window"))
    for name, title in wanted.items():
        if name in there:
            continue
        planned = not name.startswith("ablation") or has_ablation(config)
        why = ("its stage has not written it" if planned else
               f"the run’s matrix has no setting with both {PRO['features']} and {NAIVE['features']} features")
        found.append(Missing(name, title, why))
    return found + [Missing(name, TITLES[name], why) for name, why in absent(config).items()]


def section_artefacts(section: Section, there: dict[str, Saved]) -> list[Saved]:
    """The section's artefacts that are there, in order; `fig12-*` stands for all of that beginning not yet named."""
    named = [a for s in SECTIONS for a in s.artefacts]
    chosen: list[Saved] = []
    for name in section.artefacts:
        if name.endswith("*"):
            chosen += [v for k, v in there.items() if k.startswith(name[:-1]) and k not in named]
        elif name in there:
            chosen.append(there[name])
    return chosen


def unplaced(there: dict[str, Saved]) -> list[Saved]:
    """Artefacts no section names: shown all the same."""
    placed = {s.artefact.id for section in SECTIONS for s in section_artefacts(section, there)} | set(SUMMARY)
    return [saved for name, saved in there.items() if name not in placed]


def coverage(paper: PaperResults, there: dict[str, Saved]) -> list[Covered]:
    """Every artefact of the paper, tables first, in its order, with ours."""
    entries = {**{k: Covered(v.title, v.where) for k, v in paper.artefacts.items()},
               **{k: Covered(v.title, v.where) for k, v in paper.without_figures.items()}}
    for saved in there.values():
        for entry in entries.values():
            if saved.artefact.paper_ref == entry.where:
                entry.ours.append((saved.artefact.id, saved.artefact.title))
    return sorted(entries.values(), key=lambda e: _order(e.where))


def _order(where: str) -> tuple[int, int, str]:
    kind = next((i for i, word in enumerate(("Abstract", "Table", "Figure", "Section")) if where.startswith(word)), 9)
    digits = "".join(c for c in where.split(" and ")[0] if c.isdigit())
    return kind, int(digits or 0), where
