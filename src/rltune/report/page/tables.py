"""A frame as an HTML table: headings in two rows where columns are grouped, values as numbers for sorting."""

from __future__ import annotations

from itertools import groupby

import pandas as pd
from markupsafe import Markup

from rltune.report.artefact import Artefact, Column
from rltune.report.format import is_missing, show, show_interval

BADGES = {"verdict", "shows", "shows_strong", "data", "regime"}
"""Columns whose words are shown as badges, and all that end in `_verdict`."""

MANY = 20
"""Tables of more rows scroll by themselves, so that their headings stay in sight."""


def slug(text: object) -> str:
    """A word or two as a CSS class: `does not hold` → `does-not-hold`."""
    return "-".join(str(text).lower().split())


def render(artefact: Artefact, frame: pd.DataFrame) -> Markup:
    """The shown columns of an artefact's frame as a table; a cell's `data-value` is the value in the CSV."""
    columns = artefact.columns
    if not columns or frame.empty:
        return Markup("")
    body = Markup("").join(_row(row, columns) for _, row in frame.iterrows())
    many = " many" if len(frame) > MANY else ""
    return Markup(
        '<div class="scroll{many}" tabindex="0" role="region" aria-label="{label}"><table class="sortable">'
        '<caption class="sr">{title}</caption><thead>{head}</thead><tbody>{body}</tbody></table></div>'
    ).format(many=many, label=f"Table: {artefact.title}", title=artefact.title, head=_head(columns), body=body)


def _width(text: str) -> Markup | str:
    """Longer texts ask for a wider column, so that they do not become towers."""
    return Markup(' class="long"') if len(text) > 28 else Markup(' class="medium"') if len(text) > 12 else ""


def _head(columns: dict[str, Column]) -> Markup:
    grouped = any(c.group for c in columns.values())
    top, bottom = Markup(""), Markup("")
    for group, of_group in groupby(columns.values(), key=lambda c: c.group):
        members = list(of_group)
        for i, column in enumerate(members):
            cell = _heading(column, span=2 if grouped and not group else 1)
            if grouped and not group:
                top += cell
            else:
                bottom += cell
            if group and i == 0:
                top += Markup('<th scope="colgroup" colspan="{n}" class="group">{g}</th>').format(
                    n=len(members), g=group
                )
    return (
        Markup("<tr>{}</tr>").format(top) + Markup("<tr>{}</tr>").format(bottom)
        if grouped
        else Markup("<tr>{}</tr>").format(bottom)
    )


def _heading(column: Column, span: int) -> Markup:
    unit = Markup(' <span class="unit">({})</span>').format(column.unit) if column.unit else ""
    return Markup('<th scope="col"{rows}{kind}{help} data-sort>{text}{unit}</th>').format(
        rows=Markup(' rowspan="2"') if span == 2 else "",
        kind="" if column.format == "text" else Markup(' class="n"'),
        help=Markup(' title="{}"').format(column.help) if column.help else "",
        text=column.heading,
        unit=unit,
    )


def _row(row: pd.Series, columns: dict[str, Column]) -> Markup:
    cells = Markup("")
    for i, (name, column) in enumerate(columns.items()):
        value = row[name]
        text: object = show(value, column.format)
        if (name in BADGES or name.endswith("_verdict")) and not is_missing(value):
            text = Markup('<span class="badge {}">{}</span>').format(slug(value), text)
        if name == "artefact" and not is_missing(value):
            text = Markup('<a href="#{}">{}</a>').format(value, value)
        interval = show_interval(row[column.low], row[column.high], column.format) if column.low else ""
        if interval:
            text = Markup('{} <span class="interval">[{}]</span>').format(text, interval)
        raw = "" if is_missing(value) else value
        kind = Markup(' class="n"') if column.format != "text" else _width(show(value, column.format))
        if i == 0:
            cells += Markup('<th scope="row"{} data-value="{}">{}</th>').format(kind, raw, text)
        else:
            cells += Markup('<td{} data-value="{}">{}</td>').format(kind, raw, text)
    mark = Markup(' class="from-paper"') if row.get("row") == "paper" else ""
    return Markup("<tr{}>{}</tr>").format(mark, cells)
