"""Planning order and GPU type under uncertainty: over samples of run times, and with prices that are learned.

On clusters of three GPU types with measured speeds; windows of 256 jobs, from 63 to 90 % of the rows; estimates lognormal(1). All plans
have SAF's order; constant prices are chosen, and what is learned is learned, on the rows before. All plans are compared with that on
calibrated estimates at the constant price that is best for it. Each with a price of its own: those on estimates as given and on exact ones,
over samples (parts/sampled.py), and with jobs planned one by one. Then that without a price, and those that follow the state: prices
by type and how many jobs are planned together (parts/steered.py). PAI's rows are read from the folder that RLTUNE_REAL_TRACES
names (default ../shared/traces), by default if they are there. Negative differences are better. The last line is one JSON object.
"""

import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

import pandas as pd
from parts.heldout import THERE, TRACES, Task, add_options, against, pooled, prepare, work
from parts.output import parser_of, report
from parts.sampled import plans_on
from parts.steered import LEARNERS, learned_on

ORIGIN = 0.7
"""Share of the rows that training and validation parts take; of this, the last tenth is validation, whose windows count too."""
BASE = "calibrated"
"""The plan that others are compared with."""
COLUMNS = ["excess_s", "wait_s"]


def main() -> None:
    """Simulate, train, print."""
    parser = parser_of(__doc__)
    parser.add_argument("--traces", nargs="+", choices=list(TRACES), default=list(THERE))
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2], help="of what is learned")
    add_options(parser)
    args = parser.parse_args()
    began, figures = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        same = {"folder": folder, "cluster": "-mixed", "keep": args.keep}
        plans = [Task(trace, ORIGIN, 0, "", **same) for trace in args.traces]
        learning = [replace(t, learner=learner, seed=s) for t in plans for learner in LEARNERS for s in args.seeds]
        jobs = [*((plans_on, task) for task in plans), *((learned_on, task) for task in learning)]
        frames = []
        with pooled(args.processes) as pool:
            for task in plans:
                pool.apply(prepare, (task,))
            for (_, task), (frame, facts) in zip(jobs, pool.imap(work, jobs, chunksize=1)):
                named = {"learner": task.learner, "seed": task.seed, **facts}
                print("  " + ", ".join(f"{k} {v}" for k, v in {"trace": task.trace, **named}.items()), flush=True)
                figures.setdefault(task.trace, {}).setdefault("runs", []).append(named)
                frames.append(frame)
    found = pd.concat(frames)
    for trace in args.traces:
        figures[trace] |= compared(trace, found[found["trace"] == trace])
    figures["seconds"] = round(time.perf_counter() - began)
    report(figures, args.write)


def compared(trace: str, found: pd.DataFrame) -> dict[str, Any]:
    """Means of a trace's plans, and each against BASE."""
    by_plan = dict(list(found.groupby("plan", sort=False)))
    means = found.groupby("plan", sort=False)[COLUMNS].mean().round(1)
    print(f"\n{trace}, {len(by_plan[BASE])} windows\n{means.to_string()}")
    base, differences = by_plan.pop(BASE).drop(columns="seed", errors="ignore"), {}
    for plan, frame in by_plan.items():
        pairs = {
            column: against(frame.assign(seed=frame.get("seed", 0)).fillna({"seed": 0}), base, column)
            for column in COLUMNS
        }
        differences[plan] = {column: [round(value, 4) for value in pair] for column, pair in pairs.items()}
        print(f"  {plan}: {differences[plan]}")
    return {"windows": len(base), "mean": means.to_dict("index"), "against": differences}


if __name__ == "__main__":
    sys.exit(main())
