"""Fit the synthetic traces to the fit months of the real rows, and write their parameters.

Writes src/rltune/traces/synthetic/fitted/<name>.json: aggregate figures, no rows. Needs the folder of files that
config/traces/{philly,venus,pai}-csv.yaml and hpc2n-swf.yaml read (RLTUNE_REAL_TRACES, default ../shared/traces). The
months held for the check play no part; benchmarks/synthetic.py compares with them.

    python benchmarks/fit_synthetic.py [--tries 250] [--anew] [philly helios alibaba2020 hpc2n]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rltune.calibration.fit import START, count_marginals, search
from rltune.calibration.likeness import describe
from rltune.calibration.months import MONTHS
from rltune.calibration.real import months_of
from rltune.calibration.replay import describe_waits
from rltune.config import Workspace
from rltune.traces.synthetic.parameters import FITTED, Fitted


def fit(name: str, workspace: Workspace, tries: int, anew: bool) -> None:
    """Fit one trace and write its file; the search goes on from the last one's result, unless ``anew``."""
    months = MONTHS[name]
    rows, t0 = months_of(name, workspace.root)["fit"]
    cluster = workspace.cluster(months.cluster) if months.cluster else None
    target = describe(rows, t0, months.sample) | (describe_waits(rows, cluster) if cluster else {})
    marginals = count_marginals(name, rows, t0, months)
    known = not anew and (FITTED / f"{name}.json").is_file()
    start = Fitted.read(name).dynamics if known else START
    dynamics = search(name, marginals, target, months, cluster, t0, tries, start, lambda line: print(line, flush=True))
    statistics = {what: float(f"{value:.4g}") for what, value in target.items()}
    Fitted({"first": months.fit[0], "until": months.fit[1]}, marginals, dynamics, statistics).write(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(MONTHS)}; default: all")
    parser.add_argument("--tries", type=int, default=250, help="candidates to judge")
    parser.add_argument("--anew", action="store_true", help="start the search from its beginning")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(MONTHS)
    if unknown:
        parser.error(f"found {', '.join(sorted(unknown))}; expected {', '.join(MONTHS)}")
    os.environ.setdefault("RLTUNE_REAL_TRACES", str(Path("../shared/traces").resolve()))
    workspace = Workspace.open("config/csv.yaml")
    for name in arguments.names or MONTHS:
        fit(name, workspace, arguments.tries, arguments.anew)


if __name__ == "__main__":
    sys.exit(main())
