"""The chapters of the page, the artefacts that it lacks, and how much of the paper it covers."""

import re
from collections import Counter
from typing import NamedTuple

from rltune.config.run import RunConfig
from rltune.evaluation.compare import where
from rltune.report import artefacts
from rltune.report.artefact import Artefact, Saved
from rltune.report.artefacts import Chapter
from rltune.report.paper import PaperItem, PaperResults
from rltune.report.studies import STUDIES
from rltune.report.style import policy_title
from rltune.report.verdict import ABSENT

SUMMARY = "summary"
"""The chapter whose figures stand in the page's summary."""
TYPES = "gpu-types"
"""The figure that stands there too, instead of in its chapter, which has the same name."""
Chapters = list[tuple[Chapter, list[Saved]]]


def chapters(saved: dict[str, Saved]) -> Chapters:
    """Every chapter with its artefacts among those saved; the what-if analysis and GPU types only where there are some."""
    found = []
    for chapter in artefacts.chapters().values():
        named = [entry.id for entry in chapter.entries]
        shown = [saved[name] for name in named if name in saved]
        others = (name for name in saved if name not in named and artefacts.entry_of(name).chapter == chapter.id)
        shown += [saved[name] for name in others]
        if chapter.id != SUMMARY and (shown or chapter.id not in ("whatif", TYPES)):
            found.append((chapter, shown))
    return found


def for_an_operator(saved: dict[str, Saved]) -> Chapters:
    """The chapters of a page about a user's cluster, none of them empty; the recommendation is in its summary."""
    without = {name: one for name, one in saved.items() if name != "whatif-recommendation"}
    found = [(chapter, shown) for chapter, shown in chapters(without) if chapter.id == "whatif"]
    for name, text in artefacts.read("operator").items():
        chapter = Chapter(name, text["title"], lead=text["lead"])
        found.append((chapter, [saved[n] for n in text["artefacts"] if n in saved]))
    return [(chapter, shown) for chapter, shown in found if shown]


def missing(config: RunConfig, saved: dict[str, Saved]) -> list[dict[str, str]]:
    """Artefacts that are missing: id, title, and why as far as the configuration shows it."""
    wanted, longest = artefacts.expected(config), max(config.evaluation.sequence_jobs)
    found = []
    for study in (s for s in STUDIES if s.boxes in saved):
        drawn = int(saved[study.boxes].frame["sequence_jobs"].max())
        if drawn < longest:
            wanted.pop(f"{study.boxes}-{drawn}", None)
            for n in (n for n in config.evaluation.sequence_jobs if n > drawn):
                wanted.pop(f"{study.boxes}-{n}", None)
                title = f"{study.title} in windows of {n:,} jobs"
                found.append((f"{study.boxes}-{n}", title, "no test part is long enough for such a window"))
    for name, title in wanted.items():
        if name not in saved:
            no_slurm = artefacts.entry_of(name).chapter == "deployment" and "deployment-runs" in saved
            why = "there is no run on the Slurm cluster; the table “All runs” says what is missing"
            found.append((name, title, why if no_slurm else "its stage has not written it"))
    for entry in artefacts.entries().values():
        if reason := artefacts.why_not(config, entry.id):
            found.append((entry.id, entry.title, f"{ABSENT}: {reason}"))
    return [dict(zip(("id", "title", "why"), one)) for one in found]


def outdated(name: str, saved: dict[str, Saved]) -> bool:
    """Whether a figure of shorter windows is of an earlier run: windows of that length, or longer ones, are now the longest."""
    boxes, _, length = name.partition("-")
    drawn = saved[boxes].frame if length.isdigit() and boxes in saved else None
    return drawn is not None and int(length) >= int(drawn["sequence_jobs"].max())


OF_ONE_TABLE = ("All rows:", "Not shown here")
"""Beginnings of notes about a single table, even where others have the same words."""


def shared_notes(saved: dict[str, Saved]) -> list[str]:
    """Notes that at least three tables and figures have, which the page prints once; the most common first."""
    notes = (note for one in saved.values() for note in one.artefact.notes if not note.startswith(OF_ONE_TABLE))
    return [note for note, n in Counter(notes).most_common() if n >= 3]


KINDS = ("Abstract", "Table", "Figure", "Algorithm", "Section")
"""What the paper calls its artefacts, in the order of the page."""


class Covered(NamedTuple):
    """An artefact of the paper, and its counterparts on the page."""

    item: PaperItem
    ours: list[Artefact]
    wanted: int
    """Its agents (trace, base policy and, where it has several, metric), or else the improvements that it prints; 0: neither."""
    missing: list[str]
    """Those of them without a counterpart here."""


def coverage(paper: PaperResults, saved: dict[str, Saved]) -> list[Covered]:
    """Every artefact of the paper, tables first, in its order, with ours."""
    ours: dict[str, list[Artefact]] = {}
    for name, one in saved.items():
        refs = ["Abstract", "Section 7"] if name == "claims" else [one.artefact.paper_ref]
        if name == "placements" and "algorithm1" in set(one.frame.get("placement", ())):
            refs.append("Algorithm 1")
        for ref in refs:
            ours.setdefault(ref, []).append(one.artefact)
    found = []
    for name, item in {**paper.artefacts, **paper.without_figures}.items():
        compared = _compared(name, item, saved)
        missing = [what for what, has in compared.items() if not has]
        found.append(Covered(item, ours.get(item.where, []), len(compared), missing))
    return sorted(found, key=lambda one: _order(one.item.where))


def _compared(name: str, item: PaperItem, saved: dict[str, Saved]) -> dict[str, bool]:
    """What an artefact of the paper compares → whether the page has a counterpart."""
    if item.base_policies:
        ours = set()
        for study in (study for study in STUDIES if name in (study.paper, study.curves)):
            if study.numbers in saved:
                plain = where(saved[study.numbers].frame, backfill="none")
                pairs = zip(plain["paper_trace"], plain["policy"], strict=True)
                ours |= {(trace, key) for trace, policy in pairs for key in (policy, f"{study.metric}.{policy}")}
        wanted = [(trace, policy) for trace, policies in item.base_policies.items() for policy in policies]
        return {f"{trace} {_agent_title(policy)}": (trace, policy) in ours for trace, policy in wanted}
    if "claims" not in saved:
        return {}
    claims = saved["claims"].frame
    rows = claims[claims["key"].str.startswith(f"{name}: ")]
    return (rows["verdict"] != ABSENT).groupby(rows["claim"]).any().to_dict()


def _agent_title(policy: str) -> str:
    """`bsld.fifo`: `FIFO, BSLD`."""
    metric, _, name = policy.rpartition(".")
    return policy_title(name) + f", {metric.upper()}" * bool(metric)


def _order(where: str) -> tuple[int, list[int], str]:
    kind = next((i for i, word in enumerate(KINDS) if where.startswith(word)), len(KINDS))
    return kind, [int(number) for number in re.findall(r"\d+", where)], where
