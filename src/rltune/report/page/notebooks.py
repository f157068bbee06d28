"""Executed notebooks as HTML pages of the report that need no network."""

from collections.abc import Iterable
from pathlib import Path

from rltune.files import write_text
from rltune.report.page.inline import allow_scripts, part

SETTINGS = {
    "template_name": "lab",  # for its colours of code alone
    "template_file": str(Path(__file__).parents[1] / "templates" / "notebook.html.j2"),
    "preprocessors": ["nbconvert.preprocessors.CoalesceStreamsPreprocessor"],
    "exclude_input_prompt": True,
    "exclude_output_prompt": True,
    "exclude_anchor_links": True,
}


def render_all(notebooks: Iterable[str | Path], folder: Path) -> list[str]:
    """Write each notebook as `<name>.html` to the folder and return the names, in order.

    Code of cells with the tag `plumbing` is folded, and so are the parameters in git where others were given; cells with
    the tag `folded` are, with what they show.
    """
    import nbformat
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    paths = list(map(Path, notebooks))
    names = [path.stem for path in paths]
    exporter = HTMLExporter(config=Config({"HTMLExporter": SETTINGS}))
    common = {"look": part("page.css") + part("notebook.css"), "theme": part("theme.js")}
    common["scripts_allowed"] = allow_scripts("theme.js")
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        if any("injected-parameters" in cell.metadata.get("tags", []) for cell in notebook.cells):
            for cell in notebook.cells:
                if "parameters" in cell.metadata.get("tags", []):
                    cell.metadata.tags.append("defaults")
        title = notebook.cells[0].source.partition("\n")[0].lstrip("# ")
        facts = {"metadata": {"name": path.stem}, "title": title, "related": _related(path.stem, names), **common}
        body, _ = exporter.from_notebook_node(notebook, facts)
        write_text(folder / f"{path.stem}.html", body)
    return names


def _related(name: str, names: list[str]) -> list[tuple[str, str]]:
    """(Name, text of the link) of the notebooks about the same cell or its trace; of a chapter, the chapters."""
    subject = name.partition("-")[2]
    split = [(other, *other.partition("-")) for other in names]
    return [(other, stage) for other, stage, _, about in split if about in (subject, subject.split("__")[0])]
