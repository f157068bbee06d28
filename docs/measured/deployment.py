"""The deployment on Slurm: artefacts of the run of config/deployment-types.yaml."""

from collections.abc import Iterable
from statistics import fmean

from measured.read import percent, rows_of, table
from rltune.report.tables.deployment import short

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
    """Means over the repetitions of the deployment on Slurm, a row per scheduler; of the longest waits the largest."""
    runs = [row for row in rows_of("deployment-runs") if row["system"] == "Slurm"]
    found = []
    for name, means in by_scheduler(runs, RUN).items():
        values = dict(zip(RUN, means, strict=True))
        values["wait_max_s"] = max(float(row["wait_max_s"]) for row in runs if row["title"] == name)
        values["utilisation"] *= 100
        found.append((name, *(f"{v:,.0f}" if c.endswith("_s") else f"{v:,.1f}" for c, v in values.items())))
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
    """Mean waits on Slurm by QOS, partition and GPUs, s, a column per scheduler."""
    rows = rows_of("deployment-classes")
    schedulers = [column[5:-2] for column in rows[0] if column.startswith("wait_") and column.endswith("_s")]
    found = []
    for row in rows:
        waits = (f"{float(row[f'wait_{s}_s']):,.0f}" for s in schedulers)
        found.append((f"{row['by_title']} {row['name']}", f"{int(float(row['jobs'])):,}", *waits))
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
