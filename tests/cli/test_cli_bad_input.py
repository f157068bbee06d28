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


@pytest.fixture
def simulate(cli: Cli) -> Callable[[], Any]:
    """Reads, cleans and fits the tiny trace, as the workflow does, and simulates some of it."""
    return lambda: cli(*SIMULATE)


def edit_jobs(project: Any, **columns: Any) -> None:
    """Replace columns of the raw jobs; a callable gets the old column."""
    jobs = pd.read_csv(project.jobs)
    for name, value in columns.items():
        jobs[name] = value(jobs[name]) if callable(value) else value
    jobs.to_csv(project.jobs, index=False)


def test_file_absent(project: Any, simulate: Cli) -> None:
    project.jobs.unlink()
    simulate().explains("config/traces/tiny.yaml, path", "'jobs.csv'", str(project.jobs), "no such file")


def test_environment_variable_unset(project: Any, simulate: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    project.change(project.trace, "jobs.csv", "${TINY_FOLDER}/jobs.csv")
    monkeypatch.delenv("TINY_FOLDER", raising=False)
    simulate().explains("config/traces/tiny.yaml, path", "TINY_FOLDER", "not set", "export TINY_FOLDER=")
    monkeypatch.setenv("TINY_FOLDER", str(project.root))
    assert simulate().status == 0


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_truncated_gzip(share: float, project: Any, simulate: Cli) -> None:
    whole = gzip.compress(project.jobs.read_bytes())
    (project.root / "jobs.csv.gz").write_bytes(whole[: int(share * len(whole))])
    project.change(project.trace, "jobs.csv", "jobs.csv.gz")
    simulate().explains("jobs.csv.gz", "truncated or damaged")


def test_a_row_cut_off(project: Any, simulate: Cli) -> None:
    text = project.jobs.read_text().rstrip()
    project.jobs.write_text(text[: text.rindex(",")])
    simulate().explains("jobs.csv", "truncated", "3 of 4 fields")


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_empty_file(content: str, project: Any, simulate: Cli) -> None:
    project.jobs.write_text(content)
    simulate().explains("jobs.csv", "empty")


def test_header_only(project: Any, simulate: Cli) -> None:
    project.jobs.write_text("id,submitted,ngpu,secs\n")
    simulate().explains("trace tiny", "no job left", "jobs.csv", "0 rows read")


def test_wrong_column_name(project: Any, simulate: Cli) -> None:
    project.change(project.trace, "secs", "seconds")
    simulate().explains("jobs.csv", "'seconds'", "mapped to run_s", "nearest: secs", "id, submitted, ngpu, secs")


def test_wrong_canonical_column(project: Any, simulate: Cli) -> None:
    project.change(project.trace, "gpus: ngpu", "gpu: ngpu")
    simulate().explains("columns.gpu", "did you mean 'gpus'", "submit_s")


def test_a_folder_in_place_of_the_file(project: Any, simulate: Cli) -> None:
    project.change(project.trace, "path: jobs.csv", "path: config")
    simulate().explains(str(project.root / "config"), "found a folder")


def test_all_jobs_larger_than_every_pool(project: Any, simulate: Cli) -> None:
    edit_jobs(project, ngpu=100)
    simulate().explains("tiny on small", "no job of the trace fits", "1200 larger than every pool")


def test_rows_that_are_left_out_are_counted(project: Any, simulate: Cli) -> None:
    wrong = {0: -5, 1: -5, 2: -5, 3: 0, 4: None}
    edit_jobs(
        project,
        secs=lambda c: [wrong.get(i, value) for i, value in enumerate(c)],
        ngpu=lambda c: c.where(c.index < 1190, 21),
    )
    outcome = simulate()
    for part in ("10 larger than every pool", "3 run time negative", "1 run time zero", "1 no run time"):
        assert outcome.status == 0 and part in outcome.out, outcome


def test_no_usable_job(project: Any, simulate: Cli) -> None:
    edit_jobs(project, secs=-1)
    simulate().explains("trace tiny", "no job left", "jobs.csv", "1200 run time negative")


def test_text_where_numbers_belong(project: Any, simulate: Cli) -> None:
    edit_jobs(project, ngpu="many")
    simulate().explains("jobs.csv", "gpus", "1200 of 1200 values are not a number", "'many'")


def test_cluster_without_nodes(project: Any, simulate: Cli) -> None:
    project.change(project.cluster, "nodes: 2, gpus: 8", "nodes: 0, gpus: 8")
    simulate().explains("config/clusters/small.yaml:6", "pools[0].groups[0].nodes", "found 0", "or equal to 1")


@pytest.mark.parametrize("command", [SIMULATE, ("config", "check", "config/tiny.yaml")])
def test_an_unknown_policy_stops_every_command(command: tuple[str, ...], project: Any, cli: Cli) -> None:
    project.change(project.run, "[fifo]", "[fifi]")
    cli(*command).explains("config/tiny.yaml:5", "experiments[0].policy[0]", "'fifi'", "'fifo'", "wfp3")


def test_inspect_a_good_file(project: Any, cli: Cli) -> None:
    outcome = cli("trace", "inspect", project.jobs)
    assert outcome.status == 0 and "CSV with a header" in outcome.out and "1,200" in outcome.out
    for name in ("id", "submitted", "ngpu", "secs"):
        assert re.search(rf"^\s*{name}\s", outcome.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nope.csv", None, "no such file"),
        ("noise.bin", bytes(range(128, 256)) * 40, "no rows in it"),
        ("empty.csv", b"", "empty"),
        ("half.csv.gz", gzip.compress(b"a,b\n" * 9000, mtime=0)[:60], "truncated or damaged"),
        ("half.json", b'[{"jobid": "a"', "cannot be read"),
        ("not.parquet", b"PAR1" + b"x" * 100, "cannot be read"),
        ("some.zip", b"PK\x03\x04" + b"x" * 100, "not a zip file"),
    ],
)
def test_inspect_a_bad_file(name: str, content: bytes | None, words: str, project: Any, cli: Cli) -> None:
    if content is not None:
        (project.root / name).write_bytes(content)
    cli("trace", "inspect", name).explains(name, words)


def test_inspect_a_folder(project: Any, cli: Cli) -> None:
    cli("trace", "inspect", "config").explains("config", "a folder")


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
