"""Put the page together from the artefacts, the paper's numbers and the provenance."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup, escape

from rltune.config.context import Run
from rltune.files import write_text
from rltune.report import artefacts
from rltune.report.artefact import load_artefact
from rltune.report.page import contents, inline, marks, opponents, provenance, summary, tables
from rltune.report.paper import Deviation, PaperResults
from rltune.report.templates import environment
from rltune.report.verdict import RULE
from rltune.traces.split import VALIDATION_SHARE


def build(
    run: Run,
    folder: Path,
    out: Path,
    paper: PaperResults,
    deviations: list[Deviation],
    notebooks: Iterable[str] = (),
    benchmarks: Path | None = None,
    made: Sequence[Mapping[str, str]] = (),
) -> Path:
    """Write the page to ``out`` and return its path.

    ``folder``: of the artefacts; ``paper``: the paper's numbers; ``deviations``: departures from the paper; ``notebooks``:
    names of the pages in the folder `notebooks` next to the page; ``benchmarks``: folder of the workflow's measurements;
    ``made``: what the notebooks recorded (rltune.sources.made). The page shows the run's artefacts and names those that are
    missing, but nothing that an earlier configuration left in the folder. Raises DataError where an artefact is broken.
    """
    wanted = artefacts.expected(run.config)
    loaded = {name: load_artefact(folder, name) for name in wanted if (folder / f"{name}.json").is_file()}
    shown = {name: saved for name, saved in loaded.items() if not contents.outdated(name, loaded)}
    estimates = {cell.preset: run.config.preset(cell.preset).estimates for cell in run.config.cells()}
    rows = summary.comparisons(shown)
    claimed, untested = summary.claims(shown)
    operator = run.config.whatif is not None and len(run.traces) == 1  # a run about the user's own cluster
    main = [*(entry.id for entry in artefacts.chapters()[contents.SUMMARY].entries), contents.TYPES]
    rest = {name: saved for name, saved in shown.items() if name not in main}
    sections = contents.for_an_operator(shown) if operator else contents.chapters(rest)
    html = (
        _page()
        .get_template("page.html")
        .render(
            config=run.config,
            kinds=marks.by_label(run.traces.values()),
            s=summary.facts(run, shown, rows, claimed),
            claims=claimed,
            untested=untested,
            scores=summary.scores(rows),
            outcomes=list(summary.OUTCOMES),
            groups=opponents.groups(rows),
            operator=operator,
            sections=sections,
            chapters_here=[s.id for s, _ in sections],
            summary_artefacts=[shown[n] for n in main if n in shown],
            missing=contents.missing(run.config, shown),
            shared_notes=contents.shared_notes(shown),
            coverage=contents.coverage(paper, shown),
            run=run,
            validation_share=VALIDATION_SHARE,
            trained_with=sorted((preset, of) for preset, of in estimates.items() if of != "given"),
            deviations=deviations,
            ids={name: saved.artefact.title for name, saved in shown.items()},
            names={name: entry.title for name, entry in artefacts.entries().items()},
            paper=paper,
            rule=RULE,
            notebooks=sorted(notebooks),
            provenance=provenance.gather(run, benchmarks, made),
        )
    )
    write_text(out, re.sub(r"\n\s*\n+", "\n", html))
    return out


@lru_cache
def _page() -> Environment:
    """The environment of the report's templates with the page's filters and functions."""
    made = environment(html=True)
    made.filters["coded"] = _coded
    made.globals |= {
        "badge": marks.badge,
        "cell": marks.cell,
        "data_meaning": marks.DATA_MEANING,
        "outcome_words": marks.OUTCOME,
        "opponents": opponents.OPPONENTS,
        "allow_scripts": inline.allow_scripts,
        "part": inline.part,
        "svg": inline.svg,
        "csv_link": inline.csv_link,
        "table": tables.render,
    }
    return made


def _coded(text: str) -> Markup:
    """Text with the parts between backticks as code."""
    parts = enumerate(text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in parts)
