"""Where the numbers come from: configuration, seeds, versions, commit, machine, seconds a stage."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd

from rltune.config.context import Run

PACKAGES = (
    "rltune numpy numba pandas pyarrow scipy tensorflow keras cvxpy ijson lightgbm matplotlib seaborn snakemake papermill"
).split()


@dataclass(frozen=True)
class Provenance:
    """Everything a reader needs to make the report again."""

    made: str
    """Date and time of the page, UTC."""
    config_path: str
    config_text: str
    seeds: dict[str, str]
    versions: dict[str, str]
    commit: str
    machine: dict[str, str]
    stages: pd.DataFrame
    """`stage`, `seconds`, longest first; empty where the workflow has not measured."""

    @property
    def kinds(self) -> pd.DataFrame:
        """`kind` of step (train, evaluate, …), `steps` of it and their `seconds` in all, longest first."""
        kind = self.stages["stage"].str.split("/").str[0].rename("kind")
        frame = self.stages["seconds"].groupby(kind).agg(["size", "sum"]).reset_index()
        frame.columns = ["kind", "steps", "seconds"]
        return frame.sort_values(["seconds", "kind"], ascending=[False, True], ignore_index=True)

    @property
    def run(self) -> dict[str, str]:
        """When, from what and on what the page was made."""
        return {"Page made": self.made, "Commit": self.commit, **self.machine}


def gather(run: Run, root: Path, benchmarks: Path | None) -> Provenance:
    """Ask the run, the packages, git and the machine; what cannot be found says so."""
    path = root / run.path
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return Provenance(
        made=when.strftime("%Y-%m-%d %H:%M UTC"),
        config_path=path.name if not path.is_relative_to(root) else str(path.relative_to(root)),
        config_text=path.read_text(encoding="utf-8") if path.is_file() else "not found",
        seeds=seeds(run),
        versions=versions(),
        commit=commit(root),
        machine=machine(),
        stages=stages(benchmarks),
    )


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
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def commit(root: Path) -> str:
    """The commit, and whether the files differ from it; in words where there is no git."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        ).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return "unknown (the project is not a git repository of its own)"
        changed = git("status", "--porcelain")
        return git("rev-parse", "HEAD") + (
            f", with {len(changed.splitlines())} changed or new files" if changed else ", no file changed"
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown (no git here)"


def machine() -> dict[str, str]:
    """Cores, memory and system of the machine that made the page."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    try:
        memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (ValueError, OSError, AttributeError):
        memory = "unknown"
    return {
        "Processor": model,
        "Cores": str(os.cpu_count() or "unknown"),
        "Memory": memory,
        "System": f"{platform.system()} {platform.release()}",
    }


def stages(folder: Path | None) -> pd.DataFrame:
    """Seconds of each step, from the workflow's benchmark files (`<step>.tsv`, their first column)."""
    rows = []
    for path in sorted(folder.glob("**/*.tsv") if folder else []):
        try:
            seconds = pd.read_csv(path, sep="\t", usecols=[0], na_values=["-", "NA"]).iloc[:, 0].mean()
        except (ValueError, IndexError, pd.errors.ParserError):
            seconds = float("nan")  # a step that is being measured has an empty file
        rows.append({"stage": str(path.relative_to(folder).with_suffix("")), "seconds": seconds})
    frame = pd.DataFrame(rows, columns=["stage", "seconds"])
    return frame.sort_values(["seconds", "stage"], ascending=[False, True], ignore_index=True)
