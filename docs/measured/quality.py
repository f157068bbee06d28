"""Agents and rules on held-out rows: what benchmarks/quality.py and ablation.py have written."""

from collections.abc import Callable
from statistics import fmean

from measured.read import measured, percent, rows_of, table
from rltune.report.style import scheduler_title

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
CONSTANTS = {"windows that chose the weights": "validation_percent", "later windows": "percent"}
"""What is compared → the end of its column in constants.csv."""
LEARNERS = {"schedinspector": "SchedInspector", "rlscheduler": "RLScheduler", "naive": "naive", "pro": "pro"}


def rule_title(rule: str) -> str:
    """`SAF + EASY, any` of `saf+easy any`."""
    scheduler, *where = rule.split(" ")
    plain = ["no backfilling"] if scheduler.endswith("+none") else []
    return ", ".join([scheduler_title(*scheduler.split("+")), *plain, *where])


def quality(file: str, length: int, metric: str = "wait", also: str = "") -> str:
    """RLTune on windows of that many jobs, a column per trace, compared by ``metric``, and by ``also``."""
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

    def chosen_schedulers(trace: str) -> str:
        """The schedulers that the agents on a trace chose, one for each training."""
        texts = []
        for chosen in (log["scheduler"] for log in logs if log["trace"] == trace):
            usual = {"placement": "best_fit", "locality": "strict"}
            unusual = [chosen[key] for key, value in usual.items() if chosen[key] != value]
            estimates = ["calibrated estimates"] if chosen["uses_calibrated"] else []
            texts.append(", ".join([scheduler_title(chosen["policy"], chosen["backfill"]), *unusual, *estimates]))
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
        row("its scheduler", chosen_schedulers),
        *([row("lower bound", lambda trace: f"{part[trace]['bound_s']:,}")] if metric == "wait" else []),
        *(against(key, metric) for key in compared),
    ]
    if also:
        rows.append(row(f"mean {METRICS[also]} (the best rules by it):", lambda trace: ""))
        rows += [against(key, also) for key in ("strong", "any")]
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


def constants() -> str:
    """Trainings that differ in one constant, from constants.csv."""
    rows = rows_of("constants")

    def mean(column: str) -> str:
        return f"{fmean(float(row[column]) for row in rows if row[column]):+.1f}".replace("-", "−")

    means = [(title, *(mean(f"{trace}_{end}") for trace in ("philly", "venus"))) for title, end in CONSTANTS.items()]
    return table(f"mean of {len(rows)} trainings, against SAF + EASY, % | Philly | Venus", means)
