"""A run's configuration together with the traces and clusters it names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rltune.config.base import repeated
from rltune.config.cluster import ClusterConfig
from rltune.config.load import load_cluster, load_run, load_trace, project_root
from rltune.config.run import RunConfig
from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError


@dataclass(frozen=True)
class Run:
    """What a run is made from; it knows no path of a result."""

    root: Path
    """The project's."""
    path: str
    """The configuration's file, relative to the project's root where it is in the project."""
    config: RunConfig
    traces: dict[str, TraceConfig]
    """By name: those of the run's workloads, and those it characterises alone."""
    clusters: dict[str, ClusterConfig]
    """By name: those of the run's workloads."""

    @classmethod
    def open(cls, path: str | Path = "config/default.yaml") -> Run:
        """Read a run's configuration from anywhere inside the project.

        Raises ConfigError when the configuration, or a trace or cluster it names, is wrong.
        """
        root = project_root()
        config = load_run(path, root)
        clusters = dict.fromkeys(workload.cluster for workload in config.all_workloads())
        loaded = {name: load_cluster(name, root) for name in clusters}
        for workload in config.gpu_types:
            if loaded[workload.cluster].speeds is None:
                raise ConfigError(
                    f"{path}: gpu_types: config/clusters/{workload.cluster}.yaml has no `speeds`, expected some"
                )
        return cls(root, str(path), config, {name: load_trace(name, root) for name in config.traces()}, loaded)

    def trace_titles(self) -> dict[str, str]:
        """Title of each trace of the run, with its name where two have the same."""
        titles = {name: trace.title for name, trace in self.traces.items()}
        twice = repeated(list(titles.values()))
        return {name: f"{title} ({name})" if title in twice else title for name, title in titles.items()}
