"""Schedulers side by side: what the rows say each ran with, of agents made by hand."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ways import way_of
from rltune.config import Workspace
from rltune.config.comparisons import lineups
from rltune.pipeline import peers

SETTING = "    backfill: [easy]\n    placement: [best_fit]\n    features: [unsampled]\n    preset: [tiny, other]\n"
AXES = ["base", "policy", "backfill", "placement", "locality"]


def test_batches_say_what_each_scheduler_ran_with_and_the_base_policy_of_agents(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.change(project.run, "    preset: [tiny]\n", SETTING)
    project.change(project.run, "  tiny: {", "  tiny: &tiny {")
    project.run.write_text(project.run.read_text() + "  other: *tiny\n")
    workspace = Workspace.open("config/tiny.yaml")
    plain, chose = workspace.config.cells()
    way = way_of(replace(peers.scheduler_of(workspace, chose), policy="sjf", backfill="conservative", locality="any"))
    smallest = (-np.eye(8)[:, 1:2], np.zeros(1))
    made = {
        plain: TrainedPolicy(smallest, {"features": "unsampled"}),
        chose: TrainedPolicy(smallest, {"features": "unsampled", "way": asdict(way)}),
    }
    monkeypatch.setattr(peers, "ensure_policy", lambda workspace, cell, workload: made[cell])
    (lineup,) = lineups(workspace.config)
    frame = peers.batches(workspace, lineup)
    ran = frame.drop_duplicates(["who", "preset"]).set_index(["who", "preset"])[AXES].T.to_dict("list")
    assert ran["rltune", "tiny"] == ["fifo", "fifo", "easy", "best_fit", "strict"]
    assert ran["rltune", "other"] == ["fifo", "sjf", "conservative", "best_fit", "any"]
    assert ran["fifo", ""] == ["", "fifo", "easy", "best_fit", "strict"]
    assert set(frame["cell"]) == {"", plain.name, chose.name} and set(frame["estimate"]) == {"lognormal-1"}
