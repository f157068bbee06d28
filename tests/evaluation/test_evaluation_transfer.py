"""Agents away from where they were trained: with hand-made agents, so that the answer is that of a heuristic."""

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from agent_fakes import SMALLEST

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.scheduler_choice import AgentScheduler
from rltune.cluster.workload import Workload, build_workload
from rltune.config import Cell
from rltune.config.context import Run
from rltune.environment.features import width_of
from rltune.errors import ConfigError
from rltune.evaluation.compare import where
from rltune.evaluation.contenders import contender_of, simulate_windows
from rltune.evaluation.studies.transfer import (
    KEPT,
    MOST_WINDOWS,
    SIGMAS,
    across_bases,
    across_traces,
    shortest_windows,
    under_noise,
    with_spread,
)
from rltune.simulator.config import SchedulerConfig
from rltune.traces.split import split_points

RUN = """\
title: Two homes
experiments:
  - workloads: [{trace: tiny, cluster: small}, {trace: tiny, cluster: wide}]
    policy: [fifo, sjf]
    placement: [best_fit]
    features: [unsampled]
    preset: [tiny]
  - workloads: [{trace: tiny, cluster: small}]
    policy: [fifo]
    placement: [best_fit]
    features: [unsampled]
    estimate: [history-rolling]
    preset: [tiny]
evaluation: {sequence_jobs: [32, 64], bootstrap: 200}
"""
RULES = {"backfill": "none", "placement": "best_fit", "locality": "strict", "estimate": "lognormal-1"}
Workloads = dict[tuple[str, str, str], Workload]


@pytest.fixture
def run(project: Any) -> Run:
    shutil.copy(project.cluster, project.cluster.with_name("wide.yaml"))
    project.change(project.cluster.with_name("wide.yaml"), "nodes: 2, gpus: 2", "nodes: 6, gpus: 2")
    project.run.write_text(RUN + project.run.read_text()[project.run.read_text().index("presets:") :])
    return Run.open("config/tiny.yaml")


@pytest.fixture
def workloads(run: Run) -> Workloads:
    keys = {(c.trace, c.cluster, c.estimate) for c in run.config.cells()}
    return {key: build_workload(run, *key) for key in keys}


@pytest.fixture
def agents(run: Run) -> dict[Cell, TrainedPolicy]:
    return dict.fromkeys(run.config.cells(), SMALLEST)


def waits(frame: pd.DataFrame, **values: object) -> list[float]:
    return where(frame, **values).sort_values("window")["wait_s"].tolist()


def simulated(run: Run, workloads: Workloads, policy: str, cluster: str = "small") -> list[float]:
    """Waits of a policy on the test windows of 32 jobs."""
    work = workloads["tiny", cluster, "lognormal-1"]
    length, first = shortest_windows(work.split, [32])
    return simulate_windows(work, contender_of(run.config, run.config.cells()[0], policy=policy), first, length)[0][
        "wait_s"
    ].tolist()


def test_windows_are_the_shortest_of_the_test_part_evenly_spread(monkeypatch):
    split = split_points(1000)
    length, first = shortest_windows(split, [50, 10])
    assert length == 10 and list(first) == list(range(900, 1000, 10))
    assert len(shortest_windows(split_points(10_000), [10])[1]) == MOST_WINDOWS
    monkeypatch.setattr("rltune.evaluation.studies.transfer.MOST_WINDOWS", 3)
    assert list(shortest_windows(split, [10])[1]) == [900, 940, 990]
    with pytest.raises(ConfigError, match="does not fit"):
        shortest_windows(split, [101])


def test_agents_run_with_every_base_policy_and_what_the_results_have_is_taken_from_there(run, workloads):
    cells = [c for c in run.config.cells() if c.estimate == "lognormal-1" and c.cluster == "small"]
    work = workloads["tiny", "small", "lognormal-1"]
    length, first = shortest_windows(work.split, [32])
    rows = pd.DataFrame({"window": range(len(first)), "first_job": first})
    known = pd.concat(
        rows.assign(cell=c.name, role=role, sequence_jobs=n, wait_s=7.0 if role == "base" else 5.0)
        for c in cells
        for role in ("rltune", "base")
        for n in (32, 64)
    )
    ranks = _drawn("rich")
    trained = {c: replace(ranks, facts=ranks.facts | {"scheduler": _left_with(run, c)}) for c in cells}
    found = across_bases(run.config, cells, known, workloads, trained, ["fifo", "saf"])
    assert set(found["policy"]) == {"fifo", "sjf", "saf"} and set(found["sequence_jobs"]) == {32}
    assert (found[["trace", "cluster", *RULES]] == ["tiny", "small", *RULES.values()]).all(axis=None)
    base, agents = where(found, role="base", cell=""), where(found, role="rltune")
    assert waits(base, policy="fifo") == [7.0] * len(first) and set(KEPT) < set(found)
    saf = simulated(run, workloads, "saf")
    assert waits(base, policy="saf") == saf and sum(saf) > 0
    for cell in cells:
        assert waits(agents, cell=cell.name, policy=cell.policy) == [5.0] * len(first)
        with_saf, at_home = (contender_of(run.config, cell, ranks, policy=policy) for policy in ("saf", cell.policy))
        expected = simulate_windows(work, with_saf, first, length)[0]["wait_s"].tolist()
        assert waits(agents, cell=cell.name, policy="saf") == expected
        assert expected != simulate_windows(work, at_home, first, length)[0]["wait_s"].tolist()
    chose = {"tiny": run.config.preset("tiny").model_copy(update={"tunes": "reservations"})}
    found = across_bases(run.config.model_copy(update={"presets": chose}), cells, known, workloads, trained, ["saf"])
    assert set(found.loc[found["role"] == "rltune", "wait_s"]) == {5.0}, "one that chose its policy keeps it"


def _left_with(run: Run, cell: Cell) -> dict[str, Any]:
    """What training writes into the policy file of an agent that chooses nothing."""
    return AgentScheduler(SchedulerConfig.of(cell, run.config.simulation)).facts()


@pytest.mark.parametrize(
    ("features", "bias", "same"), [("engineered", 0, True), ("raw", 0, True), ("rich", 0, False), ("raw", 0.1, False)]
)
def test_features_of_the_base_policy_and_a_bias_to_it_change_an_agents_schedules(run, workloads, features, bias, same):
    """In windows shorter than what an agent sees of a queue. Weights are drawn, so that it ranks as no policy does."""
    agent = _drawn(features)
    agent.facts["base_policy_bias"] = bias
    work, cell = workloads["tiny", "small", "lognormal-1"], run.config.cells()[0]
    length, first = shortest_windows(work.split, [32])
    every = [contender_of(run.config, cell, agent, policy=policy) for policy in ("fifo", "sjf", "f1", "wfp3")]
    starts = [simulate_windows(work, one, first, length)[1].start for one in every]
    assert all(np.array_equal(start, starts[0]) for start in starts[1:]) == same
    assert simulated(run, workloads, "fifo") != simulate_windows(work, every[0], first, length)[0]["wait_s"].tolist()


def _drawn(features: str) -> TrainedPolicy:
    """An agent of one layer whose weights are drawn."""
    weights = np.random.default_rng(3).normal(size=(width_of(features), 1))
    return TrainedPolicy((weights, np.zeros(1)), {"agent": "rltune", "features": features})


def test_every_agent_is_evaluated_wherever_agents_of_the_same_rules_are(run, workloads, agents):
    said: list[str] = []
    found = across_traces(run.config, run.config.cells(), workloads, agents, said.append)
    by_agents = found[found["role"] == "rltune"]
    by_history = by_agents["cell"].str.contains("history")
    assert len(by_agents[["cell", "cluster"]].drop_duplicates()) == 4 * 2 + 1 and len(said) == 3
    assert set(by_agents.loc[by_history, "cluster"]) == {"small"}
    usual = found[found["estimate"] == "lognormal-1"]
    for cluster in ("small", "wide"):
        saf = simulated(run, workloads, "saf", cluster)
        for cell in filter(None, usual["cell"].unique()):
            assert waits(usual, cell=cell, cluster=cluster) == pytest.approx(saf), "smallest area first anywhere"
        for policy in ("fifo", "sjf"):
            base = waits(usual, role="base", policy=policy, cluster=cluster)
            assert base == simulated(run, workloads, policy, cluster)
        assert len(waits(usual, role="random", cluster=cluster)) == len(saf)


def test_only_the_estimates_change_from_one_spread_to_the_next(run, workloads, agents):
    cells = [c for c in run.config.cells() if c.cluster == "small"]
    agents[cells[1]] = replace(
        SMALLEST, facts=SMALLEST.facts | {"scheduler": AgentScheduler(SchedulerConfig("fifo"), True).facts()}
    )
    seed = run.config.evaluation.seed
    calibrated = {key: with_spread(work, 1.0, seed, True) if "1" in key[2] else work for key, work in workloads.items()}
    found = under_noise(run.config, cells, calibrated, agents)
    assert list(found["sigma"].unique()) == list(SIGMAS)
    assert not found["cell"].str.contains("history").any()
    fifo = waits(found, policy="fifo", backfill="none", cell="", sigma=0.0)
    for sigma in SIGMAS:
        assert waits(found, policy="fifo", backfill="none", cell="", sigma=sigma) == fifo
        saf = waits(found, policy="saf", backfill="none", sigma=sigma)
        assert waits(found, cell=cells[0].name, sigma=sigma) == pytest.approx(saf)
    assert waits(found, policy="saf", backfill="none", sigma=1.0) == simulated(run, workloads, "saf"), "the run's own"
    assert sum(waits(found, policy="sjf", sigma=0.0)) < sum(waits(found, policy="sjf", sigma=2.0))
    exact, blurred = (waits(found, cell=cells[1].name, sigma=sigma) for sigma in (0.0, 2.0))
    assert exact == pytest.approx(waits(found, policy="saf", backfill="none", sigma=0.0)), "exact ones are calibrated"
    assert len(blurred) == len(exact)
