"""Mean waits of RLTune, of every base policy and of other learners on held-out real rows (benchmarks/parts/heldout.py).

The rows of Philly and Venus ship with the package; `--traces pai` needs the folder of CSV files that
config/traces/pai-csv.yaml reads (RLTUNE_REAL_TRACES, default ../shared/traces). Trains on the first nine tenths and
evaluates on windows of 256 and 1,024 jobs from the last; several origins (--origins 0.6 0.7 0.8 0.9) make a rolling one,
in which each agent's weights know only what was before its windows. The constants of the presets and of calibrated
estimates were chosen on rows up to 0.8 and validation rows up to 0.9, so that only the origin 0.9 has windows nothing was
chosen by. With --contention base policies run under four localities, and RLTune chooses placement and locality too.
Negative differences are better. The last line is one JSON object.
"""

import sys
import tempfile
import time
from itertools import product
from typing import Any

from parts.heldout import COLUMNS, SHIPPED, TRACES, VARIANTS, Task, add_options, play, show
from parts.output import parser_of, report

from rltune.report import style


def main() -> None:
    """Train, evaluate, print."""
    parser = parser_of(__doc__)
    parser.add_argument("--traces", nargs="+", choices=list(TRACES), default=list(SHIPPED))
    parser.add_argument("--origins", nargs="+", type=float, default=[0.9], help="share of the rows before the windows")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument(
        "--learners",
        nargs="+",
        default=["tuned", "linear"],
        choices=list(VARIANTS),
        metavar="NAME",
        help=f"what is trained: {'; '.join(VARIANTS)} (default: tuned linear)",
    )
    parser.add_argument("--metric", choices=list(COLUMNS), default="wait", help="what is trained for")
    parser.add_argument("--lengths", nargs="+", type=int, default=[256, 1024], help="jobs of a window evaluated on")
    parser.add_argument(
        "--contention",
        action="store_true",
        help="split jobs run 1.2 times as long and co-located ones 1.25 times; everybody may split, and agents choose "
        "placement and locality too (give --learners tuned)",
    )
    parser.add_argument(
        "--draw", metavar="FILE", help="draw the mean waits in the longest windows: the README's picture"
    )
    add_options(parser)
    args = parser.parse_args()
    if args.draw and args.contention:
        parser.error("--draw: draws rules without a locality, found --contention")
    if args.draw and "tuned" not in args.learners:
        parser.error(f"--draw: draws RLTune, found --learners {' '.join(args.learners)}, without tuned")
    began = time.perf_counter()
    same: dict[str, Any] = {"metric": args.metric, "lengths": tuple(args.lengths), "keep": args.keep}
    if args.contention:
        same["nodes"] = (("multi_node_slowdown", 1.2), ("interference_slowdown", 1.25))
        same["changes"] = (("tunes", "scheduler"),)
        same["localities"] = ("strict", "plus_one", "any", "worth_it")
    with tempfile.TemporaryDirectory() as folder:
        tasks = [Task(*of, folder, **same) for of in product(args.traces, args.origins, args.seeds, args.learners)]
        ruled, agents, logs = play(tasks, args.processes)
    figures: dict = {trace: {} for trace in args.traces}
    metrics = [args.metric, *(m for m in COLUMNS if m != args.metric)]
    for trace, length in product(args.traces, args.lengths):
        parts = (frame[(frame["trace"] == trace) & (frame["length"] == length)] for frame in (ruled, agents))
        figures[trace][length] = show(trace, *parts, metrics)
    figures |= {"agents": logs, "seconds": round(time.perf_counter() - began)}
    report(figures, args.write)
    if args.draw:
        draw(figures, args.traces, args.lengths[-1], args.draw)


def draw(figures: dict, traces: list[str], length: int, file: str) -> None:
    """Mean waits of RLTune and of some rules, a panel per trace."""
    with style.styled():
        picture, axes = style.panels([trace.capitalize() for trace in traces], len(traces), 1.5, 0.3)
        for axis, trace in zip(axes, traces):
            found = figures[trace][length]
            mean = found["wait"]["mean"]
            bars = {
                "FIFO, no backfilling": mean["fifo+none"],
                "SAF + EASY": mean["saf+easy"],
                "best rule, in hindsight": mean[found["wait"]["any"]],
                "RLTune": mean["RLTune"],
                "lower bound of any schedule": found["bound_s"],
            }
            colours = [style.ORANGE if name == "RLTune" else style.BLUE for name in bars]
            drawn = axis.barh(list(bars), list(bars.values()), color=colours)
            axis.bar_label(drawn, [f"{value:,.0f} s" for value in bars.values()], padding=3, fontsize=8)
            axis.set(xlim=(0, 1.3 * max(bars.values())), xticks=[])
            axis.invert_yaxis()
            axis.grid(visible=False)
            if axis is not axes[0]:
                axis.set_yticks([])
        picture.suptitle(f"Mean wait in held-out windows of {length:,} jobs, estimated run times", fontsize=9.5)
        picture.savefig(file, dpi=200)


if __name__ == "__main__":
    sys.exit(main())
