"""Put the page together from the artefacts, the paper's numbers and the provenance."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rltune.config import Workspace
from rltune.files import write_text
from rltune.report.artefact import Saved, load_artefacts
from rltune.report.deviations import load_deviations
from rltune.report.format import show
from rltune.report.page import chapters, contents, inline, provenance, rivals, summary, tables, whatif
from rltune.report.page.claims import claims, untested
from rltune.report.page.marks import meanings
from rltune.report.page.methods import methods
from rltune.report.paper import load_paper
from rltune.report.verdict import RULE


def build(workspace: Workspace) -> Path:
    """Write the page `index.html` in the report's folder and return its path.

    It shows those of the run's artefacts that are there and names those that are not; what an earlier configuration
    left in the same folders is not shown. Raises DataError where an artefact is broken,
    ConfigError where the configuration or the paper's numbers are.
    """
    wanted = contents.expected(workspace.config)
    there = {name: saved for name, saved in load_artefacts(workspace.artefacts).items() if name in wanted}
    page = render(workspace, there)
    path = workspace.report / "index.html"
    write_text(path, page)
    return path


def render(workspace: Workspace, there: dict[str, Saved]) -> str:
    """The page's HTML."""
    paper = load_paper(workspace.root)
    comparisons = summary.comparisons(there)
    claimed, without = claims(there), untested(there)
    mine = contents.pages(workspace.config)
    notebooks = sorted(p.stem for p in (workspace.report / "notebooks").glob("*.html") if p.stem in mine)
    traces = [workspace.trace(name) for name in workspace.config.traces()]
    labels = {label: [t.title for t in traces if t.data == label] for label in dict.fromkeys(t.data for t in traces)}
    sections, aside = chapters.with_results(there), []
    if operator := workspace.config.whatif is not None:
        sections, aside = chapters.for_an_operator(there)
    environment = Environment(
        loader=PackageLoader("rltune.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"show": show, "slug": tables.slug, "coded": _coded}
    html = environment.get_template("template.html").render(
        config=workspace.config,
        css=Markup(_part("page.css")),
        js=Markup(_part("page.js")),
        meanings=meanings(labels),
        answers=summary.answers(workspace, there, comparisons, claimed, len(without)),
        claims=claimed,
        untested=without,
        scores=summary.scores(comparisons),
        outcomes=list(summary.OUTCOMES),
        measured=summary.measured(comparisons),
        whatif=whatif.summary(there),
        others=summary.others(there),
        groups=rivals.groups(comparisons),
        opponents=list(rivals.OPPONENTS),
        confidence=f"{100 * workspace.config.evaluation.confidence:.0f} %",
        operator=operator,
        sections=sections,
        aside=aside,
        chapters_here=[s.id for s, _ in (*sections, *aside)],
        summary_artefacts=[there[n] for n in chapters.SUMMARY if n in there],
        missing=contents.missing(workspace.config, there),
        coverage=contents.coverage(paper, there),
        methods=methods(workspace),
        deviations=load_deviations(workspace.root),
        ids={name: saved.artefact.title for name, saved in there.items()},
        names=contents.names(),
        paper=paper,
        rule=RULE,
        notebooks=notebooks,
        provenance=provenance.gather(workspace),
        svg=inline.svg,
        csv_link=inline.csv_link,
        table=tables.render,
    )
    return re.sub(r"\n\s*\n+", "\n", html)


def _coded(text: str) -> Markup:
    """Text with what stands between backticks as code."""
    parts = enumerate(text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in parts)


def _part(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
