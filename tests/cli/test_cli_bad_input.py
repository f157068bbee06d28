"""What a user meets who gives wrong data: status 1, one paragraph that names file and field, no traceback."""

import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

SIMULATE = ("simulate", "--trace", "tiny", "--cluster", "small", "--config", "config/tiny.yaml", "--jobs", 32)
Cli = Callable[..., Any]


def jobs_with(**columns: Any) -> Callable[[Any], Any]:
    """The raw jobs with other values in these columns."""
    return lambda project: pd.read_csv(project.jobs).assign(**columns).to_csv(project.jobs, index=False)


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (lambda p: p.jobs.unlink(), ["config/traces/tiny.yaml, path", "'jobs.csv'", "no such file"]),
        (lambda p: p.change(p.trace, "path: jobs.csv", "path: config"), ["config", "found a folder"]),
        (jobs_with(ngpu=100), ["tiny on small", "no job of the trace fits", "1200 larger than every pool"]),
        (jobs_with(secs=-1), ["trace tiny", "no job left", "jobs.csv", "1200 run time negative"]),
    ],
)
def test_wrong_data_are_explained(spoil, parts, project, cli):
    """Reads, cleans and fits the tiny trace, as the workflow does, and simulates some of it."""
    spoil(project)
    cli(*SIMULATE).explains(*parts)


def test_rows_that_are_left_out_are_counted(project, cli):
    wrong = {0: -5, 1: -5, 2: -5, 3: 0, 4: None}
    jobs = pd.read_csv(project.jobs)
    seconds = [wrong.get(i, value) for i, value in enumerate(jobs["secs"])]
    jobs_with(secs=seconds, ngpu=jobs["ngpu"].where(jobs.index < 1190, 21))(project)
    outcome = cli(*SIMULATE)
    for part in ("10 larger than every pool", "3 run time negative", "1 run time zero", "1 no run time"):
        assert outcome.status == 0 and part in outcome.out, outcome


def test_inspect_a_good_file(project, cli):
    outcome = cli("trace", "inspect", project.jobs)
    assert outcome.status == 0 and "CSV with a header" in outcome.out and "1,200" in outcome.out
    for name in ("id", "submitted", "ngpu", "secs"):
        assert re.search(rf"^\s*{name}\s", outcome.out, re.MULTILINE)
    cli("trace", "inspect", "nope.csv").explains("nope.csv", "no such file")


SPEEDS = """\
model,gpus,gpu_type,consolidated_steps_per_s,unconsolidated_steps_per_s
a,1,V100,8,8
a,1,K80,2,
"""


def test_speeds_of_ones_own(project, cli):
    project.change(project.cluster, "gpu_types: ignore", "gpu_types: any\nspeeds: own.csv\nrecorded_on: V100")
    project.change(project.cluster, "gpu_type: P100, nodes: 2, gpus: 8", "gpu_type: V100, nodes: 2, gpus: 8")
    project.change(project.cluster, "gpu_type: P100", "gpu_type: K80")
    (project.root / "own.csv").write_text(SPEEDS)
    found = cli(*SIMULATE, "--backfill", "conservative", "--types", "least", "--gpu-price", "0.1")
    assert found.status == 0 and "types least, gpu_price 0.1" in found.out
    assert cli("config", "check", "config/tiny.yaml").status == 0
    (project.root / "own.csv").write_text(SPEEDS.replace("K80", "M40"))
    cli("config", "check", "config/tiny.yaml").explains("own.csv: no speed on GPU type K80; found m40, v100")
    (project.root / "own.csv").unlink()
    cli(*SIMULATE).explains("own.csv", "No such file")


def test_rules_for_gpu_types_need_speeds(project, cli):
    project.change(project.run, "experiments:", "gpu_types: [{trace: tiny, cluster: small}]\nexperiments:")
    cli("config", "check", "config/tiny.yaml").explains("config/clusters/small.yaml has no `speeds`")
