"""What belongs on the page; what of it is missing; what of the paper is there."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from rltune.config.run import RunConfig
from rltune.evaluation.compare import where
from rltune.report import artefacts
from rltune.report.artefact import Artefact, Saved
from rltune.report.artefacts import Chapter
from rltune.report.common import policy_title
from rltune.report.paper import PaperArtefact, PaperPicture, PaperResults
from rltune.report.studies import STUDIES
from rltune.report.verdict import ABSENT

SUMMARY = "summary"
"""The chapter whose figures stand in the page's summary."""
Chapters = list[tuple[Chapter, list[Saved]]]


def chapters(there: dict[str, Saved]) -> Chapters:
    """Every chapter with the artefacts that it shows; the what-if analysis only where there is one."""
    found = []
    for chapter in artefacts.chapters().values():
        named = [entry.id for entry in chapter.entries]
        shown = [there[name] for name in named if name in there]
        shown += [saved for name, saved in there.items() if name not in named and name.rpartition("-")[0] in named]
        if chapter.id != SUMMARY and (shown or chapter.id != "whatif"):
            found.append((chapter, [s for s in shown if artefacts.entry_of(s.artefact.id).chapter == chapter.id]))
    return found


def for_an_operator(there: dict[str, Saved]) -> Chapters:
    """The chapters of a page about a user's cluster, none of them empty; the recommendation stands in its summary."""
    without = {name: saved for name, saved in there.items() if name != "whatif-recommendation"}
    found = [(chapter, shown) for chapter, shown in chapters(without) if chapter.id == "whatif"]
    for name, text in artefacts.read("operator").items():
        chapter = Chapter(name, text["title"], "", text["lead"], ())
        found.append((chapter, [there[n] for n in text["artefacts"] if n in there]))
    return [(chapter, shown) for chapter, shown in found if shown]


def missing(config: RunConfig, there: dict[str, Saved]) -> list[dict[str, str]]:
    """Artefacts that are not there: id, title, and why as far as the configuration shows it."""
    wanted, longest = artefacts.expected(config), max(config.evaluation.sequence_jobs)
    found = []
    for study in (s for s in STUDIES if s.boxes in there):
        drawn = int(there[study.boxes].frame["sequence_jobs"].max())
        if drawn < longest:
            wanted.pop(f"{study.boxes}-{drawn}", None)
            title = f"{study.title} in windows of {longest:,} jobs"
            found.append(
                {
                    "id": f"{study.boxes}-{longest}",
                    "title": title,
                    "why": "no test part is long enough for such a window",
                }
            )
    for name, title in wanted.items():
        if name not in there:
            no_slurm = artefacts.entry_of(name).chapter == "deployment" and "deployment-runs" in there
            why = "there is no run on the Slurm cluster; the table “All runs” says what is missing" if no_slurm else ""
            found.append({"id": name, "title": title, "why": why or "its stage has not written it"})
    for entry in artefacts.entries().values():
        if why := artefacts.why_not(config, entry.id):
            found.append({"id": entry.id, "title": entry.title, "why": f"{ABSENT}: {why}"})
    return found


OF_ONE_TABLE = ("All rows:", "Not shown here")
"""Beginnings of notes that say something of their own table alone, even where others have the same words."""


def shared_notes(there: dict[str, Saved]) -> list[str]:
    """Notes that at least three tables and figures have, which the page prints once; the most common first."""
    notes = (note for saved in there.values() for note in saved.artefact.notes if not note.startswith(OF_ONE_TABLE))
    return [note for note, n in Counter(notes).most_common() if n >= 3]


KINDS = ("Abstract", "Table", "Figure", "Algorithm", "Section")
"""What the paper calls its artefacts, in the order of the page."""


class Covered(NamedTuple):
    """An artefact of the paper, and what the page has of it."""

    item: PaperArtefact | PaperPicture
    ours: list[Artefact]
    wanted: int
    """Its agents (trace and base policy), or else the improvements that it prints; 0: neither."""
    missing: list[str]
    """Those of them without a counterpart here."""


def coverage(paper: PaperResults, there: dict[str, Saved]) -> list[Covered]:
    """Every artefact of the paper, tables first, in its order, with ours."""
    ours: dict[str, list[Artefact]] = {}
    for name, saved in there.items():
        places = ["Abstract", "Section 7"] if name == "claims" else [saved.artefact.paper_ref]
        if name == "placements" and "algorithm1" in set(saved.frame["placement"]):
            places.append("Algorithm 1")
        for place in places:
            ours.setdefault(place, []).append(saved.artefact)
    found = []
    for name, item in {**paper.artefacts, **paper.without_figures}.items():
        here = _here(name, item, there)
        missing = [what for what, has in here.items() if not has]
        found.append(Covered(item, ours.get(item.where, []), len(here), missing))
    return sorted(found, key=lambda one: _order(one.item.where))


def _here(name: str, item: PaperArtefact | PaperPicture, there: dict[str, Saved]) -> dict[str, bool]:
    """What an artefact of the paper compares → whether the page has a counterpart."""
    if isinstance(item, PaperArtefact) and item.base_policies:
        numbers = next(study.numbers for study in STUDIES if study.paper == name)
        mine = set()
        if numbers in there:
            plain = where(there[numbers].frame, backfill="none")
            mine = set(zip(plain["paper_trace"], plain["policy"], strict=True))
        pairs = [(trace, policy) for trace, policies in item.base_policies.items() for policy in policies]
        return {f"{trace} {policy_title(policy)}": (trace, policy) in mine for trace, policy in pairs}
    if "claims" not in there:
        return {}
    claims = there["claims"].frame
    rows = claims[claims["key"].str.startswith(f"{name}: ")]
    return (rows["verdict"] != ABSENT).groupby(rows["claim"]).any().to_dict()


def _order(where: str) -> tuple[int, int, str]:
    kind = next((i for i, word in enumerate(KINDS) if where.startswith(word)), len(KINDS))
    digits = "".join(c for c in where.split(" and ")[0] if c.isdigit())
    return kind, int(digits or 0), where
