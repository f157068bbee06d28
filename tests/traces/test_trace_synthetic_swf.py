"""Synthetic SWF logs: the official layout, requests that mostly suffice, the means the paper prints of SDSC-SP2."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from rltune.config.trace import TraceConfig
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.statistics import workload_row
from rltune.traces.synthetic import PARTS, generate
from rltune.traces.synthetic.parameters import Fitted
from rltune.traces.synthetic.sdsc import ALLOCATED, JOBS_PER_MONTH, MEAN_RUN_S, MEAN_WAIT_S, PROCESSORS

ZONES = {"HPC2N": "Europe/Stockholm", "SDSC-SP2": "America/Los_Angeles"}
JOBS = 20_000


def cleaned(part: str, folder: Path) -> tuple[Path, CleanTrace]:
    """The file of a part, and its cleaned jobs."""
    (path,) = generate("swf", folder, 3, JOBS, part)
    config = TraceConfig(
        title=part,
        data="synthetic",
        format="swf",
        part=part,
        time_zone=ZONES[part],
        synthetic={"seed": 3, "jobs": JOBS},
    )
    return path, clean_trace(part, config, folder)


@pytest.fixture(scope="module", params=PARTS["swf"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, CleanTrace]:
    """A part, its file, and the cleaned jobs."""
    return request.param, *cleaned(request.param, tmp_path_factory.mktemp("swf"))


def test_eighteen_fields_under_a_header(log: tuple[str, Path, CleanTrace]) -> None:
    part, path, _ = log
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    header = [line for line in lines if line.startswith(";")]
    rows = [line.split() for line in lines[len(header) :]]
    assert {len(row) for row in rows} == {18} and len(rows) == JOBS
    keys = {line[1:].split(":")[0].strip() for line in header}
    assert {"Version", "UnixStartTime", "TimeZoneString", "MaxProcs", "MaxJobs"} <= keys
    table = np.array(rows, dtype=float)
    assert (np.diff(table[:, 1]) >= 0).all() and (table[:, 0] == np.arange(1, JOBS + 1)).all()
    assert table[:, 4].max() <= (PROCESSORS if part == "SDSC-SP2" else 240)


def test_cleaned_like_a_real_log(log: tuple[str, Path, CleanTrace]) -> None:
    part, _, clean = log
    assert 0.99 * JOBS < len(clean.jobs) < JOBS and clean.audit.left_out["cancelled before it started"] > 0
    assert set(clean.jobs["resource"]) == {"cpu"} and (clean.jobs["gpus"] == 0).all()
    statistics = Fitted.read("hpc2n").statistics
    overran = (clean.jobs["run_s"] > clean.jobs["requested_s"]).mean()
    assert overran == pytest.approx(statistics["ran longer than requested"], abs=0.05)
    if part == "HPC2N":
        ratio = (clean.jobs["requested_s"] / clean.jobs["run_s"]).median()
        assert ratio == pytest.approx(statistics["requested over run time, median"], rel=0.5)
    ranks = clean.jobs[["run_s", "requested_s", "wait_s"]].rank().corr()["run_s"]
    assert ranks["requested_s"] > 0.4 and ranks["wait_s"] > 0.3


def test_sdsc_sp2_has_the_means_of_the_paper(tmp_path: Path) -> None:
    """Table 2's row within 5 %: its month of 30 days."""
    _, clean = cleaned("SDSC-SP2", tmp_path)
    (row,) = workload_row(clean.jobs, clean.meta).to_dict("records")
    assert row["avg_run_s"] == pytest.approx(MEAN_RUN_S, rel=0.05)
    assert row["avg_wait_s"] == pytest.approx(MEAN_WAIT_S, rel=0.05)
    assert row["jobs_per_month"] == pytest.approx(JOBS_PER_MONTH, rel=0.05)
    assert row["alloc"] == pytest.approx(ALLOCATED, rel=0.05)
