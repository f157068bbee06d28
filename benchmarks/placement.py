"""What placement rules, localities and the size of the placement model gain on real rows, with intervals.

SAF with EASY, estimates lognormal-1, no agent; held-out windows of 256 jobs, disjoint, each from an idle cluster. PAI's rows, which do
not ship, are read where RLTUNE_REAL_TRACES (default ../shared/traces) has them. Compared are paired windows; a difference
is relative to the second scheduler, negative is less. Intervals (95 %) are for one comparison at a time: of the many here, some
miss the truth. `--part choose` runs windows that lie before the held-out part, for settings to be chosen on. The last line is
one JSON object; `--write` keeps it.
"""

import multiprocessing
import os
import sys
import time
from functools import cache
from typing import Any, NamedTuple

import parts.one_core  # noqa: F401

# isort: split
import numpy as np
import pandas as pd
from parts.output import parser_of, report
from parts.rows import HAS_PAI

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.workload import Workload, build_workload
from rltune.config import LookaheadConfig
from rltune.config.context import Run
from rltune.evaluation.intervals import improved
from rltune.placement.counts import CountingPlacer
from rltune.placement.lookahead import Lookahead
from rltune.placement.placers import placer_of
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.simulator.state import State
from rltune.traces.split import disjoint_windows, spread

LENGTH, MOST_TO_CHOOSE = 256, 120
RESAMPLES = 5000
TRACES = {"Philly": ("philly-rows", "philly-192"), "Venus": ("venus-rows", "venus-160"), "PAI": ("pai-csv", "pai-140")}
CONTENTION = {"off": (1.0, 1.0), "low": (1.0, 1.1), "middle": (1.2, 1.25)}
"""Name → (multi_node_slowdown, interference_slowdown)."""
METRICS = ("wait_s", "jct_s", "bsld")
MODEL = (8, 1)
"""Jobs K and time slots T of the placement model, as by default."""
BURST = 32
"""The paper calls K tunable, 8 to 16, under bursts: while more than so many jobs are queued, the size is MODEL."""
ADAPTED = {("8–16", 1): (16, 1), ("8–16", "1–4"): (16, 4)}
"""Sizes that adapt → the size while few are queued."""
MODELS = ((2, 1), (4, 1), MODEL, (16, 1), (8, 4), (16, 4), *ADAPTED)


class Choice(NamedTuple):
    """How jobs are placed."""

    placement: str
    locality: str
    model: tuple[int | str, int | str] = MODEL

    def __str__(self) -> str:
        return " ".join([self.placement, self.locality, *(map(str, self.model) if self.model != MODEL else ())])


LOOKAHEAD = Choice("lookahead", "soonest_end")
CHOICES = [
    *(Choice(p, q) for p in ("best_fit", "lookahead") for q in ("strict", "any", "worth_it", "soonest_end")),
    *(Choice("isolating_best_fit", q) for q in ("worth_it", "soonest_end")),
]
SIZES = [LOOKAHEAD._replace(model=model) for model in MODELS if model != MODEL]
PAIRS = [
    *((LOOKAHEAD, Choice("best_fit", q)) for q in ("strict", "any", "worth_it")),
    (LOOKAHEAD, Choice("isolating_best_fit", "soonest_end")),
    *((Choice("best_fit", q), Choice("best_fit", r)) for q, r in (("worth_it", "strict"), ("soonest_end", "worth_it"))),
    *((Choice("isolating_best_fit", q), Choice("best_fit", q)) for q in ("worth_it", "soonest_end")),
    *((Choice("lookahead", q), Choice("best_fit", q)) for q in ("strict", "worth_it")),
    (Choice("lookahead", "worth_it"), Choice("isolating_best_fit", "worth_it")),
    *((size, LOOKAHEAD) for size in SIZES),
]


class Adapting(Lookahead):
    """Looks at fewer jobs and slots while many are queued."""

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Write the chosen job's nodes for each sequence in ``asking``."""
        large, crowded = self.config, state.queued[asking] > BURST
        super().place(jobs, layout, state, asking[~crowded])
        state.top[asking[crowded], MODEL[0] :] = -1
        self.config = LookaheadConfig(jobs=MODEL[0], slots=MODEL[1])
        super().place(jobs, layout, state, asking[crowded])
        self.config = large


@cache
def load(trace: str, part: str, most: int | None) -> tuple[Workload, np.ndarray]:
    """(Workload, first rows of the windows of a part)."""
    workload = build_workload(Run.open(), *TRACES[trace], "lognormal-1")
    begin, stop = (0, workload.split.test[0]) if part == "choose" else workload.split.test
    limit = MOST_TO_CHOOSE if part == "choose" and most is None else most
    return workload, spread(disjoint_windows(begin, stop, LENGTH), limit)


def run(task: tuple[str, str, Choice, str, int | None]) -> tuple[pd.DataFrame, dict[str, float]]:
    """(A row per window, how the placement model answered) of one trace, contention and choice.

    Of the model: ``solved``, the share of questions that the presolve left to the solver; ``p50`` and ``p95`` of a solve, ms.
    """
    trace, contention, choice, *windows = task
    workload, first = load(trace, *windows)
    slowdowns = dict(zip(("multi_node_slowdown", "interference_slowdown"), CONTENTION[contention], strict=True))
    scheduler = SchedulerConfig("saf", "easy", choice.placement, choice.locality, **slowdowns)
    jobs, slots = ADAPTED.get(choice.model, choice.model)
    model = LookaheadConfig(jobs=jobs, slots=slots)
    placer: CountingPlacer | None = Adapting(model) if choice.model in ADAPTED else placer_of(choice.placement, model)
    state = simulate(workload.jobs, workload.layout, first, np.full(len(first), LENGTH), scheduler, placer=placer)
    table = sequence_table(workload.jobs, state, workload.layout.gpus)[list(METRICS)]
    if not isinstance(placer, Lookahead):
        return table, {}
    counts, latency = placer.counts, placer.counts.latency_ms()
    return table, {"solved": 1 - counts.presolved / counts.asked, "p50": latency["p50"], "p95": latency["p95"]}


def differences(ours: pd.DataFrame, theirs: pd.DataFrame) -> dict[str, list[float]]:
    """Metric → relative difference of the means and its interval."""
    found = {name: improved(ours[name].to_numpy(), theirs[name].to_numpy(), RESAMPLES) for name in METRICS}
    return {name: [round(-f, 4) for f in (it.gain, it.high, it.low)] for name, it in found.items()}


def main() -> None:
    """Run, print, write; the JSON object last."""
    parser = parser_of(__doc__)
    parser.add_argument("--part", choices=("test", "choose"), default="test", help="windows to run (default test)")
    parser.add_argument("--windows", type=int, help="at most so many, evenly spread")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    traces = [trace for trace in TRACES if trace != "PAI" or HAS_PAI]
    began = time.perf_counter()
    out: dict[str, Any] = {"part": args.part, "sizes": {str(size): size.model for size in [LOOKAHEAD, *SIZES]}}
    keys = [
        (trace, contention, choice)
        for trace in traces
        for contention in CONTENTION
        for choice in (*CHOICES, *(SIZES if contention == "middle" else ()))
    ]
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool:
        tasks = [(*key, args.part, args.windows) for key in keys]
        found = {}
        for key, result in zip(keys, pool.imap(run, tasks), strict=True):
            found[key] = result
            means = ", ".join(f"{name} {value:,.4g}" for name, value in result[0].mean().items())
            print(f"{time.perf_counter() - began:5.0f} s  {key[0]}, {key[1]}, {key[2]}: {means}", flush=True)
    for trace in traces:
        part = {"windows": len(next(table for (t, *_), (table, _) in found.items() if t == trace))}
        for contention in CONTENTION:
            by_choice = {key[2]: result for key, result in found.items() if key[:2] == (trace, contention)}
            part[contention] = {
                "mean": {str(choice): table.mean().round(3).to_dict() for choice, (table, _) in by_choice.items()},
                "model": {str(choice): model for choice, (_, model) in by_choice.items() if model},
                "against": {
                    f"{ours} / {theirs}": differences(by_choice[ours][0], by_choice[theirs][0])
                    for ours, theirs in PAIRS
                    if ours in by_choice and theirs in by_choice
                },
            }
        out[trace] = part
    report({**out, "seconds": round(time.perf_counter() - began)}, args.write)


if __name__ == "__main__":
    sys.exit(main())
