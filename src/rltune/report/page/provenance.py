"""Where the numbers come from: configuration, seeds, what each notebook recorded, seconds a stage."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from rltune.config.context import Run


def gather(run: Run, benchmarks: Path | None, made: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Everything a reader needs to make the report again: when the page was made; the commit, machine and versions that
    each notebook recorded (``made``); seeds, config_path, config_text; the seconds of the workflow's steps (`stage`,
    `seconds`, longest first), and of each kind (`kind`, `steps`, `seconds` in all)."""
    path = run.root / run.path
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    each = stages(benchmarks, run)
    kinds = each.assign(kind=each["stage"].str.split("/").str[0]).groupby("kind", as_index=False)
    kinds = kinds.agg(steps=("seconds", "size"), seconds=("seconds", "sum"))
    return {
        "run": {"Page made": when.strftime("%Y-%m-%d %H:%M UTC")},
        "made": together(made),
        "config_path": path.name if not path.is_relative_to(run.root) else str(path.relative_to(run.root)),
        "config_text": path.read_text(encoding="utf-8") if path.is_file() else "not found",
        "seeds": seeds(run),
        "stages": each,
        "kinds": kinds.sort_values(["seconds", "kind"], ascending=[False, True], ignore_index=True),
    }


def seeds(run: Run) -> dict[str, str]:
    """Every seed the run uses, by purpose."""
    generated = {
        f"generated trace {trace.title}": str(trace.synthetic.seed)
        for trace in run.traces.values()
        if trace.synthetic is not None
    }
    return {
        "training": ", ".join(str(s) for s in sorted({c.seed for c in run.config.cells()})),
        "resampling and run-time estimates": str(run.config.evaluation.seed),
        **generated,
    }


def together(made: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What the results were made with (rltune.sources.made): one value where all agree, else each with its number of results."""
    found = {}
    for name in dict.fromkeys(name for record in made for name in record):
        values = Counter(record.get(name, "not recorded") for record in made)
        several = [f"{value} ({n} of {len(made)} notebooks)" for value, n in values.most_common()]
        found[name] = next(iter(values)) if len(values) == 1 else "; ".join(several)
    return found


def stages(folder: Path | None, run: Run) -> pd.DataFrame:
    """Seconds of each step of this run, from the workflow's benchmark files (`<step>.tsv`, their first column); the folder
    may hold those of steps that an earlier configuration had."""
    cells, rows = {cell.name for cell in run.config.cells()}, []
    workloads = {f"{w.trace}__{w.cluster}" for w in run.config.all_workloads()}
    known = {"train": cells, "evaluate": cells, "clean": run.traces, "compare": run.traces, "fit": workloads}
    known |= {"estimate": workloads, "baselines": workloads}  # their names end with the estimate's
    known["deploy"] = {str(k + 1) for k in range(run.config.deployment.repetitions)} if run.config.deployment else {}
    for path in sorted(folder.glob("**/*.tsv") if folder else []):
        kind, name = path.parent.name, path.stem
        if kind in ("estimate", "baselines"):
            name = name.rpartition("__")[0]
        if name not in known.get(kind, [name]):
            continue
        try:
            seconds = pd.read_csv(path, sep="\t", usecols=[0], na_values=["-", "NA"]).iloc[:, 0].mean()
        except (ValueError, IndexError, pd.errors.ParserError):
            seconds = float("nan")  # a step that is being measured has an empty file
        rows.append({"stage": str(path.relative_to(folder).with_suffix("")), "seconds": seconds})
    frame = pd.DataFrame(rows, columns=["stage", "seconds"])
    return frame.sort_values(["seconds", "stage"], ascending=[False, True], ignore_index=True)
