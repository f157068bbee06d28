"""Where the numbers come from: configuration, seeds, versions, commit, machine, seconds a stage."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from rltune.config.context import Run

PACKAGES = (
    "rltune numpy numba pandas pyarrow scipy tensorflow keras cvxpy ijson lightgbm matplotlib seaborn snakemake papermill"
).split()


def gather(run: Run, root: Path, benchmarks: Path | None) -> dict[str, Any]:
    """Everything a reader needs to make the report again: run (when, from what and on what the page was made), seeds,
    versions, config_path, config_text, and of the steps of the workflow stages (`stage`, `seconds`, longest first) and
    kinds (`kind` of step, `steps` of it, their `seconds` in all); what cannot be found says so."""
    path = root / run.path
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    each = stages(benchmarks, run)
    kinds = each.assign(kind=each["stage"].str.split("/").str[0]).groupby("kind", as_index=False)
    kinds = kinds.agg(steps=("seconds", "size"), seconds=("seconds", "sum"))
    return {
        "run": {"Page made": when.strftime("%Y-%m-%d %H:%M UTC"), "Commit": commit(root), **machine()},
        "config_path": path.name if not path.is_relative_to(root) else str(path.relative_to(root)),
        "config_text": path.read_text(encoding="utf-8") if path.is_file() else "not found",
        "seeds": seeds(run),
        "versions": versions(),
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


def versions() -> dict[str, str]:
    """Python and the packages that could change a number."""
    return {"Python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def commit(root: Path) -> str:
    """The commit, and whether the files differ from it; in words where there is no git."""

    def git(*arguments: str) -> str:
        how = {"capture_output": True, "text": True, "timeout": 20, "check": True}
        quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
        return subprocess.run(["git", "-C", str(root), *arguments], env=quiet, **how).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return "unknown (the project is not a git repository of its own)"
        changed = len(git("status", "--porcelain").splitlines())
        return git("rev-parse", "HEAD") + (f", with {changed} changed or new files" if changed else ", no file changed")
    except (OSError, subprocess.SubprocessError):
        return "unknown (no git here)"


def machine() -> dict[str, str]:
    """Cores, memory and system of the machine that made the page."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    return {
        "Processor": model,
        "Cores": str(os.cpu_count() or "unknown"),
        "Memory": memory,
        "System": f"{platform.system()} {platform.release()}",
    }


def stages(folder: Path | None, run: Run) -> pd.DataFrame:
    """Seconds of each step of this run, from the workflow's benchmark files (`<step>.tsv`, their first column); the folder
    may hold those of steps that an earlier configuration had."""
    cells, rows = {cell.name for cell in run.config.cells()}, []
    workloads = {f"{w.trace}__{w.cluster}" for w in run.config.all_workloads()}
    known = {"train": cells, "evaluate": cells, "clean": run.traces, "compare": run.traces, "fit": workloads}
    known |= {"estimate": workloads, "baselines": workloads}  # their names end with the estimate's
    known["deploy"] = {f"{name}-{k}" for name, k in run.config.deployment.runs()} if run.config.deployment else {}
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
