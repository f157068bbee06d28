"""Valid texts of a run, a cluster and a trace, for tests that break them, and the message that a broken one gets."""

from pathlib import Path

import pytest

from rltune.config import ClusterConfig, RunConfig, TraceConfig
from rltune.config.load import load_run, read_block
from rltune.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
RUN = """\
title: T
experiments:
  # the only one
  - workloads: [{trace: philly-smoke, cluster: philly-192}]
    policy: [fifo]
"""
CLUSTER = """\
title: C
pools:
  - name: all
    groups:
      - {gpu_type: P100, nodes: 2, gpus: 8, cpus: 64, mem_gb: 512}
"""
MAP = "columns: {submit_s: a, gpus: b, run_s: {column: c, unit: s}}\n"
TRACE = "title: T\ndata: own\nformat: csv\npath: jobs.csv\n" + MAP
MODELS = {"run": (RunConfig, RUN), "cluster": (ClusterConfig, CLUSTER), "trace": (TraceConfig, TRACE)}


def mistake(folder: Path, text: str | bytes, model: type = RunConfig) -> str:
    """The message that a file of this text gets."""
    path = folder / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_run(path, ROOT) if model is RunConfig else read_block(path, model, ROOT)
    return str(caught.value)
