"""Docstrings as Markdown: the project writes tables as reStructuredText does, and names with roles of it."""

from __future__ import annotations

import re
from typing import Any

import griffe

RULE = re.compile(r"^ *=+( +=+)+ *$")
ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`")


def as_markdown(text: str) -> str:
    """The same docstring with its tables as code blocks, since Markdown knows no such tables, and roles as code."""
    out: list[str] = []
    inside = False
    lines = ROLE.sub(r"`\1`", text).splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if RULE.match(line) and not inside:
            inside = True
            out += ["", "```text", line]
        elif RULE.match(line) and not after.strip():  # a table ends at a rule with nothing under it
            inside = False
            out += [line, "```", ""]
        else:
            out.append(line)
    if inside:
        raise ValueError(f"a table in a docstring has no end: {text[:80]!r}")
    return "\n".join(out)


class Markdown(griffe.Extension):
    """Rewrites every docstring as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
