"""Render the executed notebooks and build the page that shows every table and figure."""

from pathlib import Path

from logged import logged

from rltune.config.context import Run
from rltune.report.page import build
from rltune.report.page.notebooks import render_all


def main(rule) -> None:
    out = Path(rule.output.report)
    pages = render_all(rule.input.notebooks, out.parent / "notebooks")
    build(Run.open(rule.params.config), Path(rule.params.artefacts), out, pages, Path(rule.params.benchmarks))
    print(f"the report: {out}")


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
