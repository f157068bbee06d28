"""An executed notebook as a page."""

from __future__ import annotations

from pathlib import Path


def render(notebook: Path) -> str:
    """An executed notebook as one HTML page that asks nothing of the network."""
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    nothing = {"mathjax_url": "", "require_js_url": "", "jquery_url": "", "mermaid_js_url": ""}
    exporter = HTMLExporter(config=Config({"HTMLExporter": {"embed_images": True, **nothing}}))
    body, _ = exporter.from_filename(str(notebook))
    return body.replace('<script src=""></script>', "")
