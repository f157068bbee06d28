"""Planning order and GPU type under uncertainty: over samples of run times, and with prices that are learned.

On clusters of three GPU types with measured speeds; windows of 256 jobs, from 63 to 90 % of the rows; estimates lognormal(1). All plans
have SAF's order; constant prices are chosen, and what is learned is learned, on the rows before. All plans are compared with that on
calibrated estimates, 8 jobs together, at the constant price that is best by the metric. For completion: those on estimates as given and
on exact ones, over samples (parts/sampled.py), with 12 jobs together and with each job in turn, and without a price. For waits and bounded
slowdowns: 12 together, each in turn, and the fastest type that is free. For all three: those that follow the state, prices by type and how
many jobs are planned together (parts/steered.py). PAI's rows are read from the folder that RLTUNE_REAL_TRACES names (default
../shared/traces), by default if they are there. Negative differences are better. The last line is one JSON object.
"""

import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

import pandas as pd
from parts.heldout import BY, THERE, TRACES, Task, add_options, against, pooled, work
from parts.output import parser_of, report
from parts.sampled import BASE, plans_on, prices_on
from parts.steered import LEARNERS, learned_on

ORIGIN = 0.7
"""Share of the rows that training and validation parts take; of this, the last tenth is validation, whose windows count too."""
RULES = (BASE, "more", "fastest free", "each in turn")
"""Plans and rules without a learner that schedulers could follow for waits and bounded slowdowns."""


def main() -> None:
    """Simulate, train, print."""
    parser = parser_of(__doc__)
    parser.add_argument("--traces", nargs="+", choices=list(TRACES), default=list(THERE))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2], help="of what is learned")
    add_options(parser)
    args = parser.parse_args()
    began, figures, frames = time.perf_counter(), {}, []
    with tempfile.TemporaryDirectory() as folder, pooled(args.processes) as pool:
        plans = [Task(trace, ORIGIN, 0, "", folder, cluster="-mixed", keep=args.keep) for trace in args.traces]
        prices = [best for _, best in pool.imap(work, [(prices_on, task) for task in plans], chunksize=1)]
        learning = [
            replace(task, learner=learner, metric=metric, seed=seed, changes=(("gpu_price", best[metric]),))
            for learner in LEARNERS
            for metric in BY
            for task, best in zip(plans, prices)
            for seed in args.seeds
        ]
        jobs = [*((plans_on, task) for task in plans), *((learned_on, task) for task in learning)]
        for (_, task), (frame, facts) in zip(jobs, pool.imap(work, jobs, chunksize=1)):
            named = {"metric": task.metric, "learner": task.learner, "seed": task.seed} if task.learner else {}
            named |= dict(task.changes) | facts
            print("  " + ", ".join(f"{k} {v}" for k, v in {"trace": task.trace, **named}.items()), flush=True)
            figures.setdefault(task.trace, {}).setdefault("runs", []).append(named)
            frames.append(frame)
    found = pd.concat(frames)
    for task, best in zip(plans, prices):
        for metric, price in best.items():
            frame = found[(found["trace"] == task.trace) & (found["metric"] == metric)]
            figures[task.trace][metric] = {"price": price, **compared(task.trace, metric, frame)}
    figures["seconds"] = round(time.perf_counter() - began)
    report(figures, args.write)


def compared(trace: str, metric: str, found: pd.DataFrame) -> dict[str, Any]:
    """Means of the plans for a metric, and each against BASE; what is learned also against the best of RULES in hindsight."""
    by_plan, columns = dict(list(found.groupby("plan", sort=False))), list(BY.values())
    means = found.groupby("plan", sort=False)[columns].mean().round(2)
    print(f"\n{trace}, {metric}, {len(by_plan[BASE])} windows\n{means.to_string()}")
    differences = {plan: differs(frame, by_plan[BASE], columns) for plan, frame in by_plan.items() if plan != BASE}
    figures = {"windows": len(by_plan[BASE]), "mean": means.to_dict("index"), "against": differences}
    if set(RULES) <= set(by_plan):
        best = means.loc[list(RULES), BY[metric]].idxmin()
        learned = {plan: differs(by_plan[plan], by_plan[best], columns) for plan in LEARNERS}
        figures |= {"best": best, "against_best": learned}
    return figures


def differs(ours: pd.DataFrame, theirs: pd.DataFrame, columns: list[str]) -> dict[str, list[float]]:
    """Column → relative difference and its interval."""
    theirs = theirs.drop(columns="seed")
    pairs = {column: against(ours.fillna({"seed": 0}), theirs, column) for column in columns}
    return {column: [round(value, 4) for value in pair] for column, pair in pairs.items()}


if __name__ == "__main__":
    sys.exit(main())
