"""Compare a finished run's headline numbers with those expected of it (config/expected.yaml)."""

import sys
from pathlib import Path

import pandas as pd
from logged import logged

from rltune.config import project_root
from rltune.files import write_text
from rltune.report.expected_numbers import as_table, check, load_expectations


def main(rule) -> None:
    expectations = load_expectations(Path(rule.input.expected), project_root())
    without, traces = rule.params.without, rule.params.traces
    checked = check(rule.params.config, Path(rule.params.artefacts), expectations, traces, without)
    print(as_table(checked))
    if without:
        print(f"not compared: {', '.join(without)}, which need Slurm's daemons; the report says how to install them")
    expected = {number.trace for part in expectations.reproduced for number in part.numbers if number.trace}
    if others := sorted(expected - set(traces)):
        print(f"not compared: the numbers of {', '.join(others)}, in whose place this run has another trace")
    rows = [
        {"artefact": c.number.artefact, "what": c.number.says, "found": c.found, "inside": c.inside} for c in checked
    ]
    outside = [row for row in rows if not row["inside"]]
    print(f"{len(rows) - len(outside)} of {len(rows)} numbers are within their tolerance")
    if outside:
        sys.exit(1)
    write_text(rule.output.checked, pd.DataFrame(rows).to_csv(index=False))


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
