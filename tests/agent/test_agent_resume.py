"""A training that is stopped goes on as if nothing had happened, or says why it begins anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from agent_fakes import workload

from rltune.agent.checkpoint import NAME, discard_checkpoint
from rltune.agent.exercise import Exercise
from rltune.agent.learners import Training, train
from rltune.config import Cell, LookaheadConfig, Preset
from rltune.traces.split import split_points

JOBS, LAYOUT = workload(900, seed=9)
CELL = Cell("t", "c", "saf", "bsld", "easy", "lookahead", "strict", "engineered", "exact", "quick", 1)
PRESET = Preset(
    epochs=6, trajectories=4, rollouts=2, sequence_jobs=40, contended=0.5, residual=1.0, actor_layers=[8],
    actor_lr=5e-3, lr_schedule="cosine", actor_iterations=5, critic_iterations=3, batch_decisions=64, average=0.9,
    target_kl=1.0, validate_every=2, validation_windows=2,
)  # fmt: skip


class Killed(BaseException):
    """What a signal does."""


def run(folder: Path | None, stop_after: int | None = None, preset: Preset = PRESET, cell: Cell = CELL) -> Training:
    def progress(row: dict) -> None:
        if row["epoch"] == stop_after:
            raise Killed

    return train(Exercise(cell, preset, LookaheadConfig(), JOBS, LAYOUT, split_points(900)), 1, progress, folder)


def timeless(history: pd.DataFrame) -> pd.DataFrame:
    return history[[c for c in history if "second" not in c and not c.endswith("_ms")]]


@pytest.fixture(scope="module")
def whole() -> Training:
    return run(None)


@pytest.mark.parametrize("stops", [(3,), (2, 5), (6,), (1,)])
def test_a_training_that_was_killed_ends_with_the_same_policy_and_history(
    stops: tuple[int, ...], whole: Training, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for stop in stops:
        with pytest.raises(Killed):
            run(tmp_path, stop)
    result = run(tmp_path)
    pd.testing.assert_frame_equal(timeless(result.history), timeless(whole.history), check_exact=True)
    assert result.policy.facts == whole.policy.facts
    assert all(np.array_equal(a, b) for a, b in zip(result.policy.weights, whole.policy.weights, strict=True))
    assert (result.history["milp_asked"] > 0).all()
    told = capsys.readouterr().out
    kept = (stops[-1] - 1) // 2 * 2  # the last validation whose state was written
    assert (f"going on after epoch {kept} of 6" in told) == (kept > 0)


@pytest.mark.parametrize(("change", "named"), [
    ({"cell": CELL.but(seed=2)}, "cell"), ({"preset": PRESET.model_copy(update={"clip": 0.1})}, "preset"),
])  # fmt: skip
def test_the_state_of_another_training_is_not_used(
    change: dict, named: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(Killed):
        run(tmp_path, 3)
    result = run(tmp_path, **change)
    assert f"of another {named}; training from the beginning" in capsys.readouterr().out
    fresh = run(None, **change)
    pd.testing.assert_frame_equal(timeless(result.history), timeless(fresh.history), check_exact=True)


def test_a_broken_state_is_not_used(tmp_path: Path, capsys: pytest.CaptureFixture, whole: Training) -> None:
    (tmp_path / NAME).write_bytes(b"half a file")
    result = run(tmp_path)
    assert "cannot be read" in capsys.readouterr().out
    assert result.policy.facts == whole.policy.facts
    discard_checkpoint(tmp_path)
    assert not (tmp_path / NAME).exists()


def test_logs_lie_beside_the_state_and_tell_every_epoch_once(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(tmp_path, 5)
    result = run(tmp_path)
    progress = pd.read_csv(tmp_path / "progress.csv")
    assert list(progress["epoch"]) == [1, 2, 3, 4, 5, 6] and list(progress.columns) == list(result.history.columns)
    (events,) = tmp_path.glob("*tfevents*")
    found = [tf.compat.v1.Event.FromString(r.numpy()) for r in tf.data.TFRecordDataset(str(events))]
    assert found[0].file_version == "brain.Event:2" and [e.step for e in found[1:]] == [1, 2, 3, 4, 5, 6]
    values = {v.tag: v.simple_value for v in found[-1].summary.value}
    assert values["return/reward"] == pytest.approx(result.history["reward"].iloc[-1], rel=1e-6)
    assert {"update/kl", "update/entropy", "rollout/choices_per_second", "return/validation"} <= set(values)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == [], "nothing half-written stays"


def test_a_search_that_was_killed_ends_with_the_same_weights(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    preset = Preset(agent="linear", epochs=7, trajectories=4, sequence_jobs=40, contended=0.5, validate_every=2,
                    validation_windows=2)  # fmt: skip
    whole = run(None, preset=preset)
    for stop in (3, 6):
        with pytest.raises(Killed):
            run(tmp_path, stop, preset)
    result = run(tmp_path, preset=preset)
    pd.testing.assert_frame_equal(timeless(result.history), timeless(whole.history), check_exact=True)
    assert result.policy.facts == whole.policy.facts
    assert all(np.array_equal(a, b) for a, b in zip(result.policy.weights, whole.policy.weights, strict=True))
    told = capsys.readouterr().out
    assert "going on after epoch 2 of 7" in told and "going on after epoch 4 of 7" in told


def test_it_stops_when_nothing_better_comes() -> None:
    still = PRESET.model_copy(update={"actor_lr": 1e-12, "patience": 2, "epochs": 50})
    history = run(None, preset=still).history
    assert len(history) == 4, "two validations, two epochs apart"
