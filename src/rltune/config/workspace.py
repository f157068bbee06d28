"""Where everything of a run lies: the one place that knows paths.

The workflow, the notebooks and the report ask it, so none of them builds a path of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rltune.config.cells import Cell
from rltune.config.cluster import ClusterConfig
from rltune.config.load import load_cluster, load_run, load_trace, project_root
from rltune.config.run import RunConfig
from rltune.config.trace import TraceConfig


@dataclass(frozen=True)
class Workspace:
    """A run's configuration and folders.

    ``root`` is the project (configuration, notebooks, code); ``base`` is where results and cache are
    written, the same folder unless a caller says otherwise; ``config_path`` is relative to ``root``.
    """

    root: Path
    base: Path
    config_path: str
    config: RunConfig

    @classmethod
    def open(cls, config_path: str = "config/default.yaml", base: str | Path = "") -> Workspace:
        """Read a run's configuration from anywhere inside the project.

        Raises ConfigError when the configuration, or a trace or cluster it names, is wrong.
        """
        root = project_root()
        return cls(root, Path(base).resolve() if base else root, str(config_path), load_run(config_path, root))

    @property
    def results(self) -> Path:
        """Folder of everything the run makes."""
        return self.base / self.config.results

    @property
    def cache(self) -> Path:
        """Folder of raw traces."""
        return self.base / ".cache" / "traces"

    @property
    def report(self) -> Path:
        """Folder of the report."""
        return self.results / "report"

    @property
    def artefacts(self) -> Path:
        """Folder of tables and figures with the data behind them."""
        return self.results / "artefacts"

    @property
    def plugins(self) -> list[Path]:
        """Files with policies of the user's own."""
        return [self.root / Path(name).expanduser() for name in self.config.plugins]

    def trace(self, name: str) -> TraceConfig:
        """Configuration of a trace."""
        return load_trace(name, self.root)

    def cluster(self, name: str) -> ClusterConfig:
        """Configuration of a cluster."""
        return load_cluster(name, self.root)

    def trace_titles(self) -> dict[str, str]:
        """Title of each trace of the run, with its name where two have the same."""
        titles = {name: self.trace(name).title for name in self.config.traces()}
        twice = {t for t in titles.values() if list(titles.values()).count(t) > 1}
        return {name: f"{title} ({name})" if title in twice else title for name, title in titles.items()}

    def jobs(self, trace: str) -> Path:
        """Cleaned job table of a trace."""
        return self.results / "traces" / trace / "jobs.parquet"

    def clean_audit(self, trace: str) -> Path:
        """What cleaning kept and left out."""
        return self.results / "traces" / trace / "audit.json"

    def fitted(self, trace: str, cluster: str) -> Path:
        """Jobs of a trace that a cluster can hold, with their pools."""
        return self.results / "workloads" / f"{trace}__{cluster}" / "jobs.parquet"

    def fit_audit(self, trace: str, cluster: str) -> Path:
        """What the fit to a cluster kept and left out."""
        return self.results / "workloads" / f"{trace}__{cluster}" / "audit.json"

    def estimates(self, trace: str, cluster: str, estimate: str) -> Path:
        """Run-time estimates of a workload's jobs."""
        return self.results / "workloads" / f"{trace}__{cluster}" / f"estimate-{estimate}.parquet"

    def baselines(self, trace: str, cluster: str, estimate: str) -> Path:
        """Results of the heuristics on a workload's windows, shared by its cells; a row a heuristic × window."""
        return self.results / "workloads" / f"{trace}__{cluster}" / f"baselines-{estimate}.csv"

    def policy(self, cell: Cell) -> Path:
        """A cell's trained policy (one file: weights, features, how it was trained)."""
        return self.results / "cells" / cell.name / "policy.npz"

    def history(self, cell: Cell) -> Path:
        """A cell's training curve, a row an epoch."""
        return self.results / "cells" / cell.name / "history.csv"

    def training(self, cell: Cell) -> Path:
        """Folder of a cell's training: its state while it lasts, progress.csv, TensorBoard events.

        No rule of the workflow names it, so it outlives a job that was killed.
        """
        return self.results / "cells" / cell.name / "training"

    def windows(self, cell: Cell) -> Path:
        """A cell's test results, a row a scheduler × window."""
        return self.results / "cells" / cell.name / "windows.csv"

    def test_jobs(self, cell: Cell) -> Path:
        """A cell's test results, a row a job, for the agent and its base policy."""
        return self.results / "cells" / cell.name / "jobs.parquet"

    @property
    def motivation(self) -> Path:
        """Figures 1 to 4 on real Slurm daemons: a row a figure × job × node; beside it a .json that says how."""
        return self.results / "slurm" / "motivation.csv"

    def deployed(self, scheduler: str, repetition: int | str) -> Path:
        """Folder of one run on the emulated Slurm cluster: jobs.csv, cycles.csv, facts.json."""
        return self.results / "deployment" / f"{scheduler}-{repetition}"

    def notebook(self, stage: str, name: str = "") -> Path:
        """The executed notebook of a stage: the log of its rule."""
        return self.results / "notebooks" / f"{stage}{'-' if name else ''}{name}.ipynb"

    def page(self, stage: str, name: str = "") -> Path:
        """The executed notebook as HTML, beside the report."""
        return self.report / "notebooks" / f"{stage}{'-' if name else ''}{name}.html"
