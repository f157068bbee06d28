"""A frame as an HTML table: headings in two rows where columns are grouped, values as numbers for sorting."""

from itertools import groupby

import pandas as pd
from markupsafe import Markup

from rltune.report.artefact import Artefact
from rltune.report.templates import environment

BADGES = {"verdict", "shows", "shows_strong", "data", "regime"}
"""Columns whose words are shown as badges, and all that end in `_verdict`."""


def render(artefact: Artefact, frame: pd.DataFrame) -> Markup:
    """The shown columns of an artefact's frame as a table; a cell's `data-value` is the value in the CSV."""
    columns = artefact.columns
    if not columns or frame.empty:
        return Markup("")
    groups = [(group, list(of)) for group, of in groupby(columns.values(), key=lambda c: c.group)]
    badges = {name for name in columns if name in BADGES or name.endswith("_verdict")}
    facts = {"title": artefact.title, "columns": columns, "groups": groups, "badges": badges}
    return Markup(environment(html=True).get_template("table.html").render(rows=frame.to_dict("records"), **facts))
