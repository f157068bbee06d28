"""Print the report's page to a PDF."""

from pathlib import Path

from logged import logged

from rltune.report.pdf import print_page

with logged(snakemake.log[0]):  # noqa: F821
    print_page(Path(snakemake.input.report), Path(snakemake.output.pdf))  # noqa: F821
