"""The one list of the report's tables and figures: the chapter that shows each, the stage that makes it, and when.

It is in ``chapters/*.yaml``, a file per chapter in the order of the page; an artefact's caption, notes, alternative
text and columns are there too, as Jinja templates that get their numbers from the module that makes the artefact.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import yaml

from rltune.config.comparisons import against_qssf, agent_of, balanced_cells, by_features
from rltune.config.run import RunConfig
from rltune.report.artefact import Artefact, Column
from rltune.report.common import NAIVE, PRO, constant_settings, planned_cells, setting_columns, with_variants
from rltune.report.paper import PaperResults
from rltune.report.studies import STUDIES, curves_of, studies_of
from rltune.report.templates import environment
from rltune.report.transferred import has_robustness, has_transfer
from rltune.report.verdict import RULE

FOLDER = Path(__file__).parent / "chapters"


@dataclass(frozen=True)
class Entry:
    """One table or figure."""

    id: str
    chapter: str
    title: str
    """In lists; on the page too, unless there is a `heading`."""
    stage: str
    """The notebook that makes it."""
    when: str = ""
    """`trained`, or a name in CONDITIONS; "" where every run has it."""
    paper: str = ""
    """The paper's artefact that it corresponds to."""
    drawn: bool = False
    """Whether it is an SVG from the start, so without a PNG."""
    heading: str = ""
    caption: str = ""
    alt: str = ""
    """Gets the rows of the frame as `drawn`, too."""
    notes: Sequence[str | dict[str, str]] = ()
    """Templates; those that render to nothing are dropped; `each: name` stands for a list
    of sentences, or of what the template `say` makes one of, as `item`."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Column → the fields of `Column`, and `when`, an expression. None: the caller gives some under that name; columns of
    columns: a group, once for each of the names and titles that the caller gives."""

    @property
    def kind(self) -> Literal["table", "figure"]:
        """What it is: a table has columns."""
        return "table" if self.columns else "figure"


@dataclass(frozen=True)
class Chapter:
    """A chapter of the page."""

    id: str
    title: str
    where: str = ""
    """The paper's section; "" where the paper has none."""
    lead: str = ""
    entries: Sequence[Entry] = ()


@lru_cache
def chapters() -> dict[str, Chapter]:
    """Every chapter by id, in the order of the page."""
    shared, made = read("shared"), {}
    for path in sorted(FOLDER.glob("[0-9]*.yaml")):
        name, given = path.stem.partition("-")[2], read(path.stem)
        each = given.pop("each", {})
        texts = given.pop("artefacts") | (_of_custom_metrics() if name == "metrics" else {})
        texts = {key: each | shared.get(text.pop("like", ""), {}) | text for key, text in texts.items()}
        entries = [Entry(key, name, **text) for key, text in texts.items()]
        made[name] = Chapter(name, **given, entries=entries)
    return made


def _of_custom_metrics() -> dict[str, dict[str, str]]:
    """Id → text of the artefacts of metrics that the paper does not have."""
    texts = {}
    for study in (study for study in STUDIES if not study.paper):
        texts[study.numbers] = {"title": f"{study.title} in numbers", "like": "comparison"}
        texts[study.curves] = {"title": f"Training curves, {study.noun}", "like": "training"}
    return texts


@lru_cache
def entries() -> dict[str, Entry]:
    """Every artefact that some run makes, by id."""
    return {entry.id: entry for chapter in chapters().values() for entry in chapter.entries}


def entry_of(name: str) -> Entry:
    """The artefact of this id, or of the same figure in the longest windows. Raises KeyError where there is none."""
    return entries()[name] if name in entries() else entries()[name.rpartition("-")[0]]


def of(config: RunConfig, stage: str = "") -> list[str]:
    """Ids of the artefacts that a run always makes, of all stages or of one."""
    return [e.id for e in entries().values() if stage in ("", e.stage) and why_not(config, e.id) is None]


def files(config: RunConfig, stage: str) -> list[str]:
    """Names of the files a stage writes: data and text of each artefact, and the pictures of figures."""
    kinds = {"table": ["csv", "json"], "figure": ["csv", "json", "svg", "png"]}
    made = [entries()[name] for name in of(config, stage)]
    return [f"{e.id}.{kind}" for e in made for kind in kinds[e.kind] if kind != "png" or not e.drawn]


def expected(config: RunConfig) -> dict[str, str]:
    """Id → title of every artefact a full run of this configuration makes, if its traces are long enough."""
    shorter = sorted(set(config.evaluation.sequence_jobs), reverse=True)[1:]
    made = {name: entries()[name].title for name in of(config)}
    boxes = {study.boxes: study.title for study in STUDIES if study.boxes in made}
    return made | {f"{name}-{n}": f"{title} in windows of {n:,} jobs" for name, title in boxes.items() for n in shorter}


def why_not(config: RunConfig, name: str) -> str | None:
    """Why a run does not make an artefact; None where it does, "" where it needs no explanation."""
    condition = entries()[name].when
    if condition == "trained":
        return _trained(config, name)
    if not condition:
        return None
    is_met, why = CONDITIONS[condition]
    return None if is_met(config) else why


def describe(
    name: str,
    frame: pd.DataFrame,
    paper: PaperResults | None = None,
    /,
    *,
    paper_ref: str | None = None,
    rows: pd.DataFrame | None = None,
    cells: pd.DataFrame | None = None,
    without: Iterable[str] = (),
    **facts: Any,
) -> Artefact:
    """The artefact of this id with its texts filled in from ``facts``.

    ``rows``: whose `data` says what data is shown, where ``frame`` does not; ``cells``: the same, and their settings
    become columns where they differ and a sentence where they do not, but for those ``without``; ``paper_ref``: what the
    paper calls it, where that is not the entry's. Columns that the frame lacks are not shown. Every text also has
    ``paper``, ``paper_ref``, ``frame``, ``drawn`` (its rows), ``filled`` (its columns with any value) and ``several``
    (whether a row has several seeds).
    """
    entry = entry_of(name)
    if cells is not None:
        rows = cells if rows is None else rows
        shared = {"shared_settings": constant_settings(cells, without)}
        facts = shared | {"settings": setting_columns(cells, without)} | facts
    if paper_ref is None:
        paper_ref = paper.ref(entry.paper) if paper is not None and entry.paper else ""
    if "drawn" in entry.alt:
        facts["drawn"] = frame.to_dict("records")
    filled = {c for c in frame if (frame[c].notna() & (frame[c] != "")).any()}
    known = {"rule": RULE, "paper": paper, "paper_ref": paper_ref, "frame": frame, "filled": filled}
    facts = known | {"several": "seeds" in frame and frame["seeds"].max() > 1} | facts
    notes = []
    for note in entry.notes:
        if isinstance(note, str):
            notes.append(_fill(note, facts))
        else:
            text = note.get("say", "{{ item }}")
            notes += [_fill(text, facts | {"item": item}) for item in facts[note["each"]]]
    columns: dict[str, Column] = {}
    for key, text in _columns(entry.columns, facts):
        if isinstance(text, Column):
            columns[key] = text
        elif key in frame and ("when" not in text or environment().compile_expression(text["when"])(**facts)):
            columns[key] = Column(**{k: _fill(str(v), facts) for k, v in text.items() if k != "when"})
    labelled = frame if rows is None else rows
    return Artefact(
        name,
        entry.kind,
        _fill(entry.heading or entry.title, facts),
        _fill(entry.caption, facts),
        paper_ref,
        tuple(sorted(set(labelled["data"]))) if "data" in labelled else (),
        entry.stage,
        columns,
        tuple(filter(None, notes)),
        _fill(entry.alt, facts),
    )


def _columns(texts: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Column → text, in order: the caller's where an entry leaves them to it, groups once for each of the caller's names."""
    for key, text in texts.items():
        if text is None:
            yield from facts[key].items()
        elif "heading" in text:
            yield key, text
        else:  # a group: * stands for each name in its keys and intervals, and for the name's title in its texts
            for (name, title), (column, each) in product(facts[key].items(), text.items()):
                stars = {k: name if k in ("low", "high", "when") else title for k in each}
                yield column.replace("*", name), {k: v.replace("*", stars[k]) for k, v in each.items()}


def read(name: str) -> dict[str, Any]:
    """A file of texts among the chapters."""
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def _fill(text: str, facts: Mapping[str, Any]) -> str:
    return re.sub("[ \n]+", " ", environment().from_string(text).render(facts)).strip() if "{" in text else text


def _trained(config: RunConfig, name: str) -> str | None:
    """Why no agent is trained for a study, or for a figure of training curves; None where one is."""
    cells = planned_cells(config)
    shown = {i for study in studies_of(cells) for i in (study.numbers, study.boxes)} | set(curves_of(cells))
    if name in shown:
        return None
    for study in STUDIES:
        if name in (study.numbers, study.boxes):
            return f"no agent is trained for {study.noun}{' against Slurm’s multifactor priority' * study.slurm}"
    return ""


def _has_placements(config: RunConfig) -> bool:
    others = {(other.placement, other.locality) for other in config.evaluation.also}
    return any(others - {(c.placement, c.locality)} for c in config.cells())


CONDITIONS: dict[str, tuple[Callable[[RunConfig], object], str]] = {
    "ablation": (
        lambda c: len(with_variants(planned_cells(c))),
        f"no setting of the run has both {PRO['features']} and {NAIVE['features']} features",
    ),
    "placements": (_has_placements, "`evaluation.also` names no other placement"),
    "looked_ahead": (
        lambda c: any(x.placement == "lookahead" for x in c.cells()),
        "no agent of the run has the placement lookahead",
    ),
    "balanced": (
        lambda c: balanced_cells(c, c.cells()),
        "no slice with agents has a balanced cluster among the run’s workloads",
    ),
    "transfer": (has_transfer, "no two workloads of the run have agents of the same rules"),
    "robustness": (has_robustness, "no cell of the run has exact or lognormal estimates"),
    "rltune": (lambda c: any(agent_of(c, x) == "rltune" for x in c.cells()), "the run has no RLTune agent"),
    "qssf": (against_qssf, "the run has no RLTune agent with EASY backfilling and estimates from earlier jobs"),
    "features": (by_features, "no two RLTune agents of the run differ only in their features"),
    "gpu_types": (lambda c: c.gpu_types, ""),
    "whatif": (lambda c: c.whatif, ""),
    "deployment": (
        lambda c: c.deployment,
        "the run’s configuration has no block `deployment`; config/deployment.yaml has one",
    ),
    "deployment_types": (lambda c: c.deployment and "rltune_types" in c.deployment.schedulers, ""),
}
"""Name → whether a run's configuration gives an artefact, and why not where it does not; `trained` is another."""
