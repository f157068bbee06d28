"""The made-up Slurm log of the example of an own cluster."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rltune.config.trace import TraceConfig
from rltune.traces.clean import clean_trace
from rltune.traces.synthetic import generate
from rltune.traces.synthetic.write_sacct import GPUS, LIMIT_S

TRACE = TraceConfig(title="Mine", data="synthetic", format="sacct", time_zone="Europe/Berlin", path="here")


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    (first,), (second,), (other,) = (generate("sacct", tmp_path / str(k), seed, 600) for k, seed in enumerate((3, 3, 4)))
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()


def test_it_is_a_log_with_limits_and_the_waits_of_a_queue(tmp_path: Path) -> None:
    (path,) = generate("sacct", tmp_path, 3, 3000)
    clean = clean_trace("mine", TRACE, path)
    jobs = clean.jobs
    assert len(jobs) + clean.audit.left_out["cancelled before it started"] == 3000
    assert clean.audit.left_out["step of a job (123.batch, 123.0, …): part of its job"] > 50
    assert (jobs["requested_s"] >= jobs["run_s"]).all() and jobs["run_s"].max() <= LIMIT_S
    assert jobs["wait_s"].notna().all() and (jobs["wait_s"] > 0).any()
    start = (jobs["submit_s"] + jobs["wait_s"]).to_numpy(float)
    end = start + jobs["run_s"].to_numpy(float)
    gpus = jobs["gpus"].to_numpy(float)
    used = [gpus[(start <= at) & (end > at)].sum() for at in np.unique(start)]
    assert max(used) <= GPUS
