"""Which agents of a run are judged where: with agents made by hand, so that the answer is that of a heuristic."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune.agent.policy_file import TrainedPolicy, save_policy
from rltune.agent.ways import way_of
from rltune.config import Workspace
from rltune.evaluation.transfer import judged, shortest_windows
from rltune.pipeline.prepare import ensure_workload
from rltune.pipeline.transfer import SIGMAS, across_bases, across_traces, noisy, under_noise
from rltune.simulator.config import SchedulerConfig

RUN = """\
title: Two homes
experiments:
  - name: main
    workloads: [{trace: tiny, cluster: small}, {trace: tiny, cluster: wide}]
    policy: [fifo, sjf]
    placement: [best_fit]
    features: [unsampled]
    preset: [tiny]
  - name: by history
    workloads: [{trace: tiny, cluster: small}]
    policy: [fifo]
    placement: [best_fit]
    features: [unsampled]
    estimate: [history-rolling]
    preset: [tiny]
evaluation: {sequence_jobs: [32, 64], bootstrap: 200}
presets:
  tiny: {epochs: 2, trajectories: 2, sequence_jobs: 32, actor_iterations: 2, critic_iterations: 2,
         batch_decisions: 64, validate_every: 1, validation_windows: 1}
"""
SMALLEST = TrainedPolicy((-np.eye(8)[:, 1:2], np.zeros(1)), {"features": "unsampled"})
"""Smallest area first."""
RULES = {"backfill": "none", "placement": "best_fit", "locality": "strict", "estimate": "lognormal-1"}


@pytest.fixture
def workspace(project: Any) -> Workspace:
    shutil.copy(project.cluster, project.cluster.with_name("wide.yaml"))
    project.change(project.cluster.with_name("wide.yaml"), "nodes: 2, gpus: 2", "nodes: 6, gpus: 2")
    project.run.write_text(RUN)
    made = Workspace.open("config/tiny.yaml")
    for cell in made.config.cells():
        save_policy(made.policy(cell), SMALLEST)
    return made


def waits(frame: pd.DataFrame, **values: object) -> list[float]:
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame.sort_values("window")["wait_s"].tolist()


def simulated(workspace: Workspace, policy: str, cluster: str = "small") -> list[float]:
    """Waits of a policy on the test windows of 32 jobs."""
    work = ensure_workload(workspace, "tiny", cluster, "lognormal-1")
    length, first = shortest_windows(work.split, [32])
    rows = judged(work.jobs, work.layout, first, length, SchedulerConfig(policy), workspace.config.lookahead)
    return rows["wait_s"].tolist()


def test_base_policies_are_taken_from_the_results_or_simulated_on_the_same_windows(workspace: Workspace) -> None:
    cells = [c for c in workspace.config.cells() if c.estimate == "lognormal-1" and c.cluster == "small"]
    work = ensure_workload(workspace, "tiny", "small", "lognormal-1")
    _, first = shortest_windows(work.split, [32])
    known = [
        pd.DataFrame(
            {
                "cell": c.name,
                "role": role,
                "sequence_jobs": n,
                "window": range(len(first)),
                "first_job": first,
                "wait_s": 7.0,
            }
        )
        for c in cells
        for role in ("rltune", "base")
        for n in (32, 64)
    ]
    found = across_bases(workspace, cells, pd.concat(known), ["fifo", "saf"])
    assert set(found["policy"]) == {"fifo", "sjf", "saf"} and set(found["sequence_jobs"]) == {32}
    assert set(found.loc[found["simulated"], "policy"]) == {"saf"}
    assert (found[["trace", "cluster", *RULES]] == ["tiny", "small", *RULES.values()]).all(axis=None)
    assert waits(found, policy="fifo") == [7.0] * len(first)
    assert waits(found, policy="saf") == simulated(workspace, "saf") and sum(simulated(workspace, "saf")) > 0


def test_every_agent_is_judged_wherever_agents_of_the_same_rules_are(workspace: Workspace) -> None:
    said: list[str] = []
    found = across_traces(workspace, workspace.config.cells(), said.append)
    agents = found[found["role"] == "rltune"]
    pairs = agents[["cell", "cluster"]].drop_duplicates()
    by_history = agents["cell"].str.contains("history")
    assert len(pairs) == 4 * 2 + 1 and set(agents.loc[by_history, "cluster"]) == {"small"} and len(said) == 3
    usual = found[found["estimate"] == "lognormal-1"]
    for cluster in ("small", "wide"):
        saf = simulated(workspace, "saf", cluster)
        for cell in usual["cell"].unique():
            if cell:
                assert waits(usual, cell=cell, cluster=cluster) == pytest.approx(saf), "smallest area first anywhere"
        for policy in ("fifo", "sjf"):
            base = waits(usual, role="base", policy=policy, cluster=cluster)
            assert base == simulated(workspace, policy, cluster)
        assert len(waits(usual, role="random", cluster=cluster)) == len(saf)


def test_only_the_estimates_change_from_one_spread_to_the_next(workspace: Workspace) -> None:
    cells = [c for c in workspace.config.cells() if c.cluster == "small"]
    found = under_noise(workspace, cells)
    assert list(found["sigma"].unique()) == list(SIGMAS)
    assert not found["cell"].str.contains("history").any()
    fifo = waits(found, policy="fifo", backfill="none", cell="", sigma=0.0)
    for sigma in SIGMAS:
        assert waits(found, policy="fifo", backfill="none", cell="", sigma=sigma) == fifo
        saf = waits(found, policy="saf", backfill="none", sigma=sigma)
        for cell in cells[:2]:
            assert waits(found, cell=cell.name, sigma=sigma) == pytest.approx(saf)
    own = simulated(workspace, "saf")
    assert waits(found, policy="saf", backfill="none", sigma=1.0) == own, "the run's own estimates"
    assert sum(waits(found, policy="sjf", sigma=0.0)) < sum(waits(found, policy="sjf", sigma=2.0))


def test_an_agent_that_uses_calibrated_gets_beliefs_made_of_the_other_estimates(workspace: Workspace) -> None:
    cell = workspace.config.cells()[0]
    save_policy(
        workspace.policy(cell),
        TrainedPolicy(
            SMALLEST.weights,
            {"features": "unsampled", "way": asdict(way_of(SchedulerConfig("fifo"), uses_calibrated=True))},
        ),
    )
    found = under_noise(workspace, [cell])
    saf = {sigma: waits(found, policy="saf", backfill="none", sigma=sigma) for sigma in (0.0, 2.0)}
    assert waits(found, cell=cell.name, sigma=0.0) == pytest.approx(saf[0.0]), "exact estimates are calibrated"
    assert len(waits(found, cell=cell.name, sigma=2.0)) == len(saf[2.0])


def test_only_exact_and_lognormal_estimates_have_a_spread() -> None:
    assert [noisy(e) for e in ("exact", "lognormal-0.5", "requested", "history-rolling")] == [True, True, False, False]
