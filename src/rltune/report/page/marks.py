"""Numbers and words of the summary as HTML: every number names the cell of the CSV that it is from, or what it counts."""

from collections.abc import Iterable

from markupsafe import Markup

from rltune.config.trace import TraceConfig
from rltune.report.format import MISSING, is_missing, show
from rltune.report.templates import slug
from rltune.report.verdict import TOO_FEW

DATA_MEANING = {
    "synthetic": "generated rows that follow the published distributions of the traces, not measurements",
    "sample": "a part of the published traces",
    "full": "the whole published traces",
    "own": "your own job log",
}
"""Kind of data → what it is."""
OUTCOME = {word: word for word in ("better", "worse", TOO_FEW)} | {"open": "no difference shown"}
"""What an interval shows → the words for it on the page."""


def cell(artefact: str, row: int, column: str, value: object, format: str, unsigned: bool = False) -> Markup:
    """A number with the cell of the CSV that it is from; `unsigned` where the words around it give its direction."""
    if is_missing(value):
        return Markup(MISSING)
    return Markup('<data value="{v}" data-from="{a}.csv:{r}:{c}">{t}</data>').format(
        v=value, a=artefact, r=row, c=column, t=show(abs(value) if unsigned else value, format)
    )


def badge(words: object, text: str = "") -> Markup:
    """Words as a badge in the colour that goes with them."""
    return Markup('<span class="badge {}">{}</span>').format(slug(words), text or words)


def by_label(traces: Iterable[TraceConfig]) -> dict[str, list[str]]:
    """Kind of data → titles of the traces."""
    titles: dict[str, list[str]] = {}
    for trace in traces:
        titles.setdefault(trace.data, []).append(trace.title)
    return titles
