"""Executed notebooks as HTML pages that need no network."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rltune.files import write_text

BARE = {"embed_images": True, "mathjax_url": "", "require_js_url": "", "jquery_url": "", "mermaid_js_url": ""}


def render_all(notebooks: Iterable[str | Path], folder: Path) -> list[str]:
    """Write each notebook as `<name>.html` to the folder and return the names, in order."""
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    exporter = HTMLExporter(config=Config({"HTMLExporter": BARE}))
    names = []
    for path in map(Path, notebooks):
        body, _ = exporter.from_filename(str(path))
        write_text(folder / f"{path.stem}.html", body.replace('<script src=""></script>', ""))
        names.append(path.stem)
    return names
