"""Synthetic traces: reproducible bytes, the distributions they were fitted to, and the cleaning of a real one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.fetch import sha256
from rltune.traces.readers.archive import open_member
from rltune.traces.synthetic import PARTS, WRITERS, generate
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.parameters import Parameters, load
from rltune.traces.synthetic.sdsc import sdsc_sp2

FORMATS = ("philly", "helios", "alibaba2020")
LOGS = [(f, None) for f in FORMATS] + [("swf", part) for part in PARTS["swf"]]
NAMES = (*FORMATS, "hpc2n", "sdsc-sp2")
JOBS = 40_000


def parameters(name: str) -> Parameters:
    return sdsc_sp2() if name == "sdsc-sp2" else load(name)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CleanTrace]:
    """The default synthetic trace of a format, cleaned (once per module)."""
    made: dict[str, CleanTrace] = {}

    def get(format: str) -> CleanTrace:
        if format not in made:
            folder = tmp_path_factory.mktemp(format)
            part = {"part": "Venus"} if format == "helios" else {}
            config = TraceConfig(
                title="T",
                data="synthetic",
                format=format,
                time_zone=load(format).time_zone,
                synthetic={"seed": 2025, "jobs": JOBS},
                **part,
            )
            generate(format, folder, 2025, JOBS)
            made[format] = clean_trace(format, config, folder)
        return made[format]

    return get


@pytest.mark.parametrize(("format", "part"), LOGS)
def test_same_seed_same_bytes_other_seed_other_bytes(format: str, part: str | None, tmp_path: Path) -> None:
    sums = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        paths = generate(format, tmp_path / name, seed, 300, part)
        sums.append([sha256(p) for p in paths if "machine" not in p.name])
        time.sleep(1.1 if name == "a" else 0)  # a clock in a header would show
    assert sums[0] == sums[1]
    assert not set(sums[0]) & set(sums[2])


@pytest.mark.parametrize(("format", "part"), LOGS)
@pytest.mark.parametrize("jobs", [1, 2, 30])
def test_any_size_works(format: str, part: str | None, jobs: int, tmp_path: Path) -> None:
    assert all(p.is_file() for p in generate(format, tmp_path, 0, jobs, part))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("jobs", [1, 2, 30, 1000])
def test_as_many_jobs_as_asked_for_in_order(name: str, jobs: int) -> None:
    drawn = draw_jobs(parameters(name), jobs, streams(0, 0))
    assert len(drawn) == jobs and drawn["submit_unix_s"].is_monotonic_increasing
    assert drawn["gpus"].min() >= 1 and drawn["run_s"].min() >= 1 and drawn["wait_s"].min() >= 0


def test_unknown_format_or_part(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no generator for format 'csv'"):
        generate("csv", tmp_path, 0, 10)
    for part in (None, "KTH"):
        with pytest.raises(ConfigError, match="expected one of HPC2N, SDSC-SP2"):
            generate("swf", tmp_path, 0, 10, part)
    assert set(WRITERS) == {*FORMATS, "swf", "sacct"}


@pytest.mark.parametrize("name", NAMES)
def test_marginals_hold_for_every_seed(name: str) -> None:
    """Shares of GPU counts and quantiles of run times are the parameters'; rates are within 2 %."""
    target = parameters(name)
    shares = pd.Series(target.marginals.gpu_shares) / sum(target.marginals.gpu_shares.values())
    for seed in (11, 12):
        jobs = draw_jobs(target, JOBS, streams(seed, 0))
        got = jobs["gpus"].value_counts(normalize=True).reindex(shares.index, fill_value=0)
        assert (got - shares).abs().max() < 1e-3
        for group in target.marginals.runs:
            run = jobs.loc[jobs["gpus"].between(group.low, group.high), "run_s"]
            if len(run) < 1000:
                continue
            for level, expected in ((0.5, group.quantiles_s[7]), (0.9, group.quantiles_s[11])):
                assert run.quantile(level * (1 - group.share_over_48h)) == pytest.approx(expected, rel=0.05, abs=1)
        span = jobs["submit_unix_s"].iloc[-1] - jobs["submit_unix_s"].iloc[0]
        assert JOBS / span == pytest.approx(target.marginals.rate_per_s, rel=0.02)
        assert jobs["wait_s"].mean() == pytest.approx(target.waits.mean_s, rel=0.1)  # cut off at 30 days
        if target.vcs:
            vcs = pd.Series(target.vcs) / sum(target.vcs.values())
            assert (jobs["vc"].value_counts(normalize=True).reindex(vcs.index, fill_value=0) - vcs).abs().max() < 0.05
        if target.vc_gpus:
            assert (jobs["gpus"] <= jobs["vc"].map(target.vc_gpus)).all()


@pytest.mark.parametrize("name", NAMES)
def test_history_predicts_something(name: str) -> None:
    """A user's previous run time explains part of the next; in a shuffled column it would explain nothing."""
    jobs = draw_jobs(parameters(name), JOBS, streams(5, 0))
    log_run = np.log(jobs["run_s"])
    assert log_run.corr(log_run.groupby(jobs["user"]).shift()) > 0.2


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
    drawn = draw_jobs(load("philly"), JOBS, streams(2025, 2017))
    jobs = clean("philly").jobs
    assert clean("philly").audit.noted["submitted_time within the hour repeated in autumn"] > 0
    longest = drawn["run_s"].max()
    assert jobs["run_s"].max() <= longest and jobs["wait_s"].max() <= drawn["wait_s"].max()
    assert np.isin(jobs["run_s"], drawn["run_s"]).mean() > 0.999
    # Wall clock cannot tell the second 1:30 from the first: a wait from or to there may be read an hour off, no other.
    off = jobs.loc[~jobs["wait_s"].isin(drawn["wait_s"]), "wait_s"]
    assert len(off) < 200 and ((off - 3600).isin(drawn["wait_s"]) | (off + 3600).isin(drawn["wait_s"])).all()


def test_philly_machine_list(tmp_path: Path) -> None:
    generate("philly", tmp_path, 0, 10)
    with open_member(tmp_path, "cluster_machine_list", ("trace-data.tar.gz",)) as (stream, _):
        lines = stream.read().decode().splitlines()
    assert len(lines) == 553 and lines[1] == "m0,2, 12GB" and lines[-1] == "m551,8, 24GB"
