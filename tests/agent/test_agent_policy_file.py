"""A policy is a file of numbers: it survives the disk, runs nothing, and is refused where it would be misread."""

import json

import numpy as np
import pytest

from rltune.agent.policy_file import FORMAT, TrainedPolicy, load_policy, save_policy, shapes_of
from rltune.errors import DataError

RNG = np.random.default_rng(0)


def policy() -> TrainedPolicy:
    weights = tuple(RNG.normal(size=s).astype(np.float32) for s in [(8, 3), (3,), (3, 1), (1,)])
    return TrainedPolicy(weights, {"agent": "rltune", "features": "raw", "shapes": shapes_of("raw")})


def test_round_trip(tmp_path):
    saved = policy()
    save_policy(tmp_path / "policy.npz", saved)
    back = load_policy(tmp_path / "policy.npz")
    obs = RNG.normal(size=(5, 8)).astype(np.float32)
    assert back.facts["shapes"] == {"actor": [256, 8], "critic": [256, 5]}
    assert (back.logits(obs) == saved.logits(obs)).all()


class Trap:
    """Notes when it is unpickled."""

    sprung: list[str] = []

    def __reduce__(self) -> tuple:
        return Trap.sprung.append, ("ran",)


@pytest.mark.parametrize(
    ("facts", "arrays", "reason"),
    [
        ({"format": FORMAT - 1}, [], f"format {FORMAT - 1}, expected {FORMAT}"),
        ({"features": "smell"}, [], "features 'smell', expected one of raw"),
        ({"agent": "oracle"}, [], "agent 'oracle', expected one of rltune"),
        ({"shapes": {"actor": [128, 8], "critic": [128, 5]}}, [], "trained on observations of .*128.*, expected .*256"),
        ({"features": "rlscheduler", "shapes": shapes_of("rlscheduler")}, [], "an actor of 8 columns, expected 6"),
        ({"base_policy_bias": -1}, [], "base_policy_bias -1, expected a number from 0"),
        ({"scheduler": {"policy": "oracle"}}, [], "scheduler .*oracle"),
        ({}, [np.array([Trap()], dtype=object)], "not a policy file"),
        ({}, [np.full((8, 1), np.nan), np.zeros(1)], "weights that are not numbers"),
        ({}, [np.array([["x"] * 8]).T, np.zeros(1)], "weights that are not numbers"),
        ({}, [np.zeros((8, 2)), np.zeros(2)], "expected consecutive layers"),
        ({}, [np.zeros((8, 2)), np.zeros(2), np.zeros((3, 1)), np.zeros(1)], "expected consecutive layers"),
    ],
)
def test_what_cannot_be_used_is_refused_and_not_run(facts, arrays, reason, tmp_path):
    usable = policy()
    with open(tmp_path / "policy.npz", "wb") as file:
        text = json.dumps({"format": FORMAT, **usable.facts, **facts})
        np.savez(file, facts=np.array(text), **{f"w{i}": array for i, array in enumerate(arrays or usable.weights)})
    with pytest.raises(DataError, match=reason) as caught:
        load_policy(tmp_path / "policy.npz")
    assert "train the cell again" in str(caught.value) and Trap.sprung == []


def test_half_a_file_and_no_file(tmp_path):
    path = tmp_path / "policy.npz"
    save_policy(path, policy())
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="not a policy file"):
        load_policy(path)
    with pytest.raises(DataError, match="train the cell first"):
        load_policy(tmp_path / "none.npz")
