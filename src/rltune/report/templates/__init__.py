"""Texts of the report as Jinja templates, and the one environment that fills them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from rltune.report.format import FORMATS, is_missing, show, show_interval


@lru_cache
def environment() -> Environment:
    """Templates in this folder; every format of `rltune.report.format` is a filter."""
    made = Environment(
        loader=PackageLoader("rltune.report", "templates"),
        undefined=StrictUndefined,
        autoescape=False,  # the page escapes what it shows
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in FORMATS:
        made.filters[name.replace("-", "_")] = lambda value, name=name: show(value, name)
    made.filters["interval"] = show_interval
    made.filters["level"] = lambda confidence: f"{100 * confidence:.0f}"
    made.tests["missing"] = is_missing
    return made


def fill(name: str, /, **facts: Any) -> str:
    """A template's text."""
    return environment().get_template(name).render(facts)
