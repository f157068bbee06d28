"""Put the page together from the artefacts, the paper's numbers and the provenance."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rltune.config import Workspace
from rltune.files import write_text
from rltune.report.artefact import Saved, load_artefacts
from rltune.report.format import show
from rltune.report.page import contents, inline, provenance, summary, tables, whatif
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
    mine = contents.pages(workspace.config)
    notebooks = sorted(p.stem for p in (workspace.report / "notebooks").glob("*.html") if p.stem in mine)
    labels = sorted({workspace.trace(name).data for name in workspace.config.traces()})
    sections = [(s, contents.section_artefacts(s, there)) for s in contents.SECTIONS]
    if workspace.config.whatif is None:
        sections = [(s, items) for s, items in sections if s.id != "whatif-section"]
    if rest := contents.unplaced(there):
        sections.append((contents.Section("more", "More results", "", ()), rest))
    environment = Environment(
        loader=PackageLoader("rltune.report", "page"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )
    environment.filters |= {"show": show, "slug": tables.slug}
    html = environment.get_template("template.html").render(
        config=workspace.config,
        css=Markup(_part("page.css")), js=Markup(_part("page.js")),
        labels=labels, data_sentences=summary.data_sentences(labels),
        scores=summary.scores(comparisons), outcomes=list(summary.OUTCOMES), measured=summary.measured(comparisons),
        whatif=whatif.summary(there), others=summary.others(there), groups=summary.groups(comparisons),
        confidence=f"{100 * workspace.config.evaluation.confidence:.0f} %",
        sections=sections, summary_artefacts=[there[n] for n in contents.SUMMARY if n in there],
        missing=contents.missing(workspace.config, there), coverage=contents.coverage(paper, there),
        paper=paper, rule=RULE, notebooks=notebooks, provenance=provenance.gather(workspace),
        svg=inline.svg, csv_link=inline.csv_link, table=tables.render,
    )
    return re.sub(r"\n\s*\n+", "\n", html)


def _part(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
