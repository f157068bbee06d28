"""Rules that choose a job's GPU type, on clusters of three types with measured speeds, on held-out real rows.

The last tenth of each trace, in disjoint windows of 256 jobs, each from an idle cluster; estimates lognormal(1). Rules
(rltune.evaluation.studies.gpu_types): orders × backfill rules × {any, fastest free, fastest only}, earliest completion, AlloX, that with a
price of GPU time, and order and type planned together. *Ours* is the last, with the order, price and estimates (given or calibrated)
that are best on the validation windows; no agent takes part. It is compared with the best rule without a price, in hindsight; with the
earliest completion with a price, its order, price and estimates chosen on the validation windows too; and with the best orders of fastest
free and of any free, in hindsight. Next to it, *exact*: planned together with true run times, the best in hindsight: what better
estimates could gain. The search that plans is measured by the integer program on the first trace's questions, and by its time.

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
from typing import Any

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import PPO
from rltune.agent.rollout import ranker_of
from rltune.cluster.workload import Workload, build_workload
from rltune.config import Preset
from rltune.config.context import Run
from rltune.environment.observation import width_of
from rltune.evaluation.intervals import improved
from rltune.evaluation.studies.gpu_types import RULE, contender, rules, run_rule
from rltune.placement.joint import measure
from rltune.simulator.batch import Run as BatchRun, simulate
from rltune.simulator.bound import lower_bound
from rltune.simulator.config import SchedulerConfig
from rltune.traces.split import disjoint_windows, spread

TRACES = {
    "philly": ("philly-rows", "philly-192-mixed"),
    "venus": ("venus-rows", "venus-160-mixed"),
    "pai": ("pai-csv", "pai-140-mixed"),
}
LENGTH, RESAMPLES, CONFIDENCE = 256, 10_000, 0.95
QUEUED = 60
"""Jobs in the queue, at least, of the decisions that are timed."""


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
        if not figures:
            figures |= search_quality(workload, run)
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
    together = best.index.get_level_values("types") == "joint"
    began = time.process_time()
    tested = table(first, ["given"], (False, True))
    seconds = time.process_time() - began
    tested = pd.concat([tested, table(first, ["calibrated", "exact"], (True,))])
    means = tested.groupby([*RULE, "estimates"])["excess_s"].mean()
    ours = best[together].idxmin()
    priced = best[~together].idxmin()
    unplanned = means.index.get_level_values("types") != "joint"
    free = means[unplanned & (means.index.get_level_values("gpu_price") == 0)]
    rivals = {"best_rule": free.idxmin(), "priced": priced} | {
        f"{types}_free" if types == "any" else types: free.xs(types, level="types", drop_level=False).idxmin()
        for types in ("fastest_free", "any")
    }
    exact = means[~unplanned].xs("exact", level="estimates", drop_level=False).idxmin()
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
    pairs = {f"vs_{rival}": (ours, rule) for rival, rule in rivals.items()} | {"exact_vs_ours": (exact, ours)}
    for pair, (mine, theirs) in pairs.items():
        column = "jct_s" if pair in ("vs_fastest_free", "vs_any_free") else "excess_s"
        sides = (by_rule[rule][column].to_numpy() for rule in (mine, theirs))
        found = improved(*sides, RESAMPLES, CONFIDENCE, seed=1)
        for end, value in zip(("", "_lo", "_hi"), (-found.gain, -found.high, -found.low)):
            figures[f"{name}_{pair}{end}"] = round(value + 0.0, 4) if value == value else None
    print({key: value for key, value in figures.items() if "_vs_" in key and not key.endswith(("_lo", "_hi"))})
    return figures


def search_quality(workload: Workload, run: Run) -> dict[str, float]:
    """How good and how fast the search is from the validation windows on, and how many decisions a second a network ranks."""
    scheduler = contender(run.config, SchedulerConfig("saf", "conservative", types="joint", gpu_price=0.1)).scheduler
    first = spread(disjoint_windows(*workload.split.validation, LENGTH), 8)
    measured = measure(workload.jobs, workload.layout, first, LENGTH, scheduler, most=200)
    policy = TrainedPolicy(PPO(Preset(), np.random.default_rng(1), width_of("rich")).weights(), {"features": "rich"})
    ranker = ranker_of(policy, workload.jobs, workload.layout)
    n = np.full(len(first), LENGTH)
    simulate(workload.jobs, workload.layout, first[:1], n[:1], scheduler, ranker)  # compiled
    began = time.perf_counter()
    state = simulate(workload.jobs, workload.layout, first, n, scheduler, ranker)
    rate = state.status["decisions"].sum() / (time.perf_counter() - began)
    each = []
    for begin in first[: len(first) // 2]:
        timed = Timed(workload.jobs, workload.layout, [begin], [4 * LENGTH], scheduler)
        timed.advance()
        each += timed.each
    long = [ms for ms, queued in each if queued >= QUEUED] or [float("nan")]
    figures = {
        "search_questions": float(len(measured)),
        "search_gap_p50": measured["gap"].median(),
        "search_gap_p95": measured["gap"].quantile(0.95),
        "search_p50_ms": measured["search_ms"].median(),
        "cvxpy_p50_ms": measured["program_ms"].median(),
        "program_p50_ms": float(np.median(long)),
        "program_p95_ms": float(np.percentile(long, 95)),
        f"decisions_of_{QUEUED}_queued": float(len(long)),
        "rollout_decisions_per_s": float(rate),
    }
    return {name: round(value, 4) for name, value in figures.items()}


class Timed(BatchRun):
    """One sequence; keeps (ms, jobs queued) of each of its decisions."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.each: list[tuple[float, int]] = []

    def reserve(self) -> None:
        """As always, timed."""
        queued, began = int(self.state.queue["len"].sum()), time.perf_counter()
        super().reserve()
        self.each.append((1000 * (time.perf_counter() - began), queued))


if __name__ == "__main__":
    sys.exit(main())
