"""Tables of the pages in docs/ that are made of measurements: what benchmarks and runs have left in docs/assets/results/."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from rltune.report.style import scheduler_title
from rltune.report.tables.deployment import short

RESULTS = Path(__file__).parent / "assets" / "results"

AGAINST = {
    "strong": "the strong baseline",
    "picked": "the rule picked on validation windows",
    "any": "the best of all rules tried",
    "saf_easy": "SAF + EASY",
    "linear": "the tuned linear score",
    "scheduler": "its scheduler without its network",
}
"""Keys in the output of benchmarks/quality.py → what RLTune is compared with."""
METRICS = {"wait": "wait, s", "jct": "completion time, s", "bsld": "bounded slowdown"}
LEARNERS = {"schedinspector": "SchedInspector", "rlscheduler": "RLScheduler", "naive": "naive", "pro": "pro"}


def table(head: str, rows: list[tuple[str, ...]]) -> str:
    columns = head.split(" | ")
    lines = [head, " | ".join("---" for _ in columns), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def measured(file: str) -> dict[str, Any]:
    """What benchmarks/quality.py has written for the documents: ``--write docs/assets/results/<file>.json``."""
    found: dict[str, Any] = json.loads((RESULTS / f"{file}.json").read_text("utf-8"))
    return found


def percent(found: list[float | None] | None) -> str:
    """A difference and its interval; bold where all of it is on one side of zero."""
    if found is None or found[0] is None:
        return "–"
    middle, *ends = (None if f is None else round(100 * f, 1) + 0.0 for f in found)  # no negative zero
    if None in ends:
        return f"{middle:+.1f}".replace("-", "−")
    text = "{:+.1f} [{:+.1f}, {:+.1f}]".format(middle, *ends).replace("-", "−")
    return f"**{text}**" if max(found[1:]) < 0 or min(found[1:]) > 0 else text


def rule_title(rule: str) -> str:
    """`SAF + EASY, any` of `saf+easy any`."""
    scheduler, *where = rule.split(" ")
    plain = ["no backfilling"] if scheduler.endswith("+none") else []
    return ", ".join([scheduler_title(*scheduler.split("+")), *plain, *where])


def quality(file: str, length: int, metric: str = "wait", also: str = "") -> str:
    """RLTune on windows of that many jobs, a column a trace, compared by ``metric``, and by ``also``."""
    found = measured(file)
    logs = [log for log in found["agents"] if log["agent"] == "RLTune"]
    traces = list(dict.fromkeys(log["trace"] for log in logs))
    part = {trace: found[trace][str(length)] for trace in traces}
    shown = "{:,.2f}" if metric == "bsld" else "{:,.0f}"

    def row(title: str, text: Callable[[str], str]) -> tuple[str, ...]:
        return title, *map(text, traces)

    def mean(trace: str, rule: str) -> str:
        return shown.format(part[trace][metric]["mean"][rule])

    def named(trace: str, key: str) -> str:
        rule = part[trace][metric][key]
        return f"{mean(trace, rule)} ({rule_title(rule)})"

    def own(trace: str) -> str:
        """The schedulers that the agents on a trace chose, one for each training."""
        texts = []
        for chosen in (log["scheduler"] for log in logs if log["trace"] == trace):
            places = [
                chosen[key]
                for key, usual in (("placement", "best_fit"), ("locality", "strict"))
                if chosen[key] != usual
            ]
            estimates = ["calibrated estimates"] if chosen["uses_calibrated"] else []
            texts.append(", ".join([scheduler_title(chosen["policy"], chosen["backfill"]), *places, *estimates]))
        return "; ".join(dict.fromkeys(texts))

    def against(key: str, by: str) -> tuple[str, ...]:
        title = AGAINST[key] + (where if key == "saf_easy" else "")
        return row(f"against {title}, %", lambda trace: percent(part[trace][by]["against"]["RLTune"].get(key)))

    compared = [key for key in AGAINST if any(key in part[trace][metric]["against"]["RLTune"] for trace in traces)]
    plain = next(rule for rule in part[traces[0]][metric]["mean"] if rule.startswith("fifo+none"))
    where = plain.removeprefix("fifo+none").replace(" ", ", ")  # a locality, where there are several
    rows = [
        row("windows", lambda trace: str(part[trace]["windows"])),
        row(f"FIFO without backfilling{where}, mean {METRICS[metric]}", lambda trace: mean(trace, plain)),
        row("strong baseline", lambda trace: named(trace, "strong")),
        row("best of all rules tried", lambda trace: named(trace, "any")),
        row("**RLTune**", lambda trace: f"**{mean(trace, 'RLTune')}**"),
        row("its scheduler", own),
        *([row("lower bound", lambda trace: f"{part[trace]['bound_s']:,}")] if metric == "wait" else []),
        *(against(key, metric) for key in compared),
        *(
            [
                (f"mean {METRICS[also]} (the best rules by it):", *("" for _ in traces)),
                against("strong", also),
                against("any", also),
            ]
            if also
            else []
        ),
    ]
    return table(" | ".join([f"windows of {length:,}", *(trace.capitalize() for trace in traces)]), rows)


def other_learners() -> str:
    """Mean waits of other learners against SAF + EASY, on windows of 256."""
    found = measured("learners")
    traces = list(dict.fromkeys(log["trace"] for log in found["agents"]))
    part = {trace: found[trace]["256"]["wait"]["against"] for trace in traces}
    rows = [
        (title, *(percent(part[trace][name]["saf_easy"]) for trace in traces))
        for name, title in LEARNERS.items()
        if name in part[traces[0]]
    ]
    return table(" | ".join(["against SAF + EASY, %", *(trace.capitalize() for trace in traces)]), rows)


def placement() -> dict[str, Any]:
    """What benchmarks/placement.py has written: its traces alone."""
    return {
        trace: found for trace, found in measured("placement").items() if isinstance(found, dict) and "off" in found
    }


def placed(choice: str) -> str:
    """`best_fit`, `strict` of a choice of the benchmark."""
    rule, locality, *_ = choice.split(" ")
    return f"`{rule}`, `{locality}`"


def placement_means() -> str:
    """Wait, completion time and bounded slowdown of every placement and locality, with contention."""
    traces = placement()
    choices = list(next(iter(traces.values()))["off"]["mean"])
    rows = [
        (
            placed(choice),
            *(
                "{wait_s:,.0f} / {jct_s:,.0f} / {bsld:.2f}".format(**t["middle"]["mean"][choice])
                for t in traces.values()
            ),
        )
        for choice in choices
    ]
    return table(" | ".join(["", *(f"{name}, {found['windows']} windows" for name, found in traces.items())]), rows)


def placement_gains(contention: str, *pairs: str) -> str:
    """Pairs of placements and localities under a contention, each in every metric; the names of the pairs as in the file."""
    rows = []
    for pair in pairs:
        ours, theirs = map(placed, pair.split(" / "))
        for name, found in placement().items():
            gains = found[contention]["against"][pair].values()
            rows.append((f"{ours} against {theirs}", name, *map(percent, gains)))
    return table("% |  | wait | completion time | bounded slowdown", rows)


def model_sizes() -> str:
    """The wait under other numbers of jobs and slots in the placement model, against 8 jobs and one slot."""
    sizes, traces = measured("placement")["sizes"], placement()
    own = next(iter(sizes))
    rows = []
    for size, (jobs, slots) in sizes.items():
        part = [found["middle"] for found in traces.values()]
        waits = [
            "{:,.0f} s".format(found["mean"][size]["wait_s"])
            if size == own
            else percent(found["against"][f"{size} / {own}"]["wait_s"])
            for found in part
        ]
        solved = " / ".join(f"{100 * found['model'][size]['solved']:.0f}" for found in part)
        solve_ms = " / ".join("{p50:.2g}, {p95:.2g}".format(**found["model"][size]) for found in part)
        rows.append((str(jobs), str(slots), *waits, solved, solve_ms))
    return table(
        " | ".join(["K", "T", *(f"wait on {name}" for name in traces), "solved, %", "a solve, ms (median, 95 %)"]), rows
    )


def rows_of(file: str) -> list[dict[str, str]]:
    """The rows of a CSV file among the results."""
    with (RESULTS / f"{file}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def controller_cycles() -> str:
    """Cycles of the live controller by the length of the queue, written by benchmarks/slurm.py."""
    rows, releases = [], []
    for what, found in measured("controller").items():
        *lengths, release = found.items()
        for n, each in lengths:
            first, after = each["first"], each["next"]
            seconds = (first["cycle_s"], first["write_s"], after["cycle_s"], after["decide_s"], after["compare_s"])
            load = " / ".join(f"{100 * one['cpu_s'] / 60:.1f} %" for one in (first, after))
            rows.append((what, f"{int(n):,}", *(f"{s:.2f}" for s in seconds), load))
        releases.append(f"{release[1]['jobs']:,} jobs took {release[1]['s']:.1f} s ({what})")
    said = f"Releasing {', '.join(releases)}; a service's `TimeoutStopSec` has to be longer."
    cycles = table(
        "decided | waiting jobs | first: whole cycle | first: writing | next: whole cycle | next: deciding "
        "| watchdog's comparison | CPU load at one cycle a minute (first / next)",
        rows,
    )
    return f"{cycles}\n\n{said}"


def question_costs() -> str:
    """What a question to the placement model costs, written by benchmarks/milp.py."""
    found = measured("milp")
    rows = [(name, f"{of['questions']:,}", *(f"{ms:.2g}" for ms in of["ms"])) for name, of in found["timed"].items()]
    shares = [100 * found[f"bestfit_not_optimal_share{end}"] for end in ("", "_t4", "_10000")]
    said = (
        f"The placement by best_fit is not optimal for {shares[0]:.2g} % of the questions on 36 nodes, {shares[1]:.2g} % of "
        f"those with four slots and {shares[2]:.2g} % of those on 10,000 nodes."
    )
    return f"{table(' | '.join(['', 'questions', 'median, ms', '95 %', '99 %']), rows)}\n\n{said}"


def training_speed() -> str:
    """How fast agents are trained and decide, written by benchmarks/training.py."""
    found = measured("training")
    rows = [
        (
            name,
            *(f"{of[column]:.2g} s" for column in ("seconds", "rollout_seconds")),
            f"{of['choices_per_second']:,.0f}",
            f"{of['rss_gb']:.2f} GB",
        )
        for name, of in found["found"].items()
    ]
    heads = ["preset", "epoch", "of which rollouts", "decisions with a choice, per second", "memory"]
    said = (
        f"Of the {found['decisions']:,} decisions of an epoch of `tuned`, {found['choices']:,} have two candidates or more; "
        f"queues have {found['rollout_mean_queue']:.0f} jobs on average. Of the {found['milp_asked']:,} questions to the "
        f"placement model, {found['milp_presolved']:,} are presolved. An online decision, from queue to order, takes "
        f"{found['decision_ms_256']:.2g} ms at 256 queued jobs and {found['decision_ms_1024']:.2g} ms at 1,024, of which the "
        f"network sees the first 256. A whole training of `tuned`, lengthened to 100 epochs, with its choices and validations, takes "
        f"{found['cell_minutes']:.1f} minutes on these rows, and {found['cell_milp_minutes']:.1f} with look-ahead placement."
    )
    return f"{table(' | '.join(heads), rows)}\n\n{said}"


RUN = {
    "wait_s": "mean wait, s",
    "wait_p95_s": "95 %, s",
    "wait_max_s": "longest, s",
    "jct_s": "completion, s",
    "bsld": "slowdown",
    "makespan_h": "makespan, h",
    "utilisation": "utilisation, %",
}
"""Columns of the artefact `deployment-runs` → what they are."""


def by_scheduler(rows: list[dict[str, str]], columns: Iterable[str]) -> dict[str, list[float]]:
    """Scheduler → means of these columns over its runs."""
    names = dict.fromkeys(row["title"] for row in rows)
    return {n: [fmean(float(row[c]) for row in rows if row["title"] == n) for c in columns] for n in names}


def deployed() -> str:
    """Means over the repetitions of the deployment on Slurm, a row a scheduler; of the longest waits the largest."""
    runs = [row for row in rows_of("deployment-runs") if row["system"] == "Slurm"]
    scale = {"utilisation": 100.0}
    found = []
    for name, means in by_scheduler(runs, RUN).items():
        longest = max(float(row["wait_max_s"]) for row in runs if row["title"] == name)
        values = {**dict(zip(RUN, means, strict=True)), "wait_max_s": longest}
        shown = ("{:,.0f}" if c.endswith("_s") else "{:,.1f}" for c in RUN)
        found.append((name, *(form.format(v * scale.get(c, 1.0)) for form, (c, v) in zip(shown, values.items()))))
    return table(" | ".join(["", *RUN.values()]), found)


def deployed_against() -> str:
    """Differences between schedulers of the deployment, with intervals over its repetitions."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows_of("deployment-numbers"):
        gain, low, high = (float(row[name]) if row[name] else None for name in ("gain", "low", "high"))
        if row["measure"] != "utilisation" and gain is not None:
            ends = [None, None] if low is None or high is None else [-high, -low]
            pair = found.setdefault((row["ours_title"], row["theirs_title"]), {})
            pair[row["measure_title"].split(",")[0].lower()] = percent([-gain, *ends])
    measures = list(next(iter(found.values())))
    return table(
        " | ".join(["%", "against", *measures]),
        [(*pair, *(values.get(m, "–") for m in measures)) for pair, values in found.items()],
    )


def deployed_classes() -> str:
    """Mean waits on Slurm by QOS, partition and GPUs, s, a column a scheduler."""
    rows = rows_of("deployment-classes")
    schedulers = [column[5:-2] for column in rows[0] if column.startswith("wait_") and column.endswith("_s")]
    found = [
        (
            f"{row['by_title']} {row['name']}",
            f"{int(float(row['jobs'])):,}",
            *(f"{float(row[f'wait_{s}_s']):,.0f}" for s in schedulers),
        )
        for row in rows
    ]
    return table(" | ".join(["mean wait, s", "jobs", *map(short, schedulers)]), found)


def deployed_and_simulated() -> str:
    """Mean wait and completion time on Slurm and in the simulator, s, and the simulator's error."""
    rows = rows_of("deployment-runs")
    kinds = {"Slurm": [r for r in rows if r["system"] == "Slurm"]}
    kinds |= {rule: [r for r in rows if r["backfill"] == rule] for rule in ("easy", "conservative")}
    means = {kind: by_scheduler(some, ("wait_s", "jct_s")) for kind, some in kinds.items()}
    found = []
    for name, real in means["Slurm"].items():
        cells = [f"{real[0]:,.0f} / {real[1]:,.0f}"]
        for rule in ("easy", "conservative"):
            ours = means[rule][name]
            errors = (f"{100 * (a / b - 1):+.0f}".replace("-", "−") for a, b in zip(ours, real, strict=True))
            cells.append(f"{ours[0]:,.0f} / {ours[1]:,.0f} ({' / '.join(errors)} %)")
        found.append((name, *cells))
    return table("mean wait / completion, s | Slurm | simulator, EASY | simulator, conservative", found)


def constants() -> str:
    """Trainings that differ in one constant, from constants.csv."""
    rows = rows_of("constants")

    def mean(column: str) -> str:
        return f"{fmean(float(row[column]) for row in rows if row[column]):+.1f}".replace("-", "−")

    return table(
        f"mean of {len(rows)} trainings, against SAF + EASY, % | Philly | Venus",
        [
            (title, *(mean(f"{trace}_{column}") for trace in ("philly", "venus")))
            for title, column in (
                ("windows that chose the weights", "validation_percent"),
                ("later windows", "percent"),
            )
        ],
    )


TYPES = {
    "any_free": "any type that is free, best in hindsight",
    "fastest_free": "fastest type that is free, best in hindsight",
    "best_rule": "best of all rules without a price, in hindsight",
    "priced": "earliest completion with a price, chosen before",
    "ours": "**planned together, chosen before**",
    "exact": "planned together with true run times, best in hindsight",
}
"""Rules in the output of benchmarks/hetero.py → what they are."""
GAINS = {
    "best_rule": "excess, against the best of all rules without a price",
    "wait": "wait, against the same rule",
    "priced": "excess, against earliest completion with a price",
    "fastest_free": "completion, against the fastest type that is free",
    "any_free": "completion, against any type that is free",
    "exact": "excess, against true run times",
    "ours": "excess, against planned together without an agent",
    "its without its network": "excess, against RLTune without its network",
    "its without the program": "excess, against RLTune where each job in turn gets a type",
    "its without either": "excess, against RLTune without both",
}
"""What is compared in the output of benchmarks/hetero.py → by what, and with what."""


TYPE_SETTINGS = {
    "recorded": "as above",
    "origin-0.8": "after 80 % of the rows",
    "origin-0.7": "after 70 %",
    "three origins": "these three together",
    "load-0.9": "load 0.9",
    "vision": "vision models",
    "language": "language models",
}
"""Settings in the output of benchmarks/hetero.py → what they are."""


def type_columns() -> dict[str, dict[str, Any]]:
    """What benchmarks/hetero.py has written, by trace."""
    found = measured("types")
    return {title: found[name] for name, title in (("philly", "Philly"), ("venus", "Venus"), ("pai", "PAI"))}


def type_rules() -> str:
    """Rules for the GPU type: mean completion, excess and wait, and ours against the others."""
    traces = {name: found["recorded"] for name, found in type_columns().items()}
    shown = "{jct_s:,.0f} / {excess_s:,.0f} / {wait_s:,.0f}"
    rows = [(title, *(shown.format(**found["mean"][key]) for found in traces.values())) for key, title in TYPES.items()]
    rows.append(("no schedule completes sooner than", *(f"{found['bound_jct_s']:,}" for found in traces.values())))
    rows.append(("**planned together**, %:", *("" for _ in traces)))
    rows += type_gains([found["against"] for found in traces.values()])
    heads = (f"{name}, {found['windows']} windows" for name, found in traces.items())
    return table(" | ".join(["completion / excess / wait, s", *heads]), rows)


def type_gains(against: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each of GAINS that was compared."""
    return [(title, *(percent(a[key]) for a in against)) for key, title in GAINS.items() if key in against[0]]


def type_settings() -> str:
    """Ours against the best rule without a price, the priced rule and any type, under other origins, loads and models."""
    traces = list(type_columns().values())
    rows = []
    for name, title in TYPE_SETTINGS.items():
        windows = " / ".join(str(trace[name]["windows"]) for trace in traces)
        for i, key in enumerate(("best_rule", "priced", "any_free")):
            cells = (percent(trace[name]["against"][key]) for trace in traces)
            rows.append((f"{title}; {windows} windows" if i == 0 else "", GAINS[key], *cells))
    return table(" | ".join(["%", "", *type_columns()]), rows)


def type_parts() -> str:
    """How much more excess there is without a part of ours."""
    found = [trace["recorded"]["without"] for trace in type_columns().values()]
    rows = [(name, *(percent(part[name]) for part in found)) for name in found[0]]
    orders = [trace["recorded"]["orders"].values() for trace in type_columns().values()]
    apart = " / ".join(f"{100 * (max(some) / min(some) - 1):.0f} %" for some in orders)
    said = f"Planned together, the worst of the eight orders has {apart} ({' / '.join(type_columns())}) more excess than the best, in hindsight."
    return f"{table(' | '.join(['more excess without it, %', *type_columns()]), rows)}\n\n{said}"


def type_agents() -> str:
    """Trained agents against rules and against what they are without their parts."""
    found = {name: trace["agents"]["RLTune"]["against"] for name, trace in type_columns().items() if "agents" in trace}
    return table(" | ".join(["RLTune, %", *found]), type_gains(list(found.values())))


def type_search() -> str:
    """How good and how fast the search is."""
    found = measured("types")
    return (
        f"On {found['search_questions']:,.0f} questions of the simulator its plan costs {100 * found['search_gap_p50']:.2g} % "
        f"more than the program's at the median and {100 * found['search_gap_p95']:.2g} % at 95 %. A decision with at least "
        f"60 queued jobs takes {found['program_p50_ms']:.2g} ms at the median and {found['program_p95_ms']:.2g} ms at 95 %; the "
        f"program in CVXPY {found['cvxpy_p50_ms']:,.0f} ms a question. With a network that orders the queue, "
        f"{found['rollout_decisions_per_s']:,.0f} decisions a second are simulated."
    )


MEASURED: dict[str, Callable[[], str]] = {
    "waits in long windows": lambda: quality("quality", 1024, also="jct"),
    "waits in short windows": lambda: quality("quality", 256, also="jct"),
    "long waits by origin": lambda: quality("origins", 1024, also="jct"),
    "short waits by origin": lambda: quality("origins", 256),
    "slowdowns in long windows": lambda: quality("slowdown", 1024, "bsld"),
    "slowdowns in short windows": lambda: quality("slowdown", 256, "bsld"),
    "waits with contention": lambda: quality("contention", 256, also="jct"),
    "other learners": other_learners,
    "constants": constants,
    "placements": placement_means,
    "placements compared": lambda: placement_gains(
        "middle",
        "best_fit worth_it / best_fit strict",
        "best_fit soonest_end / best_fit worth_it",
        "isolating_best_fit soonest_end / best_fit soonest_end",
        "lookahead soonest_end / best_fit strict",
        "lookahead soonest_end / isolating_best_fit soonest_end",
    ),
    "placements under weak interference": lambda: placement_gains(
        "low", "lookahead worth_it / best_fit worth_it", "lookahead worth_it / isolating_best_fit worth_it"
    ),
    "sizes of the placement model": model_sizes,
    "controller cycles": controller_cycles,
    "question costs": question_costs,
    "training speed": training_speed,
    "deployment": deployed,
    "deployment compared": deployed_against,
    "deployment classes": deployed_classes,
    "deployment simulated": deployed_and_simulated,
    "GPU types": type_rules,
    "GPU types in other settings": type_settings,
    "GPU types without a part": type_parts,
    "GPU types, agents": type_agents,
    "search of a plan": type_search,
}
"""Name of a table → what makes it."""
