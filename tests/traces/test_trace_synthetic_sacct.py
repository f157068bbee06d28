"""The made-up Slurm logs: the example of an own cluster, and the jobs of the deployment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rltune.cluster.fit import fit
from rltune.cluster.load import offered_load
from rltune.config.load import load_cluster, project_root
from rltune.config.trace import TraceConfig
from rltune.traces.clean import clean_trace
from rltune.traces.synthetic import finetuning, generate
from rltune.traces.synthetic.parameters import LEVELS
from rltune.traces.synthetic.write_sacct import GPUS, LIMIT_S

TRACE = TraceConfig(title="Mine", data="synthetic", format="sacct", time_zone="Europe/Berlin", path="here")


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    (first,), (second,), (other,) = (
        generate("sacct", tmp_path / str(k), seed, 600) for k, seed in enumerate((3, 3, 4))
    )
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


def test_the_jobs_of_the_deployment(tmp_path: Path) -> None:
    """Every seed has the same mix of sizes and about the same work; limits hold; nothing but jobs that end by themselves."""
    loads, cluster = [], load_cluster("deployment", project_root())
    for seed in (3, 4):
        (path,) = generate("sacct", tmp_path / str(seed), seed, 4096, "finetuning")
        clean = clean_trace("jobs", TRACE, path)
        jobs = clean.jobs
        assert len(jobs) == 4096 and not clean.audit.left_out and set(jobs["status"]) == {"passed"}
        shares = jobs["gpus"].value_counts(normalize=True)
        assert {n: round(share, 2) for n, share in shares.items()} == {1: 0.54, 2: 0.34, 4: 0.08, 8: 0.04}
        assert (jobs["requested_s"] >= jobs["run_s"]).all() and jobs["requested_s"].isin(finetuning.LIMITS_S).all()
        assert jobs["run_s"].between(finetuning.LEAST_S, finetuning.MOST_S).all() and jobs["gpu_type"].isna().all()
        assert jobs["user"].nunique() == finetuning.USERS
        loads.append(offered_load(jobs, cluster.gpus))
        _, audit = fit(jobs, cluster)
        assert not audit.left_out
    assert all(0.9 < load < 1.2 for load in loads), loads


def test_run_times_of_a_size_are_those_of_its_kinds_of_jobs() -> None:
    """Of eight GPUs there is one kind, so its median is the median."""
    of = {
        group.low: dict(zip(LEVELS, group.quantiles_s, strict=True)) for group in finetuning.parameters().marginals.runs
    }
    share, _, median_min, _ = finetuning.KINDS["multi-node"]
    assert of[8][0.5] == pytest.approx(60 * median_min, rel=0.01) and share == 0.04
    assert of[1][0.5] < of[2][0.5] < of[4][0.5] and all(list(q.values()) == sorted(q.values()) for q in of.values())
