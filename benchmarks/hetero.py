"""Rules that choose a job's GPU type, on clusters of three types with measured speeds, on held-out real rows.

The last tenth of each trace, in disjoint windows of 256 jobs, each from an idle cluster; estimates lognormal(1). Rules
(rltune.evaluation.studies.gpu_types): orders × backfill rules × {any, fastest free, fastest only}, earliest completion, and that with a
price of GPU time. *Ours* is the priced rule whose order, price and estimates (given or calibrated) are best on the
validation windows; no agent takes part. It is compared with the best rule without a price, in hindsight; with the priced
rule on the given estimates, chosen on the validation windows too; and with the best orders of fastest free and of any free, in hindsight.
Next to it, *exact*: the priced rules with true run times, the best in hindsight: what better estimates could gain.

PAI's rows are read from the folder that RLTUNE_REAL_TRACES names (default ../shared/traces). Negative differences are
better. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd

from rltune.cluster.workload import Workload, build_workload
from rltune.config.context import Run
from rltune.evaluation.intervals import improved
from rltune.evaluation.studies.gpu_types import RULE, contender, rules, run_rule
from rltune.simulator.bound import lower_bound
from rltune.traces.split import disjoint_windows, spread

TRACES = {
    "philly": ("philly-rows", "philly-192-mixed"),
    "venus": ("venus-rows", "venus-160-mixed"),
    "pai": ("pai-csv", "pai-140-mixed"),
}
LENGTH, RESAMPLES, CONFIDENCE = 256, 10_000, 0.95


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", nargs="+", choices=list(TRACES), default=list(TRACES))
    parser.add_argument("--windows", type=int, default=48, help="windows of each part, at most")
    args = parser.parse_args()
    os.environ.setdefault("RLTUNE_REAL_TRACES", "../shared/traces")
    began, figures, run = time.perf_counter(), {}, Run.open("config/csv.yaml")
    for name in args.traces:
        workload = build_workload(run, *TRACES[name], "lognormal-1", calibrate=True)
        figures |= compare(name, workload, run, args.windows)
    print(json.dumps({**figures, "seconds": round(time.perf_counter() - began)}))


def compare(name: str, given: Workload, run: Run, most: int) -> dict[str, float | None]:
    """Print a trace's table; its figures."""
    calibrated = given.calibrated
    assert calibrated is not None
    by_estimates = {
        "given": given,
        "calibrated": replace(given, jobs=calibrated),
        "exact": replace(given, jobs=given.with_estimates(given.jobs.run_s)),
    }
    known, first = (
        spread(disjoint_windows(*part, LENGTH), most) for part in (given.split.validation, given.split.test)
    )

    def table(starts: np.ndarray, estimates: list[str], priced: tuple[bool, ...]) -> pd.DataFrame:
        return pd.concat(
            run_rule(by_estimates[kind], contender(run.config, rule), starts, LENGTH).assign(estimates=kind)
            for kind in estimates
            for charge in priced
            for rule in rules(run.config.evaluation.baseline_policies, charge)
        )

    before = table(known, ["given", "calibrated"], (True,))
    best = before.groupby([*RULE, "estimates"])["excess_s"].mean()
    began = time.process_time()
    tested = table(first, ["given"], (False, True))
    seconds = time.process_time() - began
    tested = pd.concat([tested, table(first, ["calibrated", "exact"], (True,))])
    means = tested.groupby([*RULE, "estimates"])["excess_s"].mean()
    ours, priced = best.idxmin(), best.xs("given", level="estimates", drop_level=False).idxmin()
    free = means[means.index.get_level_values("gpu_price") == 0]
    rivals = {"best_rule": free.idxmin(), "priced": priced} | {
        f"{types}_free" if types == "any" else types: free.xs(types, level="types", drop_level=False).idxmin()
        for types in ("fastest_free", "any")
    }
    exact = means.xs("exact", level="estimates", drop_level=False).idxmin()
    print(f"\n{name}, {len(first)} windows of {LENGTH} jobs; ours: {ours}; best with exact run times: {exact}")
    shown = tested.groupby([*RULE, "estimates"], sort=False)[["jct_s", "excess_s", "wait_s", "bsld"]].mean()
    print(shown.round(1).to_string())
    bound = np.mean([lower_bound(given.jobs, given.layout, int(f), LENGTH).jct_s for f in first])
    rate = len(first) * LENGTH * tested.query("estimates == 'given'")[RULE].drop_duplicates().shape[0] / seconds
    figures: dict[str, float | None] = {
        f"{name}_windows": len(first),
        f"{name}_bound_jct_s": round(bound),
        f"{name}_jobs_per_s": round(rate),
    }
    by_rule = {rule: part.sort_values("window") for rule, part in tested.groupby([*RULE, "estimates"])}
    pairs = {f"vs_{rival}": (ours, rule) for rival, rule in rivals.items()} | {"exact_vs_priced": (exact, priced)}
    for pair, (mine, theirs) in pairs.items():
        column = "jct_s" if pair in ("vs_fastest_free", "vs_any_free") else "excess_s"
        sides = (by_rule[rule][column].to_numpy() for rule in (mine, theirs))
        found = improved(*sides, RESAMPLES, CONFIDENCE, seed=1)
        for end, value in zip(("", "_lo", "_hi"), (-found.gain, -found.high, -found.low)):
            figures[f"{name}_{pair}{end}"] = round(value + 0.0, 4) if value == value else None
    print({key: value for key, value in figures.items() if "_vs_" in key and not key.endswith(("_lo", "_hi"))})
    return figures


if __name__ == "__main__":
    sys.exit(main())
