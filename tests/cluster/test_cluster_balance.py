"""Offered load: arrivals thinned, or nodes scaled, to a given value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from rltune.cluster.fit import fit
from rltune.cluster.load import gpus_in_use, offered_load, within_load
from rltune.config import ClusterConfig, load_cluster, load_trace
from rltune.config.load import read_block
from rltune.traces.clean import clean_trace
from rltune.traces.fetch import obtain

Cli = Callable[..., Any]


@pytest.fixture
def jobs(project: Any) -> pd.DataFrame:
    trace = load_trace("tiny", project.root)
    return clean_trace("tiny", trace, obtain("tiny", trace, project.root / ".cache", project.root)).jobs


@pytest.fixture
def small(project: Any) -> ClusterConfig:
    return load_cluster("small", project.root)


def balanced(small: ClusterConfig, load: float) -> ClusterConfig:
    return ClusterConfig.model_validate({**small.model_dump(), "balance": load})


@pytest.mark.parametrize("load", [3.0, 6.0])
def test_thinning_reaches_the_load_from_below(load: float, jobs: pd.DataFrame, small: ClusterConfig) -> None:
    plain, _ = fit(jobs, small)
    assert offered_load(plain, 20) > 6.0
    thin, audit = fit(jobs, balanced(small, load))
    assert 0.9 * load < offered_load(thin, 20) <= load
    assert audit.left_out == {f"thinned to an offered load of {load:g}": len(plain) - len(thin)}
    assert thin["submit_s"].is_monotonic_increasing and set(thin["job_id"]) < set(plain["job_id"])


def test_a_lower_load_keeps_a_part_of_the_jobs_of_a_higher_one(jobs: pd.DataFrame, small: ClusterConfig) -> None:
    few, more = (set(fit(jobs, balanced(small, load))[0]["job_id"]) for load in (0.3, 0.6))
    assert few < more


def test_thinning_goes_by_the_job_and_not_by_its_row(jobs: pd.DataFrame) -> None:
    mixed = jobs.sample(frac=1, random_state=1)
    kept = {
        name: set(frame.loc[within_load(frame, 20, 0.5, len(frame)), "job_id"])
        for name, frame in {"in order": jobs, "mixed": mixed}.items()
    }
    assert kept["in order"] == kept["mixed"]


def test_nothing_is_added_where_the_load_is_lower(jobs: pd.DataFrame, small: ClusterConfig) -> None:
    plain, _ = fit(jobs, small)
    same, audit = fit(jobs, balanced(small, 1000.0))
    assert same.equals(plain) and not audit.left_out
    (note,) = [remark for remark in audit.noted if "offered load" in remark]
    assert "not above 1000: none thinned" in note and audit.noted[note] == len(plain)


def test_balance_prints_a_cluster_that_reaches_the_load(project: Any, jobs: pd.DataFrame, cli: Cli) -> None:
    outcome = cli("cluster", "balance", "small", "--trace", "tiny", "--load", "0.25")
    assert outcome.status == 0, outcome
    path = project.cluster.with_name("scaled.yaml")
    path.write_text(outcome.out)
    cluster = read_block(path, ClusterConfig)
    assert offered_load(fit(jobs, cluster)[0], cluster.gpus) == pytest.approx(0.25, rel=0.1)
    assert outcome.out.startswith("# offered load of tiny: ")
    assert len(cluster.pools[0].groups) == 2 and cluster.balance is None
    assert "warning" not in outcome.out and "dropped" not in outcome.out


def test_a_load_that_cannot_be_reached_is_named(project: Any, cli: Cli) -> None:
    outcome = cli("cluster", "balance", "small", "--trace", "tiny", "--load", "500")
    assert outcome.status == 0 and "# warning: a load of 500 cannot be reached" in outcome.out
    title, after = yaml.safe_load(outcome.out)["title"], outcome.out.split(" on small, ")[1].split()[0]
    assert title.endswith(f"scaled to a load of {after}") and after != "500"


def test_a_balance_that_is_dropped_is_named(project: Any, cli: Cli) -> None:
    (project.cluster.parent / "thin.yaml").write_text(project.cluster.read_text() + "balance: 5\n")
    outcome = cli("cluster", "balance", "thin", "--trace", "tiny", "--load", "1")
    assert outcome.status == 0 and "# the balance of thin" in outcome.out
    assert "balance" not in yaml.safe_load(outcome.out)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("smal", "--trace", "tiny"), ["'smal'", "'small'"]),
        (("small", "--trace", "tinny"), ["'tinny'", "'tiny'"]),
        (("small", "--trace", "tiny", "--load", "0"), ["--load", "found 0", "above 0"]),
        (("small", "--trace", "tiny", "--load", "0.0001"), ["--load: found 0.0001", "more than 100 times its 20 GPUs"]),
    ],
)
def test_balance_explains_what_is_wrong(arguments: tuple[str, ...], parts: list[str], project: Any, cli: Cli) -> None:
    cli("cluster", "balance", *arguments).explains(*parts)


def test_gpus_that_a_log_used_at_once() -> None:
    """Two jobs of 4 and 2 GPUs side by side for two of four hours; without waits, the mean up to the last possible end."""
    jobs = pd.DataFrame({"submit_s": [0.0, 0.0, 0.0], "gpus": [4, 2, 1], "run_s": [7200.0, 7200.0, 7200.0]})
    assert gpus_in_use(jobs.assign(wait_s=[0.0, 0.0, 7200.0])) == 6
    assert gpus_in_use(jobs.assign(wait_s=[0.0, 7200.0, 7200.0])) == 4
    assert gpus_in_use(jobs.assign(wait_s=np.nan)) == 7
    spike = pd.DataFrame(
        {"submit_s": [0.0, 5000.0], "gpus": [4, 400], "run_s": [100_000.0, 10.0], "wait_s": [0.0, 0.0]}
    )
    assert gpus_in_use(spike) == 4, "a moment's use may be an error of the log"
