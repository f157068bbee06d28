"""Prices of GPU time, and how many jobs are planned together, learned on top of a trained agent, in its order.

On clusters of three GPU types with measured speeds; windows of 256 jobs, from 70 to 90 % of the rows; estimates lognormal(1), given or
calibrated. An agent (`tuned`) chooses its scheduler and learns its order on the rows before. Then evolution learns there, from that
scheduler on, to steer its prices and its plan from the state (parts/steered.py), in 2,000 more simulated windows. The agent with what was
learned is compared with the agent alone. Where no job waits for a GPU type under the scheduler that it chose, there is nothing to learn;
where its price is 0, the plan alone. PAI's rows are read from the folder that RLTUNE_REAL_TRACES names
(default ../shared/traces), by default if they are there. Negative differences are better. The last line is one JSON object.
"""

import sys
import tempfile
from dataclasses import replace

import pandas as pd
from parts.heldout import BY, THERE, TRACES, Task, add_options, against, loaded, pooled, work
from parts.output import parser_of, report
from parts.steered import learned_by_agents
from planning import ORIGIN

from rltune.evaluation.studies.gpu_types import SPREAD


def main() -> None:
    """Train, learn, compare."""
    parser = parser_of(__doc__)
    parser.add_argument("--traces", nargs="+", choices=list(TRACES), default=list(THERE))
    parser.add_argument("--metrics", nargs="+", choices=list(BY), default=list(BY), help="that agents are trained for")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], help="of agents and of what is learned")
    add_options(parser)
    args = parser.parse_args()
    figures, frames = {}, []
    with tempfile.TemporaryDirectory() as folder, pooled(args.processes) as pool:
        same = {"cluster": "-mixed", "locality": SPREAD, "keep": args.keep}
        first = [Task(trace, ORIGIN, seed, "", folder, **same) for seed in args.seeds for trace in args.traces]
        tasks = [replace(task, metric=metric) for metric in args.metrics for task in first]
        jobs = [(learned_by_agents, task) for task in tasks]
        for task, (frame, facts) in zip(tasks, pool.imap(work, jobs, chunksize=1)):
            named = {"metric": task.metric, "seed": task.seed, **facts}
            print("  " + ", ".join(f"{k} {v}" for k, v in {"trace": task.trace, **named}.items()), flush=True)
            figures.setdefault(task.trace, {}).setdefault("runs", []).append(named)
            if len(frame):  # the windows before are the agent's validation windows
                frames.append(frame[frame["first_job"] >= loaded(task).split.test[0]])
    columns = list(BY.values())
    for (trace, metric), found in pd.concat(frames).groupby(["trace", "metric"], sort=False) if frames else ():
        by_plan = dict(list(found.groupby("plan", sort=False)))
        pair = by_plan["evolution"], by_plan["agent"]
        figures[trace][metric] = {
            "windows": int(found["first_job"].nunique()),
            "mean": found.groupby("plan", sort=False)[columns].mean().round(2).to_dict("index"),
            "against": {by: [round(value, 4) for value in against(*pair, by)] for by in columns},
        }
        print(f"\n{trace}, {metric}: {figures[trace][metric]}")
    report(figures, args.write)


if __name__ == "__main__":
    sys.exit(main())
