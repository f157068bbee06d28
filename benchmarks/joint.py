"""RLTune's joint choice of order and scheduler against every policy × mode × locality, where splits and neighbours cost time.

As benchmarks/quality.py, with contention on: a job split over more nodes than it needs runs --multi_node_slowdown times as
long, one of several GPUs that shares a node with another --interference_slowdown times. The localities strict, plus_one,
any and worth_it are open to everybody; the strong baseline is the best of all policies × {none, greedy, easy} × localities on the same windows
that it is compared on. Best_fit places for them; isolating_best_fit and soonest_end, which RLTune may choose too, are tried as well
(`any` in the figures: the best of all rules tried), and `vs_scheduler` is what the learned order adds to the scheduler it chose.
RLTune chooses order, reservations, locality and placement, once trained for mean wait and once for
mean completion time. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time

from parts.heldout import SHIPPED, TRACES, Task, add_options, play, show

LOCALITIES = ("strict", "plus_one", "any", "worth_it")
METRICS = ("wait", "jct")


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", nargs="+", choices=list(TRACES), default=list(SHIPPED))
    parser.add_argument("--origins", nargs="+", type=float, default=[0.9], help="share of the rows before the windows")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=list(METRICS))
    parser.add_argument("--multi_node_slowdown", type=float, default=1.2)
    parser.add_argument("--interference_slowdown", type=float, default=1.25)
    parser.add_argument("--epochs", type=int, help="default: the preset's")
    add_options(parser)
    args = parser.parse_args()
    os.environ.setdefault("RLTUNE_REAL_TRACES", "../shared/traces")
    began = time.perf_counter()
    contention = (
        ("multi_node_slowdown", args.multi_node_slowdown),
        ("interference_slowdown", args.interference_slowdown),
    )
    figures: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        tasks = [
            Task(
                trace,
                origin,
                seed,
                "tuned",
                metric,
                (256,),
                False,
                LOCALITIES,
                contention,
                folder,
                args.keep,
                (("tunes", "scheduler"), *((("epochs", args.epochs),) if args.epochs else ())),
            )
            for metric in args.metrics
            for trace in args.traces
            for origin in args.origins
            for seed in args.seeds
        ]
        ruled, agents, logs = play(tasks, args.processes)
    for trace in args.traces:
        for metric in args.metrics:
            mine = agents[(agents["trace"] == trace) & (agents["metric"] == metric)]
            prefix = "joint_" if metric == "wait" else f"joint_{metric}_"
            figures |= show(trace, ruled[ruled["trace"] == trace], mine, [metric], prefix)
    print(json.dumps({**figures, "agents": logs, "seconds": round(time.perf_counter() - began)}))


if __name__ == "__main__":
    sys.exit(main())
