"""Files as parts of the page: figures in its colours, data that can be downloaded from it."""

import base64
import hashlib
import re
from pathlib import Path

import pandas as pd
from markupsafe import Markup, escape

from rltune.report.artefact import Saved
from rltune.report.style import GRID, INK, MUTED, PAPER

INKS = {INK: "--figure-ink", MUTED: "--figure-muted", GRID: "--figure-grid", PAPER: "--figure-paper"}
"""Colours of a figure that the page replaces, so that figures follow dark mode."""

_ID = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r'(xlink:href="#|href="#|url\(#)')


def part(name: str) -> Markup:
    """A style sheet or script of this folder, without blank lines."""
    return Markup(re.sub(r"\n\s*\n+", "\n", (Path(__file__).parent / name).read_text(encoding="utf-8")).strip())


def allow_scripts(*names: str) -> str:
    """The content security policy of a page with these scripts of this folder alone, which fetches nothing: scripts in
    titles or names of the data do not run."""
    hashes = (base64.b64encode(hashlib.sha256(part(name).encode()).digest()).decode() for name in names)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; "
        "form-action 'none'"
    )


def svg(saved: Saved) -> Markup:
    """A figure's SVG for use inside HTML: unique ids, the page's colours, a text alternative, no fixed size."""
    name, text = saved.artefact.id, saved.svg
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = _ID.sub(lambda m: f'id="{name}--{m[1]}"', text)
    text = _REFERENCE.sub(lambda m: f"{m[1]}{name}--", text)
    for colour, variable in INKS.items():
        text = re.sub(rf"(?<![0-9a-f]){colour}\b", f"var({variable})", text, flags=re.IGNORECASE)
    # namespaces are implied inside HTML
    opening = text[: text.index(">") + 1]
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', opening)[0])
    bare = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(saved.artefact.alt)}">'
    return Markup(bare + text[len(opening) :].replace("xlink:href", "href"))


def csv_link(frame: pd.DataFrame) -> str:
    """The frame's CSV as a data address."""
    data = frame.to_csv(index=False, lineterminator="\n").encode()
    return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(data).decode()}"
