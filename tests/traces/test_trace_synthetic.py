"""Synthetic traces: reproducible bytes, the distributions they were calibrated to, and the real rows held out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rltune.errors import ConfigError
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.fetch import sha256
from rltune.traces.readers.archive import open_member
from rltune.traces.synthetic import WRITERS, generate
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.parameters import ALIBABA, HELIOS, PHILLY

FORMATS = {"philly": PHILLY, "helios": HELIOS, "alibaba2020": ALIBABA}
ZONES = {f: p.time_zone for f, p in FORMATS.items()}
JOBS = 40_000


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CleanTrace]:
    """The default synthetic trace of a format, cleaned (once per module)."""
    from rltune.config.trace import TraceConfig

    made: dict[str, CleanTrace] = {}

    def get(format: str) -> CleanTrace:
        if format not in made:
            folder = tmp_path_factory.mktemp(format)
            part = {"part": "Venus"} if format == "helios" else {}
            config = TraceConfig(title="T", data="synthetic", format=format, time_zone=ZONES[format],
                                 synthetic={"seed": 2025, "jobs": JOBS}, **part)
            generate(format, folder, 2025, JOBS)
            made[format] = clean_trace(format, config, folder)
        return made[format]

    return get


@pytest.mark.parametrize("format", FORMATS)
def test_same_seed_same_bytes_other_seed_other_bytes(format: str, tmp_path: Path) -> None:
    sums = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        paths = generate(format, tmp_path / name, seed, 300)
        sums.append([sha256(p) for p in paths if "machine" not in p.name])
        time.sleep(1.1 if name == "a" else 0)  # a clock in a header would show
    assert sums[0] == sums[1]
    assert not set(sums[0]) & set(sums[2])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("jobs", [1, 2, 30])
def test_any_size_works(format: str, jobs: int, tmp_path: Path) -> None:
    assert all(p.is_file() for p in generate(format, tmp_path, 0, jobs))
    assert len(draw_jobs(FORMATS[format], jobs, streams(0, 0))) == jobs


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no generator for format 'swf'"):
        generate("swf", tmp_path, 0, 10)
    assert WRITERS.keys() == FORMATS.keys()


@pytest.mark.parametrize("format", FORMATS)
def test_generator_meets_its_targets(format: str) -> None:
    """Shares and quantiles of the parameters hold for every seed; rates within 2 %."""
    target = FORMATS[format]
    for seed in (11, 12):
        jobs = draw_jobs(target, JOBS, streams(seed, 0))
        shares = pd.Series(target.gpu_shares) / sum(target.gpu_shares.values())
        got = jobs["gpus"].value_counts(normalize=True).reindex(shares.index, fill_value=0)
        assert (got - shares).abs().max() < 1e-3
        for group in target.runs[:2]:
            run = jobs.loc[jobs["gpus"].between(group.low, group.high), "run_s"]
            assert run.quantile(0.5 * (1 - group.share_over_48h)) == pytest.approx(group.quantiles_s[7], rel=0.05)
            assert run.quantile(0.9 * (1 - group.share_over_48h)) == pytest.approx(group.quantiles_s[11], rel=0.05)
        span = jobs["submit_unix_s"].iloc[-1] - jobs["submit_unix_s"].iloc[0]
        assert JOBS / span == pytest.approx(target.arrivals.rate_per_s, rel=0.02)
        assert jobs["wait_s"].mean() == pytest.approx(target.waits.mean_s, rel=0.05)
        assert jobs["user"].nunique() > 0.9 * target.users
        if target.vcs:
            vcs = pd.Series(target.vcs) / sum(target.vcs.values())
            assert (jobs["vc"].value_counts(normalize=True).reindex(vcs.index, fill_value=0) - vcs).abs().max() < 0.05
        if target.vc_gpus:
            assert (jobs["gpus"] <= jobs["vc"].map(target.vc_gpus)).all()


@pytest.mark.parametrize("format", FORMATS)
def test_history_predicts_something(format: str) -> None:
    """A user's previous run time explains part of the next; in a shuffled column it would explain nothing."""
    jobs = draw_jobs(FORMATS[format], JOBS, streams(5, 0))
    log_run = np.log(jobs["run_s"])
    previous = log_run.groupby(jobs["user"]).shift()
    assert log_run.corr(previous) > 0.3


@pytest.mark.parametrize("format", FORMATS)
def test_goes_through_the_cleaning_of_a_real_one(format: str, clean: Callable) -> None:
    result = clean(format)
    audit = result.audit
    assert 0.98 * JOBS < audit.rows_kept < JOBS
    assert len(audit.left_out) >= 3 and audit.left_out["run time zero"] > 0
    assert len(result.jobs) == audit.rows_kept
    assert result.jobs["status"].nunique() == (1 if format == "alibaba2020" else 3)


def test_philly_crosses_the_clock_change_and_keeps_order(clean: Callable) -> None:
    """Written in Pacific wall clock and read back, no job of the repeated hour gets a wrong run time or wait."""
    drawn = draw_jobs(PHILLY, JOBS, streams(2025, 2017))
    jobs = clean("philly").jobs
    assert clean("philly").audit.noted["submitted_time within the hour repeated in autumn"] > 10
    longest = drawn["run_s"].max()
    assert jobs["run_s"].max() <= longest and jobs["wait_s"].max() <= drawn["wait_s"].max()
    assert np.isin(jobs["run_s"], drawn["run_s"]).mean() > 0.999
    # Wall clock cannot tell the second 1:30 from the first: a wait from there may be read an hour longer, no other.
    off = jobs.loc[~jobs["wait_s"].isin(drawn["wait_s"]), "wait_s"]
    assert len(off) < 60 and (off - 3600).isin(drawn["wait_s"]).all()


def test_philly_machine_list(tmp_path: Path) -> None:
    generate("philly", tmp_path, 0, 10)
    with open_member(tmp_path, "cluster_machine_list", ("trace-data.tar.gz",)) as (stream, _):
        lines = stream.read().decode().splitlines()
    assert len(lines) == 553 and lines[1] == "m0,2, 12GB" and lines[-1] == "m551,8, 24GB"


REAL = {
    "philly": ("philly/philly_jobs.csv.gz", "philly-csv", None),
    "helios": ("helios/venus_gpu_jobs.csv.gz", "venus-csv", 172_800),
    "alibaba2020": ("alibaba2020/pai_gpu_tasks_sample.csv.gz", "pai-csv", 172_800),
}


@pytest.mark.parametrize("format", FORMATS)
def test_against_the_last_quarter_of_the_real_rows(
    format: str, real_traces: Path, clean: Callable, monkeypatch
) -> None:
    """The generator was calibrated on the first three quarters; real traces drift, so the factors are wide:
    run times within 3.5 (median), 2.5 (mean) and 2.5 (90th percentile), arrival rate within 2, burstiness (squared
    coefficient of variation of gaps, without the twenty longest: outages and holidays) within 3, share of each GPU
    count that 2 % of the jobs have within 2.2, mean GPUs within 1.6."""
    from rltune.config.load import load_trace
    from rltune.traces.fetch import obtain

    root = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("RLTUNE_REAL_TRACES", str(real_traces.resolve()))
    _, name, ceiling = REAL[format]
    config = load_trace(name, root)
    real = clean_trace(name, config, obtain(name, config, root / ".cache", root)).jobs
    real = real.iloc[int(0.75 * len(real)):]
    made = clean(format).jobs
    ours, theirs = describe(made, ceiling), describe(real, ceiling)
    factors = {"run median": 3.5, "run mean": 2.5, "run p90": 2.5, "rate": 2.0, "gap scv": 3.0, "gpus mean": 1.6}
    for what, factor in factors.items():
        assert theirs[what] / factor < ours[what] < theirs[what] * factor, (what, ours, theirs)
    shares = real["gpus"].value_counts(normalize=True)
    for gpus, share in shares[shares > 0.02].items():
        assert share / 2.2 < (made["gpus"] == gpus).mean() < share * 2.2, gpus


def describe(jobs: pd.DataFrame, ceiling: float | None) -> dict[str, float]:
    run = jobs["run_s"].clip(upper=ceiling)
    gaps = np.diff(jobs["submit_s"].to_numpy())
    usual = np.sort(gaps)[:-20]
    return {
        "run median": run.median(),
        "run mean": run.mean(),
        "run p90": run.quantile(0.9),
        "rate": 1 / gaps.mean(),
        "gap scv": usual.var() / usual.mean() ** 2,
        "gpus mean": jobs["gpus"].mean(),
    }
