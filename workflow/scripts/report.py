"""Render the executed notebooks and build the page that shows every table and figure."""

from pathlib import Path

from logged import logged

from rltune.config.context import Run
from rltune.files import read_json
from rltune.report.page import build
from rltune.report.page.notebooks import render_all
from rltune.report.paper import load_deviations, load_paper


def main(rule) -> None:
    out = Path(rule.output.report)
    pages = render_all(rule.input.notebooks, out.parent / "notebooks")
    made = [read_json(path)["metadata"].get("rltune", {}) for path in rule.input.notebooks]
    paper, deviations = load_paper(rule.input.paper), load_deviations(rule.input.deviations)
    run, folder, benchmarks = Run.open(rule.params.config), Path(rule.params.artefacts), Path(rule.params.benchmarks)
    build(run, folder, out, paper, deviations, pages, benchmarks, made)
    print(f"the report: {out}")


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
