"""What placement rules and localities gain on real rows, with intervals, at several strengths of contention.

Needs the folder of files that config/traces/{philly,venus,pai}-csv.yaml and openb-running.yaml read
(RLTUNE_REAL_TRACES, default ../shared/traces). Windows of 256 jobs, disjoint, each from an idle cluster; estimates
lognormal(1); base policies, no agent. `--part test`: the held-out tenth; of openb-running, which nothing is trained on,
all windows but the first third. `--part choose`: what lies before, evenly spaced, for settings to be chosen on.

A scheduler is a placement and a locality; with contention off a split costs nothing. Compared are paired windows:
look-ahead with best_fit and with isolating_best_fit under the same locality; isolating_best_fit with best_fit under the
same; best_fit under each other locality with strict, and under soonest_end with worth_it; the best look-ahead with best_fit
under strict, any and worth_it. The best is named by --best, or else the one with the least mean wait on these same windows,
which favours it. Intervals (95 %) are for one comparison at a time: of the many here, some miss the truth.

Writes results/benchmarks/placement.csv (placement-choose.csv for that part): a row a window, setting and scheduler. The
last line is one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from rltune.cluster.workload import Workload, build_workload  # noqa: E402
from rltune.config import LookaheadConfig  # noqa: E402
from rltune.config.context import Run  # noqa: E402
from rltune.evaluation.intervals import FEWEST, improved  # noqa: E402
from rltune.files import atomic_write  # noqa: E402
from rltune.placement.counts import Counts  # noqa: E402
from rltune.placement.placers import placer_of  # noqa: E402
from rltune.policies import IDS  # noqa: E402
from rltune.report.style import scheduler_title  # noqa: E402
from rltune.simulator.batch import SchedulerConfig, simulate  # noqa: E402
from rltune.simulator.config import BACKFILLS  # noqa: E402
from rltune.simulator.metrics import chunk_table, job_table, sequence_table  # noqa: E402
from rltune.simulator.state import State  # noqa: E402
from rltune.simulator.timeline import time_average, timeline  # noqa: E402
from rltune.traces.split import disjoint_windows, spread  # noqa: E402

LENGTH, MOST_TO_CHOOSE = 256, 120
RESAMPLES, CONFIDENCE = 5000, 0.95
WORKLOADS = {"philly-csv": "philly-192", "venus-csv": "venus-160", "pai-csv": "pai-140", "openb-running": "openb-96"}
CONTENTION = {"off": (1.0, 1.0), "split only": (1.2, 1.0), "low": (1.0, 1.1), "middle": (1.2, 1.25), "high": (2.2, 1.5)}
"""Name → (multi_node_slowdown, interference_slowdown) of a SchedulerConfig."""


POLICIES = ("saf+easy", "fifo+easy", "saf+none")
PLACEMENTS = ("best_fit", "isolating_best_fit", "lookahead")
LOCALITIES = ("strict", "any", "worth_it", "soonest_end")
AGAINST = ("strict", "any", "worth_it")
"""Localities of best_fit that the best look-ahead is compared with."""
RIVALS = (("lookahead", "best_fit"), ("lookahead", "isolating_best_fit"), ("isolating_best_fit", "best_fit"))
"""Placements compared under each locality."""
ORDERS = (("any", "strict"), ("worth_it", "strict"), ("soonest_end", "strict"), ("soonest_end", "worth_it"))
"""Localities compared with best_fit."""
COMPARED = {
    "wait_s": "less wait",
    "jct_s": "less JCT",
    "bsld": "less BSLD",
    "fragmentation": "less fragmentation",
    "utilisation": "more utilisation",
}
SHARES = {"utilisation": "util %", "fragmentation": "frag %", "split": "split %"}
HEADINGS = {"wait_s": "wait s", "jct_s": "JCT s", "bsld": "BSLD", "slow_down": "slow-down", **SHARES}
ANSWERS = ("asked", "presolved", "cached", "optimal", "infeasible", "limit", "failure")
OUT = Path("results/benchmarks")

Task = tuple[str, str, SchedulerConfig]
"""Workload, name of a contention, setting."""
_loaded: dict[str, tuple[Workload, np.ndarray]] = {}
"""This process's workloads and the first rows of their windows."""


def windows(trace: str, load: Workload, part: str, most: int | None) -> np.ndarray:
    """First rows of the windows of a part; at most ``most`` of them, evenly spread."""
    if trace == "openb-running":
        every = disjoint_windows(0, len(load.jobs.row), LENGTH)
        third = len(every) // 3
        found = every[:third] if part == "choose" else every[third:]
    else:
        begin, stop = (0, load.split.test[0]) if part == "choose" else load.split.test
        found = disjoint_windows(begin, stop, LENGTH)
    return spread(found, min(most or MOST_TO_CHOOSE, MOST_TO_CHOOSE) if part == "choose" else most)


def prepare(traces: list[str], part: str, most: int | None) -> None:
    """Load the workloads of this process and let everything be compiled, so that no clock counts it."""
    opened = Run.open("config/csv.yaml")
    for trace in traces:
        load = build_workload(opened, trace, WORKLOADS[trace], "lognormal-1")
        _loaded[trace] = load, windows(trace, load, part, most)
        run((trace, "off", SchedulerConfig("saf", "easy", "lookahead")))


def run(task: Task) -> tuple[pd.DataFrame, Counts | None]:
    """A row a window of one workload under one setting, and how a placer, if any, answered."""
    trace, contention, scheduler = task
    load, first = _loaded[trace]
    placer = placer_of(scheduler.placement, LookaheadConfig())
    state = simulate(load.jobs, load.layout, first, np.full(len(first), LENGTH), scheduler, placer=placer)
    names = ("policy", "backfill", "multi_node_slowdown", "interference_slowdown", "placement", "locality")
    table = pd.DataFrame(
        {
            "workload": trace,
            "contention": contention,
            **{k: v for k, v in asdict(scheduler).items() if k in names},
            "first_job": first,
            **measured(load, state),
        }
    )
    return table, placer.counts if placer else None


def measured(load: Workload, state: State) -> dict[str, np.ndarray]:
    """Metric → value of each window."""
    means = sequence_table(load.jobs, state, load.layout.gpus)
    jobs, chunks = job_table(load.jobs, state), chunk_table(state)
    longer = (jobs["end_s"] - jobs["start_s"]) / jobs["run_s"].where(jobs["run_s"] > 0)
    a_node = chunks.drop_duplicates(["sequence", "job"])["node"].to_numpy()  # both tables have jobs in this order
    cut = load.jobs.cut[jobs["job"].to_numpy(), load.layout.nodes.row["type"][a_node]]
    split = jobs["nodes"] > cut["full"] + (cut["rem"] > 0)
    fragmentation = [
        time_average(timeline(one, some, load.layout.nodes), "fragmentation", float(one["start_s"].max()))
        for (_, one), (_, some) in zip(jobs.groupby("sequence"), chunks.groupby("sequence"), strict=True)
    ]
    return {
        **{column: means[column].to_numpy() for column in ("wait_s", "jct_s", "bsld")},
        "slow_down": longer.fillna(1.0).groupby(jobs["sequence"]).mean().to_numpy(),
        "utilisation": means["utilisation_span"].to_numpy(),
        "fragmentation": np.array(fragmentation),
        "split": split.groupby(jobs["sequence"]).mean().to_numpy(),
    }


def tasks(traces: list[str], policies: list[str], contentions: list[str]) -> list[Task]:
    """Everything to run."""
    found: list[Task] = []
    for trace, contention, policy in itertools.product(traces, contentions, policies):
        slowdowns = dict(zip(("multi_node_slowdown", "interference_slowdown"), CONTENTION[contention]))
        for placement, locality in itertools.product(PLACEMENTS, LOCALITIES):
            scheduler = SchedulerConfig(*policy.split("+"), placement, locality, **slowdowns)
            found.append((trace, contention, scheduler))
    return found


def run_all(todo: list[Task], processes: int, how: tuple) -> Iterator[tuple[pd.DataFrame, Counts | None]]:
    """Results in the order of the tasks, whoever ran them."""
    with multiprocessing.get_context("spawn").Pool(processes, prepare, how) as pool:
        yield from pool.imap(run, todo)


def improvement(ours: pd.Series, theirs: pd.Series, more: bool = False) -> tuple[float, float, float, str]:
    """(Less of it in %, or ``more`` of it, its interval, a word for it)."""
    better, low, high, _ = improved(ours.to_numpy(), theirs.to_numpy(), RESAMPLES, CONFIDENCE, seed=1)
    if more:
        better, low, high = -better, -high, -low
    word = "few" if len(ours) < FEWEST else "better" if low > 0 else "worse" if high < 0 else "level"
    return 100 * better, 100 * low, 100 * high, word


def comparisons(block: pd.DataFrame, best: str | None) -> Iterator[dict]:
    """Of one workload, contention and policy: a row a comparison, by COMPARED its improvement."""
    by = {names: rows.sort_values("first_job") for names, rows in block.groupby(["placement", "locality"])}
    wait = {locality: rows["wait_s"].mean() for (p, locality), rows in by.items() if p == "lookahead"}
    chosen = best if best in wait else min(wait, key=lambda q: wait[q], default="")
    pairs = [(f"{ours} / {theirs}, {q}", (ours, q), (theirs, q)) for ours, theirs in RIVALS for q in LOCALITIES]
    pairs += [(f"best_fit, {q} / {r}", ("best_fit", q), ("best_fit", r)) for q, r in ORDERS]
    pairs += [(f"best lookahead / best_fit {q}", ("lookahead", chosen), ("best_fit", q)) for q in AGAINST]
    for title, ours, theirs in pairs:
        if ours in by and theirs in by:
            a, b = by[ours], by[theirs]
            figures = {c: improvement(a[c], b[c], c == "utilisation") for c in COMPARED}
            yield {"comparison": title, "locality": ours[1], **figures}


def show(trace: str, rows: pd.DataFrame, best: str | None) -> list[dict]:
    """Print one workload's tables; its comparisons."""
    n, found = rows["first_job"].nunique(), []
    print(f"\n{trace} on {WORKLOADS[trace]}: means over {n} windows of {LENGTH} jobs")
    for contention, block in rows.groupby("contention", sort=False):
        title = f"contention {contention}: multi_node_slowdown {block['multi_node_slowdown'].iloc[0]}, interference_slowdown {block['interference_slowdown'].iloc[0]}"
        print(f"\n {title:46}" + "".join(f"{h:>11}" for h in HEADINGS.values()))
        for names, part in block.groupby(["policy", "backfill", "placement", "locality"], sort=False):
            mean = part[list(HEADINGS)].mean() * [100 if c in SHARES else 1 for c in HEADINGS]
            values = "".join(f"{v:11,.0f}" if c in ("wait_s", "jct_s") else f"{v:11.3f}" for c, v in mean.items())
            print(f"  {scheduler_title(*names[:2]):12}{names[2]:>11} {names[3]:20} {values}")
        print(f"  {'in %, with interval':57}" + "".join(f"{c:32}" for c in COMPARED.values()))
        for (policy, backfill), part in block.groupby(["policy", "backfill"], sort=False):
            for row in comparisons(part, best):
                found.append({"workload": trace, "contention": contention, "policy": f"{policy}+{backfill}", **row})
                name, best_is = row["comparison"], row["locality"]
                if name == f"best lookahead / best_fit {best_is}":
                    continue  # said above
                name += f" [{best_is}]" if name.startswith("best") else ""
                cells = ("{:+z.1f} ({:+z.1f} to {:+z.1f}) {}".format(*row[c]) for c in COMPARED)
                print(f"  {scheduler_title(policy, backfill):12}{name:45}" + "".join(f"{c:32}" for c in cells))
    return found


def answered(counts: dict[tuple[str, str], list[Counts]]) -> list[dict]:
    """Print how placement questions were answered, a line a workload and locality over all its runs."""
    out = []
    print("\nplacement questions of lookahead, all runs together; ms of a solve (p50, p95)")
    for (trace, locality), several in counts.items():
        parts = {name: sum(getattr(c, name) for c in several) for name in ANSWERS}
        times = 1000 * np.concatenate([np.array(c.times_s) for c in several])
        p50, p95 = np.percentile(times, (50, 95)).round(3).tolist() if len(times) else (None, None)
        print(f"  {trace:14}{locality:12}" + "".join(f"{v:10,} {k}" for k, v in parts.items()) + f"; {p50}, {p95} ms")
        out.append({"workload": trace, "locality": locality, **parts, "p50_ms": p50, "p95_ms": p95})
    return out


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("test", "choose"), default="test", help="windows to run (default test)")
    parser.add_argument("--windows", type=int, help=f"at most so many, evenly spread (choose: {MOST_TO_CHOOSE})")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument(
        "--policies",
        nargs="+",
        choices=[f"{p}+{b}" for p in IDS for b in BACKFILLS],
        default=POLICIES,
        metavar="POLICY+BACKFILL",
        help=f"(default {' '.join(POLICIES)})",
    )
    parser.add_argument("--contention", nargs="+", choices=CONTENTION, default=list(CONTENTION))
    parser.add_argument("--best", choices=LOCALITIES, help="the look-ahead called best, as chosen on other windows")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    return parser.parse_args()


def main() -> None:
    """Run, print, write, draw; the JSON object last."""
    args = arguments()
    os.environ.setdefault("RLTUNE_REAL_TRACES", "../shared/traces")
    began = shown = time.perf_counter()
    todo = tasks(args.workloads, args.policies, args.contention)
    tables: list[pd.DataFrame] = []
    counts: dict[tuple[str, str], list[Counts]] = defaultdict(list)
    print("loading and compiling", file=sys.stderr, flush=True)
    how = (args.workloads, args.part, args.windows)
    prepare(*how)
    for (trace, _, scheduler), (table, count) in zip(todo, run_all(todo, args.processes, how), strict=True):
        tables.append(table)
        if count:
            counts[trace, scheduler.locality].append(count)
        if time.perf_counter() - shown > 5:
            shown = time.perf_counter()
            print(f"{len(tables)} of {len(todo)} runs, {shown - began:.0f} s", file=sys.stderr, flush=True)
    rows = pd.concat(tables, ignore_index=True)
    path = OUT / ("placement.csv" if args.part == "test" else f"placement-{args.part}.csv")
    with atomic_write(path) as temporary:
        rows.to_csv(temporary, index=False, float_format="%.6g")
    found = [r for trace in args.workloads for r in show(trace, rows[rows["workload"] == trace], args.best)]
    asked = answered(counts)
    print(f"\nwritten: {path} ({len(rows):,} rows)")
    for row in found:
        row |= {c: [v if isinstance(v, str) else round(v, 2) if v == v else None for v in row[c]] for c in COMPARED}
    print(
        json.dumps(
            {
                "part": args.part,
                "windows": {trace: len(_loaded[trace][1]) for trace in args.workloads},
                "better_percent": found,
                "placer": asked,
                "seconds": round(time.perf_counter() - began),
            }
        )
    )


if __name__ == "__main__":
    sys.exit(main())
