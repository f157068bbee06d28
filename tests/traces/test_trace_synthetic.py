"""Synthetic traces: reproducible bytes, the distributions of their models, and archives that clean like real ones."""

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rltune.cluster.fit import fit
from rltune.cluster.load import offered_load
from rltune.config.load import load_cluster, project_root
from rltune.config.trace import PARTS, TraceConfig
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.synthetic import generate, models, write_sacct
from rltune.traces.synthetic.model import Model, draw_jobs

FORMATS = {"philly": models.PHILLY, "alibaba2020": models.PAI}
LOGS = [(f, None) for f in FORMATS] + [(f, part) for f in ("swf", "sacct") for part in PARTS[f]]
MODELS = {name: value for name, value in vars(models).items() if isinstance(value, Model)}
JOBS = 20_000


def cleaned(folder: Path, format: str, jobs: int, part: str | None = None, seed: int = 3) -> CleanTrace:
    """A synthetic archive of a format, cleaned."""
    paths = generate(format, folder, seed, jobs, part)
    zone = FORMATS[format].time_zone if format in FORMATS else "Europe/Stockholm"
    made = {"seed": seed, "jobs": jobs}
    config = TraceConfig(title="T", data="synthetic", format=format, time_zone=zone, synthetic=made, part=part)
    return clean_trace("t", config, paths[0] if len(paths) == 1 else folder)


@pytest.mark.parametrize(("format", "part"), LOGS)
def test_same_seed_same_bytes_other_seed_other_bytes(format, part, tmp_path):
    contents = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        paths = generate(format, tmp_path / name, seed, 300, part)
        contents.append([p.read_bytes() for p in paths])
        time.sleep(1.1 if name == "a" else 0)  # a clock in a header would show
    assert contents[0] == contents[1]
    assert not set(contents[0]) & set(contents[2])
    for jobs in (1, 2):
        assert all(p.is_file() for p in generate(format, tmp_path / str(jobs), 0, jobs, part))


@pytest.mark.parametrize("name", MODELS)
def test_marginals_hold_for_every_seed_and_history_predicts(name):
    model = MODELS[name]
    shares = pd.Series(model.gpus) / sum(model.gpus.values())
    for seed in (11, 12):
        jobs, _ = draw_jobs(model, JOBS, seed)
        assert len(jobs) == JOBS and jobs["submit_unix_s"].is_monotonic_increasing
        assert (jobs["gpus"].value_counts(normalize=True).reindex(shares.index) - shares).abs().max() < 1e-3
        assert jobs["run_s"].between(model.shortest_s, model.longest_s).all()
        median_s, _ = model.run_s[min(model.run_s)]
        assert jobs.loc[jobs["gpus"] <= min(model.run_s), "run_s"].median() == pytest.approx(median_s, rel=0.05)
        span_h = (jobs["submit_unix_s"].iloc[-1] - jobs["submit_unix_s"].iloc[0]) / 3600
        assert JOBS / span_h == pytest.approx(model.jobs_per_hour, rel=0.02)
        assert jobs["wait_s"].mean() == pytest.approx(model.wait[1], rel=0.1)
        log_run = np.log(jobs["run_s"])
        assert log_run.corr(log_run.groupby(jobs["user"]).shift()) > 0.05  # shuffled, it would be nothing


@pytest.mark.parametrize("format", FORMATS)
def test_goes_through_the_cleaning_of_a_real_one(format, tmp_path):
    clean = cleaned(tmp_path, format, JOBS)
    assert 0.98 * JOBS < clean.audit.rows_kept == len(clean.jobs) < JOBS
    assert len(clean.audit.left_out) >= 3 and clean.audit.left_out["run time zero"] > 0
    assert clean.jobs["status"].nunique() == (1 if format == "alibaba2020" else 3)


@pytest.mark.parametrize("part", PARTS["swf"])
def test_swf_is_a_log_of_cpu_jobs(part, tmp_path):
    clean = cleaned(tmp_path, "swf", JOBS, part)
    assert clean.audit.rows_read == JOBS and "dates and hours mean nothing" not in str(clean.audit)
    assert 0.99 * JOBS < len(clean.jobs) < JOBS and clean.audit.left_out["cancelled before it started"] > 0
    assert set(clean.jobs["resource"]) == {"cpu"} and (clean.jobs["gpus"] == 0).all()
    assert 0.02 < (clean.jobs["run_s"] > clean.jobs["requested_s"]).mean() < 0.15
    if part == "SDSC-SP2":  # paper, Table 2
        assert clean.jobs["run_s"].mean() == pytest.approx(7319.6, rel=0.05)
        assert clean.jobs["wait_s"].mean() == pytest.approx(10_403.6, rel=0.05)
        assert clean.jobs["cpus"].mean() == pytest.approx(44_416 / 2887, rel=0.05)


def test_sacct_is_a_log_with_limits_and_the_waits_of_a_queue(tmp_path):
    clean = cleaned(tmp_path, "sacct", 3000, "example")
    jobs, log = clean.jobs, write_sacct.LOGS["example"]
    assert len(jobs) + clean.audit.left_out["cancelled before it started"] == 3000
    assert clean.audit.left_out["step of a job (123.batch, 123.0, …): part of its job"] > 50
    assert (jobs["requested_s"] >= jobs["run_s"]).all() and jobs["run_s"].max() <= log.limit_s
    assert jobs["wait_s"].notna().all() and (jobs["wait_s"] > 0).any()
    start = (jobs["submit_s"] + jobs["wait_s"]).to_numpy(float)
    end, gpus = start + jobs["run_s"].to_numpy(float), jobs["gpus"].to_numpy(float)
    assert max(gpus[(start <= at) & (end > at)].sum() for at in np.unique(start)) <= log.gpus


@pytest.mark.parametrize("seed", [3, 4])
def test_the_jobs_of_the_deployment_ask_for_what_its_cluster_has(seed, tmp_path):
    cluster = load_cluster("deployment", project_root())
    clean = cleaned(tmp_path, "sacct", 4096, "finetuning", seed)
    jobs = clean.jobs
    assert len(jobs) == 4096 and not clean.audit.left_out and set(jobs["status"]) == {"passed"}
    assert (jobs["requested_s"] >= jobs["run_s"]).all() and jobs["user"].nunique() == models.FINETUNING.users
    assert 0.9 < offered_load(jobs, cluster.gpus) < 1.2
    assert not fit(jobs, cluster)[1].left_out
