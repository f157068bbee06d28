"""What a user meets who gives wrong data: status 1, one paragraph that names file and field, no traceback."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from rltune.config import Workspace
from rltune.files import read_json
from rltune.traces.audit import Audit

FIT = ("stage", "fit", "tiny", "small", "--config", "config/tiny.yaml")
Cli = Callable[..., Any]


@pytest.fixture
def fit(cli: Cli) -> Callable[[], Any]:
    return lambda: cli(*FIT)


def edit_jobs(project: Any, **columns: Any) -> None:
    """Replace columns of the raw jobs; a callable gets the old column."""
    jobs = pd.read_csv(project.jobs)
    for name, value in columns.items():
        jobs[name] = value(jobs[name]) if callable(value) else value
    jobs.to_csv(project.jobs, index=False)


def test_good_input_is_fitted(project: Any, fit: Cli) -> None:
    outcome = fit()
    assert outcome.status == 0 and "[fit tiny to small] 1200 rows read, 1200 kept; left out: none" in outcome.out


def test_file_absent(project: Any, fit: Cli) -> None:
    project.jobs.unlink()
    fit().explains("config/traces/tiny.yaml, path", "'jobs.csv'", str(project.jobs), "no such file")
    assert not (project.root / "results" / "traces").exists()


def test_environment_variable_unset(project: Any, fit: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    project.change(project.trace, "jobs.csv", "${TINY_FOLDER}/jobs.csv")
    monkeypatch.delenv("TINY_FOLDER", raising=False)
    fit().explains("config/traces/tiny.yaml, path", "TINY_FOLDER", "not set", "export TINY_FOLDER=")
    monkeypatch.setenv("TINY_FOLDER", str(project.root))
    assert fit().status == 0


def test_the_shipped_csv_run_says_which_variable_it_needs(cli: Cli, project: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("RLTUNE_REAL_TRACES", raising=False)
    outcome = cli("stage", "fit", "philly-csv", "philly-192", "--config", "config/csv.yaml")
    outcome.explains("config/traces/philly-csv.yaml, path", "RLTUNE_REAL_TRACES", "not set")


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_truncated_gzip(share: float, project: Any, fit: Cli) -> None:
    whole = gzip.compress(project.jobs.read_bytes())
    (project.root / "jobs.csv.gz").write_bytes(whole[: int(share * len(whole))])
    project.change(project.trace, "jobs.csv", "jobs.csv.gz")
    fit().explains("jobs.csv.gz", "truncated or damaged")


def test_a_row_cut_off(project: Any, fit: Cli) -> None:
    text = project.jobs.read_text().rstrip()
    project.jobs.write_text(text[: text.rindex(",")])
    fit().explains("jobs.csv", "truncated", "3 of 4 fields")


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_empty_file(content: str, project: Any, fit: Cli) -> None:
    project.jobs.write_text(content)
    fit().explains("jobs.csv", "empty")


def test_header_only(project: Any, fit: Cli) -> None:
    project.jobs.write_text("id,submitted,ngpu,secs\n")
    fit().explains("trace tiny", "no job left", "jobs.csv", "0 rows read")


def test_wrong_column_name(project: Any, fit: Cli) -> None:
    project.change(project.trace, "secs", "seconds")
    fit().explains("jobs.csv", "'seconds'", "mapped to run_s", "nearest: secs", "id, submitted, ngpu, secs")


def test_wrong_canonical_column(project: Any, fit: Cli) -> None:
    project.change(project.trace, "gpus: ngpu", "gpu: ngpu")
    fit().explains("columns.gpu", "did you mean 'gpus'", "submit_s")


def test_a_folder_in_place_of_the_file(project: Any, fit: Cli) -> None:
    project.change(project.trace, "path: jobs.csv", "path: config")
    fit().explains(str(project.root / "config"), "found a folder")


def test_all_jobs_larger_than_every_pool(project: Any, fit: Cli) -> None:
    edit_jobs(project, ngpu=100)
    fit().explains("tiny on small", "no job of the trace fits", "1200 larger than every pool")
    assert not (project.root / "results" / "workloads").exists()


def test_some_jobs_larger_than_every_pool_are_counted(project: Any, fit: Cli) -> None:
    edit_jobs(project, ngpu=lambda column: column.where(column.index >= 5, 21))
    outcome = fit()
    assert outcome.status == 0 and "1195 kept; left out: 5 larger than every pool" in outcome.out


def test_negative_and_missing_run_times_are_counted(project: Any, fit: Cli, cli: Cli) -> None:
    wrong = {0: -5, 1: -5, 2: -5, 3: 0, 4: None}
    edit_jobs(project, secs=lambda c: [wrong.get(i, value) for i, value in enumerate(c)])
    assert fit().status == 0
    audit = Audit.from_dict(read_json(Workspace.open("config/tiny.yaml").clean_audit("tiny")))
    assert (audit.rows_read, audit.rows_kept) == (1200, 1195)
    assert audit.left_out == {"run time negative": 3, "run time zero": 1, "no run time": 1}


def test_no_usable_job(project: Any, fit: Cli) -> None:
    edit_jobs(project, secs=-1)
    fit().explains("trace tiny", "no job left", "jobs.csv", "1200 run time negative")


def test_text_where_numbers_belong(project: Any, fit: Cli) -> None:
    edit_jobs(project, ngpu="many")
    fit().explains("jobs.csv", "gpus", "1200 of 1200 values are not a number", "'many'")


def test_cluster_without_nodes(project: Any, cli: Cli, fit: Cli) -> None:
    project.change(project.cluster, "nodes: 2, gpus: 8", "nodes: 0, gpus: 8")
    fit().explains("config/clusters/small.yaml:7", "pools[0].groups[0].nodes", "found 0", "expected 1 or more")
    cli("run", "--config", "config/tiny.yaml").explains("config/clusters/small.yaml:7", "found 0")


@pytest.mark.parametrize("command", ["run", "config check", "stage fit tiny small"])
def test_unknown_policy_stops_every_command(command: str, project: Any, cli: Cli) -> None:
    project.change(project.run, "[fifo]", "[fifi]")
    outcome = cli(*command.split(), "--config", "config/tiny.yaml")
    outcome.explains("config/tiny.yaml:5", "experiments[0].policy[0]", "'fifi'", "'fifo'", "wfp3")
    assert not (project.root / "results").exists()


def test_unknown_trace_or_cluster_of_a_stage(project: Any, cli: Cli) -> None:
    rest = ("--config", "config/tiny.yaml")
    cli("stage", "fit", "tinny", "small", *rest).explains("'tinny'", "'tiny'", "config/traces/tinny.yaml")
    cli("stage", "fit", "tiny", "smal", *rest).explains("'smal'", "'small'", "config/clusters/smal.yaml")


def test_a_damaged_job_table_says_what_to_do(project: Any, cli: Cli, fit: Cli) -> None:
    assert fit().status == 0
    table = Workspace.open("config/tiny.yaml").jobs("tiny")
    table.write_bytes(table.read_bytes()[:200])
    cli("stage", "estimate", "tiny", "small", "exact", "--config", "config/tiny.yaml").explains(str(table), "parquet")


def test_a_fit_that_no_longer_matches_its_trace_is_noticed(project: Any, cli: Cli, fit: Cli) -> None:
    assert fit().status == 0
    workspace = Workspace.open("config/tiny.yaml")
    pools = workspace.fitted("tiny", "small")
    pd.DataFrame({"job_id": ["stranger"], "pool": [0]}).to_parquet(pools, index=False)
    outcome = cli("stage", "estimate", "tiny", "small", "exact", "--config", "config/tiny.yaml")
    outcome.explains(str(pools), "does not have", "run the stage again")


def test_inspect_a_good_file(project: Any, cli: Cli) -> None:
    outcome = cli("trace", "inspect", project.jobs)
    assert outcome.status == 0 and "CSV with a header" in outcome.out and "1,200" in outcome.out
    for name in ("id", "submitted", "ngpu", "secs"):
        assert re.search(rf"^\s*{name}\s", outcome.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nope.csv", None, "no such file"),
        ("noise.bin", bytes(range(128, 256)) * 40, "cannot be read"),
        ("empty.csv", b"", "empty"),
        ("half.csv.gz", gzip.compress(b"a,b\n" * 9000)[:60], "truncated or damaged"),
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
