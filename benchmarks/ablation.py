"""What each constant of the preset `tuned` gains: trainings that differ from it in one, evaluated on the same windows.

Trained on rows before --origin, evaluated on windows of 256
from the tenth behind it; the default, 0.8, leaves the last tenth of the rows unread. Every training starts from SAF under
EASY (`tunes: nothing`) and keeps what is best on validation by however little (`margin: 0`), so that the rows differ in
the learned order alone; `scheduler chosen` and `margin 1` take one of the two back. Difference of the mean wait from SAF + EASY,
in %, ± one standard error over the paired windows; negative is better. The last line is one JSON object.
"""

import sys
import tempfile
import time
from typing import Any

import numpy as np
import pandas as pd
from parts.heldout import TRACES, Task, add_options, agent, loaded, pooled, prepare, run, work
from parts.output import parser_of, report

from rltune.agent.scheduler_choice import difference
from rltune.simulator.batch import SchedulerConfig

BASIS = {"tunes": "nothing", "margin": 0.0}
ROWS: dict[str, dict[str, Any]] = {
    "tuned": {},
    "tuned, seed 2": {"seed": 2},
    "tuned, seed 3": {"seed": 3},
    "features raw": {"learner": "tuned, raw"},
    "features engineered": {"learner": "tuned, engineered"},
    "base_policy_bias 0.2": {"base_policy_bias": 0.2},
    "base_policy_bias 1": {"base_policy_bias": 1.0},
    "from nothing (base_policy_bias 0)": {"base_policy_bias": 0.0},
    "credit 1 h": {"credit_horizon_s": 3600.0},
    "credit 12 h": {"credit_horizon_s": 12 * 3600.0},
    "reward at the end, critic": {"credit_horizon_s": None},
    "half contended": {"contended": 0.5},
    "anywhere (contended 0)": {"contended": 0.0},
    "an update after every sequence": {"trajectories": 1, "epochs": 720, "validate_every": 120},
    "32 sequences × 3": {"trajectories": 32, "rollouts": 3},
    "32 sequences × 3, seed 2": {"trajectories": 32, "rollouts": 3, "seed": 2},
    "32 sequences × 3, seed 3": {"trajectories": 32, "rollouts": 3, "seed": 3},
    "32 sequences × 3, 10 steps": {"trajectories": 32, "rollouts": 3, "iterations": 10},
    "4 sequences × 24": {"trajectories": 4, "rollouts": 24},
    "sequences of 1,024": {"sequence_jobs": 1024, "trajectories": 3},
    "actor 32-16-8": {"actor_layers": [32, 16, 8]},
    "actor 64-64": {"actor_layers": [64, 64]},
    "step 1e-3": {"actor_lr": 1e-3},
    "step 1e-2": {"actor_lr": 1e-2},
    "10 steps an epoch": {"iterations": 10},
    "whole epoch a step": {"batch_decisions": None},
    "KL 0.01": {"target_kl": 0.01},
    "KL 0.05": {"target_kl": 0.05},
    "no entropy": {"entropy": 0.0},
    "entropy 0.01": {"entropy": 0.01},
    "one rollout, critic": {"trajectories": 96, "rollouts": 1, "credit_horizon_s": None, "gae_lambda": 0.97},
    "20 epochs": {"epochs": 20},
    "180 epochs": {"epochs": 180},
    "20 validation windows": {"validation_windows": 20},
    "validated every 5 epochs": {"validate_every": 5},
    "margin 1": {"margin": 1.0},
    "scheduler chosen": {"tunes": "reservations"},
}
"""What a row is called → fields of the preset it changes; `seed` and `learner` are the task's."""


def of(name: str) -> dict[str, Any]:
    """What the task of a row has."""
    changes = {**BASIS, **ROWS[name]}
    return {
        "seed": changes.pop("seed", 1),
        "learner": changes.pop("learner", "tuned"),
        "changes": tuple(changes.items()),
    }


def measured(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """An agent's waits [windows], s, next to those of SAF + EASY; facts of its training."""
    frame, log = work((agent, task))
    base = run(loaded(task), 256, SchedulerConfig("saf", "easy"))
    return pd.DataFrame({"ours": frame["wait_s"].to_numpy(), "base": base["wait_s"].to_numpy()}), log


def main() -> None:
    """Train, evaluate, print."""
    parser = parser_of(__doc__)
    parser.add_argument("--traces", nargs="+", choices=list(TRACES), default=["philly", "venus"])
    parser.add_argument(
        "--rows", nargs="+", choices=list(ROWS), metavar="ROW", default=list(ROWS), help="; ".join(ROWS)
    )
    parser.add_argument("--origin", type=float, default=0.8, help="share of the rows before the windows")
    add_options(parser)
    args = parser.parse_args()
    start, figures = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        tasks = [
            Task(trace, args.origin, **of(name), folder=folder, keep=args.keep, label=name)
            for name in args.rows
            for trace in args.traces
        ]
        with pooled(args.processes) as pool:
            for trace in args.traces:
                pool.apply(prepare, (next(t for t in tasks if t.trace == trace),))
            print(f"{'':>26}  {'trace':>6}  {'test':>14}  {'validation':>10}  epoch kept  s")
            for task, (table, log) in zip(tasks, pool.imap(measured, tasks, chunksize=1), strict=True):
                gap, error = (100 * f / table["base"].mean() for f in difference(table["ours"], table["base"]))
                figures[f"{task.trace} {task.name}"] = [round(gap, 2), round(error, 2)]
                validation = 100 * (log["validation_metric"] / (log["validation_start"] or np.nan) - 1)
                print(
                    f"{task.name:>26}  {task.trace:>6}  {gap:+6.1f} ± {error:4.1f}  {validation:+9.1f}   {log['best_epoch']:>9}"
                    f"  {log['seconds']:.0f}",
                    flush=True,
                )
    report({**figures, "seconds": round(time.perf_counter() - start)}, args.write)


if __name__ == "__main__":
    sys.exit(main())
