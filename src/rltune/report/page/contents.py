"""What belongs on the page; what of it is missing; what of the paper is there."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from rltune.config import RunConfig
from rltune.report.artefact import Saved
from rltune.report.figures.training import CURVES_TITLE
from rltune.report.page.deployment import ALWAYS, DEPLOYMENT, NO_BLOCK, NO_RUNS
from rltune.report.page.peers import PEERS, absent
from rltune.report.page.whatif import WHATIF
from rltune.report.paper import PaperResults
from rltune.report.studies import STUDIES, curves_of, studies_of
from rltune.report.transferred import has_robustness, has_transfer
from rltune.report.common import NAIVE, PRO
from rltune.report.verdict import ABSENT


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


CHAPTERS = ("system", "characterise", "ablation", "semantics", "transfer", "peers", "whatif", "deployment", "figures")
"""Notebooks over the whole run, each of whose page the report links to; `whatif` and `deployment` in runs that
ask for them."""

TITLES = {
    "improvements": "How much better RLTune is",
    "verdicts": "The paper’s claims and what this run found",
    "ablation": "Naive against pro RLTune",
    "ablation-numbers": "Naive and pro RLTune in numbers",
    "ablation-training": "Training curves of naive and pro RLTune",
    "placements": "The same agents under other placements",
    "fig1": "Slurm’s priorities, a node a job",
    "fig2": "One job raised, a node a job",
    "fig3": "Slurm’s priorities, packed",
    "fig4": "One job raised, packed",
    "example-schedules": "The four example schedules in numbers",
    "table1": "Job schedulers compared",
    "fig7": "The system and the life of a job",
    "table3": "Features by category",
    "fig8": "One epoch of training",
    "fig9": "Actor and critic",
    "table5": "Scheduling policies",
    "table7": "Trained against one base policy, judged against another",
    "transfer": "On traces it was not trained on",
    "robustness": "With worse run-time estimates",
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
    "scheduling-rules": "How much of the gain is the baseline’s doing",
    "scheduling-rules-numbers": "The baseline’s doing, in numbers",
    "headroom": "What is left to gain",
    "fairness": "Which job sizes wait",
    "fairness-numbers": "How unequally groups of jobs are treated",
    "fairness-losers": "Who waits longer with RLTune",
    "loads-compared": "Overloaded slices beside balanced clusters",
    "loads-compared-numbers": "Overloaded and balanced, in numbers",
    **PEERS,
    **WHATIF,
    **DEPLOYMENT,
}


def has_ablation(config: RunConfig) -> bool:
    """Whether some setting of the run has both pro and another variant."""
    cells = [c for c in config.cells() if c.features in (PRO["features"], NAIVE["features"])]
    pro = {c.but(features="", placement="") for c in cells if (c.features, c.placement) == tuple(PRO.values())}
    rest = {c.but(features="", placement="") for c in cells if (c.features, c.placement) != tuple(PRO.values())}
    return bool(pro & rest)


def has_placements(config: RunConfig) -> bool:
    """Whether some agent of the run is judged under a placement or locality other than its own."""
    others = {(other.placement, other.locality) for other in config.evaluation.also}
    return any(others - {(c.placement, c.locality)} for c in config.cells())


def judged(config: RunConfig) -> pd.DataFrame:
    """metric and policy of every cell: what decides which of the studies a run has."""
    return pd.DataFrame([(c.metric, c.policy) for c in config.cells()], columns=["metric", "policy"])


def of_studies(config: RunConfig) -> dict[str, str]:
    """Id → title of the tables and figures of the metrics that this run's agents are trained for."""
    studies = studies_of(judged(config))
    return {
        **{s.numbers: f"{s.title} in numbers" for s in studies},
        **{s.boxes: f"{s.title}, distributions in the longest windows" for s in studies if s.boxes},
        **{name: CURVES_TITLE[name] for name in curves_of(judged(config))},
    }


def names() -> dict[str, str]:
    """Id → title of every artefact that some run makes."""
    studies = {
        name: title
        for s in STUDIES
        for name, title in (
            (s.numbers, f"{s.title} in numbers"),
            *([(s.boxes, f"{s.title}, distributions")] if s.boxes else []),
        )
    }
    return {**TITLES, **CURVES_TITLE, **studies}


def results_artefacts(config: RunConfig) -> tuple[list[str], list[str]]:
    """Ids of the tables and of the figures that the notebook `figures` always makes for this configuration."""
    tables = {s.numbers for s in STUDIES}
    mine = of_studies(config)
    return (
        [
            *(name for name in mine if name in tables),
            "verdicts",
            "heuristics",
            *(["placements"] if has_placements(config) else []),
            "costs",
        ],
        [*(name for name in mine if name not in tables), "improvements"],
    )


def has_balanced(config: RunConfig) -> bool:
    """Whether some slice with agents has a cluster of its name and `-balanced` beside it, for the same trace."""
    workloads = {(w.trace, w.cluster) for w in config.all_workloads()}
    return any((c.trace, f"{c.cluster}-balanced") in workloads for c in config.cells())


def expected(config: RunConfig) -> dict[str, str]:
    """Id → title of every artefact a full run of this configuration makes."""
    shorter = sorted(set(config.evaluation.sequence_jobs), reverse=True)[1:]
    unmade = absent(config)
    made = {
        name: title
        for name, title in TITLES.items()
        if name not in unmade
        and (name != "placements" or has_placements(config))
        and (name not in WHATIF or config.whatif is not None)
        and (name not in DEPLOYMENT or config.deployment is not None)
    }
    boxes = [s for s in studies_of(judged(config)) if s.boxes]
    return {
        **made,
        **of_studies(config),
        **{f"{s.boxes}-{n}": f"{s.title} in windows of {n:,} jobs" for s in boxes for n in shorter},
    }


def pages(config: RunConfig) -> set[str]:
    """Names of the executed notebooks of a run."""
    cells = {f"{stage}-{cell.name}" for cell in config.cells() for stage in ("train", "evaluate")}
    traces = {f"clean-{trace}" for trace in config.traces()} | {f"compare-{cell.trace}" for cell in config.cells()}
    return set(chapters(config)) | traces | cells


def chapters(config: RunConfig) -> tuple[str, ...]:
    """The chapters of a run."""
    asked = {"whatif": config.whatif, "deployment": config.deployment}
    return tuple(name for name in CHAPTERS if name not in asked or asked[name] is not None)


def steps(config: RunConfig) -> set[str]:
    """Names of the workflow's steps of a run, as their benchmark files have them."""
    workloads = {(w.trace, w.cluster) for w in config.all_workloads()}
    estimated = {(c.trace, c.cluster, c.estimate) for c in config.cells()}
    return (
        {*chapters(config), "report"}
        | {f"clean/{trace}" for trace in config.traces()}
        | ({"example_schedules"} if config.example_schedules == "slurm" else set())
        | {f"compare/{cell.trace}" for cell in config.cells()}
        | {f"fit/{'__'.join(w)}" for w in workloads}
        | {f"{step}/{'__'.join(e)}" for e in estimated for step in ("estimate", "baselines")}
        | {f"{step}/{cell.name}" for cell in config.cells() for step in ("train", "evaluate")}
        | {f"deploy/{scheduler}-{k}" for scheduler, k in (config.deployment.runs() if config.deployment else [])}
    )


def missing(config: RunConfig, there: dict[str, Saved]) -> list[Missing]:
    """Artefacts that are not there, each with the reason as far as the configuration tells it.

    Those of a metric or base policy of the paper that no agent of the run was trained for are among them.
    """
    found = []
    wanted, longest = expected(config), max(config.evaluation.sequence_jobs)
    for study in (s for s in studies_of(judged(config)) if s.boxes in there):
        drawn = int(there[study.boxes].frame["sequence_jobs"].max())
        if drawn < longest:
            wanted.pop(f"{study.boxes}-{drawn}", None)
            found.append(
                Missing(
                    f"{study.boxes}-{longest}",
                    f"{study.title} in windows of {longest:,} jobs",
                    "no test part is long enough for such a window",
                )
            )
    for name, title in wanted.items():
        if name in there:
            continue
        why = "its stage has not written it"
        if name.startswith("ablation") and not has_ablation(config):
            why = f"the run’s matrix has no setting with both {PRO['features']} and {NAIVE['features']} features"
        if name.startswith("loads-compared") and not has_balanced(config):
            why = "the run’s workloads have no balanced cluster beside a slice with agents"
        if name in DEPLOYMENT and name not in ALWAYS and ALWAYS[0] in there:
            why = NO_RUNS
        found.append(Missing(name, title, _not_carried(config, name) or why))
    if config.deployment is None:
        found += [Missing(name, TITLES[name], f"{ABSENT}: {NO_BLOCK}") for name in DEPLOYMENT]
    found += [Missing(name, TITLES[name], f"{ABSENT}: {why}") for name, why in absent(config).items()]
    present = studies_of(judged(config))
    for study in (s for s in STUDIES if s not in present):
        ids = ", ".join(name for name in (study.numbers, study.boxes) if name)
        against = " against Slurm’s multifactor priority" if study.slurm else ""
        found.append(Missing(ids, study.title, f"{ABSENT}: no agent is trained for {study.noun}{against}"))
    return found


def _not_carried(config: RunConfig, name: str) -> str:
    """Why a run of this configuration does not judge agents away from home in this way; "" where it does."""
    if name == "transfer" and not has_transfer(config):
        return "the run’s matrix has no two workloads with agents of the same rules"
    if name == "robustness" and not has_robustness(config):
        return "no agent of the run’s matrix was trained on exact or lognormal estimates"
    return ""


def coverage(paper: PaperResults, there: dict[str, Saved]) -> list[Covered]:
    """Every artefact of the paper, tables first, in its order, with ours."""
    entries = {
        **{k: Covered(v.title, v.where) for k, v in paper.artefacts.items()},
        **{k: Covered(v.title, v.where) for k, v in paper.without_figures.items()},
    }
    for saved in there.values():
        for entry in entries.values():
            if saved.artefact.paper_ref == entry.where or (
                entry.where == "Abstract" and saved.artefact.id == "verdicts"
            ):
                entry.ours.append((saved.artefact.id, saved.artefact.title))
    return sorted(entries.values(), key=lambda e: _order(e.where))


def _order(where: str) -> tuple[int, int, str]:
    kind = next((i for i, word in enumerate(("Abstract", "Table", "Figure", "Section")) if where.startswith(word)), 9)
    digits = "".join(c for c in where.split(" and ")[0] if c.isdigit())
    return kind, int(digits or 0), where
