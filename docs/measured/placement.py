"""Placements and localities: what benchmarks/placement.py has written."""

from typing import Any

from measured.read import measured, percent, table


def placement() -> dict[str, Any]:
    """What benchmarks/placement.py has written: its traces alone."""
    return {name: found for name, found in measured("placement").items() if isinstance(found, dict) and "off" in found}


def placed(choice: str) -> str:
    """`best_fit`, `strict` of a choice of the benchmark."""
    rule, locality, *_ = choice.split(" ")
    return f"`{rule}`, `{locality}`"


def placement_means() -> str:
    """Wait, completion time and bounded slowdown of every placement and locality, with contention."""
    traces = placement()
    choices = list(next(iter(traces.values()))["off"]["mean"])
    shown = "{wait_s:,.0f} / {jct_s:,.0f} / {bsld:.2f}"
    means = [found["middle"]["mean"] for found in traces.values()]
    rows = [(placed(choice), *(shown.format(**mean[choice]) for mean in means)) for choice in choices]
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
    default = next(iter(sizes))
    rows, part = [], [found["middle"] for found in traces.values()]
    for size, (jobs, slots) in sizes.items():
        waits = [
            "{:,.0f} s".format(found["mean"][size]["wait_s"])
            if size == default
            else percent(found["against"][f"{size} / {default}"]["wait_s"])
            for found in part
        ]
        solved = " / ".join(f"{100 * found['model'][size]['solved']:.0f}" for found in part)
        solve_ms = " / ".join("{p50:.2g}, {p95:.2g}".format(**found["model"][size]) for found in part)
        rows.append((str(jobs), str(slots), *waits, solved, solve_ms))
    return table(
        " | ".join(["K", "T", *(f"wait on {name}" for name in traces), "solved, %", "a solve, ms (median, 95 %)"]), rows
    )
