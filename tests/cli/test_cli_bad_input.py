"""What a user meets who gives wrong data: status 1, one paragraph that names file and field, no traceback."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

SIMULATE = ("simulate", "--trace", "tiny", "--cluster", "small", "--config", "config/tiny.yaml", "--jobs", 32)
Cli = Callable[..., Any]


def half_a_gzip(project: Any) -> None:
    whole = gzip.compress(project.jobs.read_bytes())
    (project.root / "jobs.csv.gz").write_bytes(whole[: len(whole) // 2])
    project.change(project.trace, "jobs.csv", "jobs.csv.gz")


def jobs_with(**columns: Any) -> Callable[[Any], Any]:
    """The raw jobs with other values in these columns."""
    return lambda project: pd.read_csv(project.jobs).assign(**columns).to_csv(project.jobs, index=False)


def trace_with(old: str, new: str) -> Callable[[Any], Any]:
    """The trace's file with another text."""
    return lambda project: project.change(project.trace, old, new)


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (lambda p: p.jobs.unlink(), ["config/traces/tiny.yaml, path", "'jobs.csv'", "no such file"]),
        (half_a_gzip, ["jobs.csv.gz", "truncated or damaged"]),
        (
            lambda p: p.jobs.write_text(p.jobs.read_text().rpartition(",")[0]),
            ["jobs.csv", "truncated", "3 of 4 fields"],
        ),
        (lambda p: p.jobs.write_text("\n\n"), ["jobs.csv", "empty"]),
        (lambda p: p.jobs.write_text("id,submitted,ngpu,secs\n"), ["trace tiny", "no job left", "0 rows read"]),
        (trace_with("secs", "seconds"), ["'seconds'", "mapped to run_s", "nearest: secs", "id, submitted, ngpu, secs"]),
        (trace_with("gpus: ngpu", "gpu: ngpu"), ["columns.gpu", "did you mean 'gpus'", "submit_s"]),
        (trace_with("path: jobs.csv", "path: config"), ["config", "found a folder"]),
        (jobs_with(ngpu=100), ["tiny on small", "no job of the trace fits", "1200 larger than every pool"]),
        (jobs_with(secs=-1), ["trace tiny", "no job left", "jobs.csv", "1200 run time negative"]),
        (jobs_with(ngpu="many"), ["jobs.csv", "gpus", "1200 of 1200 values are not a number", "'many'"]),
        (
            lambda p: p.change(p.cluster, "nodes: 2, gpus: 8", "nodes: 0, gpus: 8"),
            ["config/clusters/small.yaml:6", "pools[0].groups[0].nodes", "found 0", "or equal to 1"],
        ),
        (
            lambda p: p.change(p.run, "[fifo]", "[fifi]"),
            ["config/tiny.yaml:5", "experiments[0].policy[0]", "'fifi'", "'fifo'", "wfp3"],
        ),
    ],
)
def test_wrong_data_are_explained(spoil: Callable[[Any], Any], parts: list[str], project: Any, cli: Cli) -> None:
    """Reads, cleans and fits the tiny trace, as the workflow does, and simulates some of it."""
    spoil(project)
    cli(*SIMULATE).explains(*parts)


def test_environment_variable_unset(project: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    project.change(project.trace, "jobs.csv", "${TINY_FOLDER}/jobs.csv")
    monkeypatch.delenv("TINY_FOLDER", raising=False)
    cli(*SIMULATE).explains("config/traces/tiny.yaml, path", "TINY_FOLDER", "not set", "export TINY_FOLDER=")
    monkeypatch.setenv("TINY_FOLDER", str(project.root))
    assert cli(*SIMULATE).status == 0


def test_rows_that_are_left_out_are_counted(project: Any, cli: Cli) -> None:
    wrong = {0: -5, 1: -5, 2: -5, 3: 0, 4: None}
    jobs = pd.read_csv(project.jobs)
    seconds = [wrong.get(i, value) for i, value in enumerate(jobs["secs"])]
    jobs_with(secs=seconds, ngpu=jobs["ngpu"].where(jobs.index < 1190, 21))(project)
    outcome = cli(*SIMULATE)
    for part in ("10 larger than every pool", "3 run time negative", "1 run time zero", "1 no run time"):
        assert outcome.status == 0 and part in outcome.out, outcome


def test_inspect_a_good_file(project: Any, cli: Cli) -> None:
    outcome = cli("trace", "inspect", project.jobs)
    assert outcome.status == 0 and "CSV with a header" in outcome.out and "1,200" in outcome.out
    for name in ("id", "submitted", "ngpu", "secs"):
        assert re.search(rf"^\s*{name}\s", outcome.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nope.csv", None, "no such file"),
        ("config", None, "a folder"),
        ("noise.bin", bytes(range(128, 256)) * 40, "no rows in it"),
        ("empty.csv", b"", "empty"),
        ("half.csv.gz", gzip.compress(b"a,b\n" * 9000, mtime=0)[:60], "truncated or damaged"),
        ("half.json", b'[{"jobid": "a"', "cannot be read"),
        ("some.zip", b"PK\x03\x04" + b"x" * 100, "not a zip file"),
    ],
)
def test_inspect_a_bad_file(name: str, content: bytes | None, words: str, project: Any, cli: Cli) -> None:
    if content is not None:
        (project.root / name).write_bytes(content)
    cli("trace", "inspect", name).explains(name, words)


TWO_TYPES = """\
title: Small
gpu_types: any
speeds: own.csv
recorded_on: V100
pools:
  - name: all
    groups:
      - {gpu_type: V100, nodes: 2, gpus: 8, cpus: 64, mem_gb: 512}
      - {gpu_type: K80, nodes: 2, gpus: 8, cpus: 64, mem_gb: 512}
"""
SPEEDS = """\
model,gpus,gpu_type,consolidated_steps_per_s,unconsolidated_steps_per_s
a,1,V100,8,8
a,1,K80,2,
"""


def test_speeds_of_ones_own(project: Any, cli: Cli) -> None:
    project.cluster.write_text(TWO_TYPES)
    (project.root / "own.csv").write_text(SPEEDS)
    found = cli(*SIMULATE, "--backfill", "conservative", "--types", "least", "--gpu-price", "0.1")
    assert found.status == 0 and "types least, gpu_price 0.1" in found.out
    cli(*SIMULATE, "--types", "least").explains("types least: goes with backfill conservative")
    cli(*SIMULATE, "--types", "fastest").explains("--types: found 'fastest'", "expected one of auto, any, fastest_free")
    (project.root / "own.csv").write_text(SPEEDS.replace("8,8", "8,-8"))
    cli(*SIMULATE).explains("own.csv: model 'a' on v100", "-8")
    (project.root / "own.csv").write_text(SPEEDS.replace("K80", "P100"))
    cli(*SIMULATE).explains("own.csv: no speed on GPU type K80; found p100, v100")
    (project.root / "own.csv").unlink()
    cli(*SIMULATE).explains("own.csv", "No such file")


def test_rules_for_gpu_types_need_speeds(project: Any, cli: Cli) -> None:
    project.change(project.run, "experiments:", "gpu_types: [{trace: tiny, cluster: small}]\nexperiments:")
    cli("config", "check", "config/tiny.yaml").explains("config/clusters/small.yaml has no `speeds`")
