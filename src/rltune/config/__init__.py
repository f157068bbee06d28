"""Configuration: one pydantic model a block, a loader that explains mistakes, the places of a run's files."""

from rltune.config.cells import Cell, Experiment, Workload, parse_estimate
from rltune.config.cluster import ClusterConfig
from rltune.config.load import CACHE, load_cluster, load_run, load_trace, project_root
from rltune.config.preset import Preset
from rltune.config.run import LookaheadConfig, RunConfig, SimulationConfig
from rltune.config.trace import TraceConfig

__all__ = [
    "CACHE",
    "Cell",
    "ClusterConfig",
    "Experiment",
    "LookaheadConfig",
    "Preset",
    "RunConfig",
    "SimulationConfig",
    "TraceConfig",
    "Workload",
    "load_cluster",
    "load_run",
    "load_trace",
    "parse_estimate",
    "project_root",
]
