"""Configuration: one pydantic model a block, and a loader that explains mistakes."""

from rltune.config.cells import Cell as Cell, parse_estimate as parse_estimate
from rltune.config.cluster import ClusterConfig as ClusterConfig
from rltune.config.load import (
    CACHE as CACHE,
    load_cluster as load_cluster,
    load_run as load_run,
    load_trace as load_trace,
    project_root as project_root,
)
from rltune.config.preset import Preset as Preset
from rltune.config.run import (
    LookaheadConfig as LookaheadConfig,
    RunConfig as RunConfig,
    SimulationConfig as SimulationConfig,
)
from rltune.config.trace import TraceConfig as TraceConfig
