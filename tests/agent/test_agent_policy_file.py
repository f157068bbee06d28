"""A policy is a file of numbers: it survives the disk, runs nothing, and is refused where it would be misread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltune.agent.policy_file import FORMAT, TrainedPolicy, load_policy, save_policy, shapes_of
from rltune.errors import DataError

RNG = np.random.default_rng(0)


def policy(features: str = "raw", width: int = 8, **facts: Any) -> TrainedPolicy:
    sizes = [(width, 3), (3,), (3, 1), (1,)]
    weights = tuple(RNG.normal(size=s).astype(np.float32) for s in sizes)
    return TrainedPolicy(weights, {"agent": "rltune", "features": features, "shapes": shapes_of(features), **facts})


def test_round_trip(tmp_path: Path) -> None:
    mine = policy()
    save_policy(tmp_path / "policy.npz", mine)
    back = load_policy(tmp_path / "policy.npz")
    obs = RNG.normal(size=(5, 8)).astype(np.float32)
    assert back.facts["shapes"] == {"actor": [256, 8], "critic": [256, 5]}
    assert (back.logits(obs) == mine.logits(obs)).all()


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"features": "smell"}, "features 'smell', expected one of raw"),
        ({"agent": "oracle"}, "agent 'oracle', expected one of rltune"),
        ({"shapes": {"actor": [128, 8], "critic": [128, 5]}}, r"trained on observations of .*128.*, expected .*256"),
        ({"features": "rlscheduler", "shapes": shapes_of("rlscheduler")}, "an actor of 8 columns, expected 6"),
    ],
)
def test_a_policy_for_something_else_is_refused(facts: dict, reason: str, tmp_path: Path) -> None:
    path, mine = tmp_path / "policy.npz", policy()
    save_policy(path, TrainedPolicy(mine.weights, mine.facts | facts))
    with pytest.raises(DataError, match=reason) as caught:
        load_policy(path)
    assert "train the cell again" in str(caught.value)


def _save(path: Path, facts: dict, **arrays: np.ndarray) -> None:
    with open(path, "wb") as file:
        np.savez(file, facts=np.array(json.dumps(facts)), **arrays)


def test_an_attention_is_kept_and_refused_where_it_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    sizes = [(10, 3), (3,), (3, 1), (1,), (8, 1), (1,), (8, 2), (2,)]
    weights = tuple(RNG.normal(size=s).astype(np.float32) for s in sizes)
    mine = TrainedPolicy(weights, {"features": "raw", "shapes": shapes_of("raw"), "attention": 2})
    save_policy(path, mine)
    queue = RNG.normal(size=(6, 8)).astype(np.float32)
    order = RNG.permutation(6)
    got = load_policy(path).logits(queue)
    assert got[order] == pytest.approx(mine.logits(queue[order]), abs=1e-5), "an order of the queue changes nothing"
    padded = np.concatenate([queue, np.full((4, 8), 9.0, np.float32)])
    shares = mine.probabilities(padded, np.arange(10) < 6)
    weight = np.exp(got.astype(float) - got.max())
    assert shares[:6] == pytest.approx(weight / weight.sum(), abs=1e-6) and not shares[6:].any()
    for facts, reason in (
        ({"attention": 3}, "an attention of shapes"),
        ({"attention": 0}, "weights of shapes"),
        ({"attention": -1}, "attention -1, expected a number of units"),
    ):
        save_policy(path, TrainedPolicy(weights, mine.facts | facts))
        with pytest.raises(DataError, match=reason):
            load_policy(path)


def test_other_versions_are_refused(tmp_path: Path) -> None:
    _save(tmp_path / "policy.npz", {"format": FORMAT - 1, "features": "raw"}, w0=np.zeros((8, 1)), w1=np.zeros(1))
    with pytest.raises(DataError, match=f"policy format {FORMAT - 1}, expected {FORMAT}"):
        load_policy(tmp_path / "policy.npz")


class Trap:
    """Tells when it is unpickled."""

    sprung: list[str] = []

    def __reduce__(self) -> tuple:
        return Trap.sprung.append, ("ran",)


def test_pickled_objects_are_refused_and_not_run(tmp_path: Path) -> None:
    trapped = np.array([Trap()], dtype=object)
    _save(tmp_path / "policy.npz", {"format": FORMAT, "features": "raw"}, w0=trapped)
    with pytest.raises(DataError, match="not a policy file"):
        load_policy(tmp_path / "policy.npz")
    assert Trap.sprung == []


@pytest.mark.parametrize("bad", [np.full((8, 1), np.nan), np.array([["x"] * 8]).T])
def test_weights_that_are_no_numbers_are_refused(bad: np.ndarray, tmp_path: Path) -> None:
    _save(tmp_path / "policy.npz", {"format": FORMAT, "features": "raw"}, w0=bad, w1=np.zeros(1))
    with pytest.raises(DataError, match="weights that are not numbers"):
        load_policy(tmp_path / "policy.npz")


def test_half_a_file_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    save_policy(path, policy())
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="not a policy file"):
        load_policy(path)
    with pytest.raises(DataError, match="train the cell first"):
        load_policy(tmp_path / "none.npz")


def test_a_padded_queue_is_answered_as_a_ragged_one() -> None:
    mine, jobs = policy(), 7
    queue, mask = RNG.normal(size=(256, 8)).astype(np.float32) * 50, np.zeros(256, np.int8)
    held = np.sort(RNG.choice(256, jobs, replace=False))
    mask[held] = 1
    queue[mask == 0, 0] = np.inf  # whatever stands there
    got = mine.probabilities(queue, mask)
    logits = mine.logits(queue[held]).astype(float)
    weight = np.exp(logits - logits.max())
    assert got[held] == pytest.approx(weight / weight.sum(), abs=1e-6)
    assert not got[mask == 0].any() and got.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="no job"):
        mine.probabilities(queue, np.zeros(256))


def test_permuting_the_queue_permutes_the_probabilities() -> None:
    mine, order = policy(), RNG.permutation(256)
    queue, mask = RNG.normal(size=(256, 8)).astype(np.float32), (RNG.random(256) < 0.5).astype(np.int8)
    np.testing.assert_allclose(
        mine.probabilities(queue[order], mask[order]), mine.probabilities(queue, mask)[order], rtol=1e-5, atol=1e-9
    )
