"""Texts of the report as Jinja templates, and the one environment that fills them."""

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from rltune.evaluation.intervals import CONFIDENCE
from rltune.report.format import FORMATS, is_missing, listed, show, show_interval
from rltune.report.style import policy_title


def slug(text: object) -> str:
    """A word or two as a CSS class: `does not hold` → `does-not-hold`."""
    return "-".join(str(text).lower().split())


@lru_cache
def environment(html: bool = False) -> Environment:
    """Templates in this folder, with escaping if they are ``html``; every format of `rltune.report.format` is a filter."""
    made = Environment(
        loader=PackageLoader("rltune.report", "templates"),
        undefined=StrictUndefined,
        autoescape=html,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in FORMATS:
        made.filters[name.replace("-", "_")] = lambda value, name=name: show(value, name)
    made.filters |= {
        "interval": show_interval,
        "show": show,
        "slug": slug,
        "listed": listed,
        "policy_title": policy_title,
        "level": lambda c: f"{100 * c:.0f}",
    }
    made.tests["missing"] = is_missing
    made.globals["confidence"] = CONFIDENCE
    return made


def fill(name: str, /, **facts: Any) -> str:
    """A template's text."""
    return environment().get_template(name).render(facts)
