"""A training that is stopped goes on as if nothing had happened, or says why it begins anew."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from agent_fakes import workload

from rltune.agent.checkpoint import NAME, discard_checkpoint
from rltune.agent.exercise import Exercise
from rltune.agent.learners import Training, train
from rltune.agent.logs import TAGS
from rltune.cluster.fit import Jobs
from rltune.config import Cell, LookaheadConfig, Preset, SimulationConfig
from rltune.traces.split import split_points

JOBS, LAYOUT = workload(900, seed=9)
CELL = Cell("t", "c", "saf", "bsld", "easy", "lookahead", "strict", "engineered", "exact", "quick", 1)
PRESET = Preset(
    epochs=6,
    trajectories=4,
    rollouts=2,
    sequence_jobs=40,
    contended=0.5,
    base_policy_bias=1.0,
    actor_layers=[8],
    actor_lr=5e-3,
    lr_schedule="cosine",
    actor_iterations=5,
    critic_iterations=3,
    batch_decisions=64,
    average=0.9,
    target_kl=1.0,
    validate_every=2,
    validation_windows=2,
)
CROWDED, _ = workload(900, seed=16, load=8.0)
CHOOSING = Preset(
    **PRESET.model_dump()
    | dict(
        rollouts=3,
        sequence_jobs=20,
        base_policy_bias=0.3,
        actor_lr=3e-2,
        actor_iterations=10,
        average=0.5,
        validation_windows=4,
        chooses="reservations",
        choice_windows=12,
        attention=4,
        credit_horizon_s=3600.0,
        margin=0.01,
    )
)


class Killed(BaseException):
    """What a signal does."""


def run(
    folder: Path | None,
    stop_after: int | None = None,
    preset: Preset = PRESET,
    cell: Cell = CELL,
    jobs: Jobs = JOBS,
    lookahead: LookaheadConfig = LookaheadConfig(),
    **more: Any,
) -> Training:
    def progress(row: dict) -> None:
        if row["epoch"] == stop_after:
            raise Killed

    exercise = Exercise(cell, preset, lookahead, jobs, LAYOUT, split_points(900), folder=folder, **more)
    return train(exercise, 1, progress, folder)


def truly(jobs: Jobs) -> Jobs:
    """The jobs with estimates that do not err."""
    told = jobs._replace(row=jobs.row.copy())
    told.row["estimate_s"] = jobs.run_s
    return told


def timeless(history: pd.DataFrame) -> pd.DataFrame:
    return history[[c for c in history if "second" not in c and not c.endswith("_ms")]]


def equal(result: Training, whole: Training) -> None:
    pd.testing.assert_frame_equal(timeless(result.history), timeless(whole.history), check_exact=True)
    assert result.policy.facts == whole.policy.facts
    assert all(np.array_equal(a, b) for a, b in zip(result.policy.weights, whole.policy.weights, strict=True))


@pytest.fixture(scope="module")
def whole() -> Training:
    return run(None)


@pytest.fixture
def stopped(state_after_two: Path, tmp_path: Path) -> Path:
    """Folder of a training that was killed in its third epoch."""
    return Path(shutil.copytree(state_after_two, tmp_path / "stopped"))


@pytest.fixture(scope="module")
def state_after_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    with pytest.raises(Killed):
        run(folder, 3)
    return folder


@pytest.mark.parametrize("stops", [(3,), (2, 5), (6,), (1,)])
def test_a_training_that_was_killed_ends_with_the_same_policy_and_history(
    stops: tuple[int, ...], whole: Training, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for stop in stops:
        with pytest.raises(Killed):
            run(tmp_path, stop)
    result = run(tmp_path)
    equal(result, whole)
    assert (result.history["milp_asked"] > 0).all()
    told = capsys.readouterr().out
    kept = (stops[-1] - 1) // 2 * 2  # the last validation whose state was written
    assert (f"going on after epoch {kept} of 6" in told) == (kept > 0)


@pytest.mark.parametrize("margin", [0.01, 3.0])
def test_one_that_chooses_its_way_and_credits_decisions_goes_on_the_same(
    margin: float, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    preset = CHOOSING.model_copy(update={"margin": margin})
    whole = run(None, preset=preset, jobs=CROWDED, calibrated=truly(CROWDED))
    facts, found = whole.policy.facts, whole.history["validation_rl"].min()
    assert facts["way"]["uses_calibrated"] and facts["way"]["backfill"] == "conservative" and facts["attention"] == 4
    assert found < facts["validation_start"], "something better was found, and the margin decides"
    assert (facts["best_epoch"] > 0) == (facts["validation_metric"] == found) == (margin < 1)
    for stop in (3, 5):
        with pytest.raises(Killed):
            run(tmp_path, stop, preset=preset, jobs=CROWDED, calibrated=truly(CROWDED))
    capsys.readouterr()
    equal(run(tmp_path, preset=preset, jobs=CROWDED, calibrated=truly(CROWDED)), whole)
    told = capsys.readouterr().out
    assert "going on after epoch 4 of 6" in told and "18 known from before" in told


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cell": CELL.but(seed=2)}, "cell"),
        ({"preset": PRESET.model_copy(update={"clip": 0.1})}, "preset"),
        ({"jobs": workload(900, seed=10)[0]}, "jobs"),
        ({"calibrated": truly(JOBS)}, "jobs"),
        ({"simulation": SimulationConfig(sticky_head=True)}, "rules"),
        ({"lookahead": LookaheadConfig(jobs=3)}, "look-ahead"),
    ],
)
def test_the_state_of_another_training_is_not_used(
    change: dict, named: str, stopped: Path, capsys: pytest.CaptureFixture
) -> None:
    result = run(stopped, **change)
    assert f"{NAME}: of another {named}; training from the beginning" in capsys.readouterr().out
    equal(result, run(None, **change))


def test_the_state_of_other_code_is_not_used(
    stopped: Path, whole: Training, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("rltune.agent.exercise.sources_digest", lambda *packages: "0" * 12)
    result = run(stopped)
    assert f"{NAME}: of another version; training from the beginning" in capsys.readouterr().out
    equal(result, whole)


def test_other_jobs_to_be_tested_on_are_no_other_training(
    stopped: Path, whole: Training, capsys: pytest.CaptureFixture
) -> None:
    other = JOBS._replace(row=JOBS.row.copy())
    other.row["run_s"][split_points(900).test[0] :] = 1e6
    result = run(stopped, jobs=other)
    assert "going on after epoch 2 of 6" in capsys.readouterr().out
    equal(result, whole)


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
    for event, (_, row) in zip(found[1:], result.history.iterrows(), strict=True):
        expected = {tag: row[name] for name, tag in TAGS.items() if not np.isnan(row[name])}
        assert {v.tag: v.simple_value for v in event.summary.value} == pytest.approx(expected, rel=1e-6)
        unknown = set() if row["epoch"] % 2 == 0 else {TAGS["validation_rl"]}
        assert set(expected) == set(TAGS.values()) - unknown, "validated every other epoch"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == [], "nothing half-written stays"


def test_a_search_that_was_killed_ends_with_the_same_weights(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    preset = Preset(
        agent="linear",
        epochs=7,
        trajectories=4,
        sequence_jobs=40,
        contended=0.5,
        validate_every=2,
        validation_windows=2,
    )
    whole = run(None, preset=preset)
    for stop in (3, 6):
        with pytest.raises(Killed):
            run(tmp_path, stop, preset)
    result = run(tmp_path, preset=preset)
    equal(result, whole)
    told = capsys.readouterr().out
    assert "going on after epoch 2 of 7" in told and "going on after epoch 4 of 7" in told


def test_it_stops_when_nothing_better_comes() -> None:
    still = PRESET.model_copy(update={"actor_lr": 1e-12, "patience": 2, "epochs": 50})
    history = run(None, preset=still).history
    assert len(history) == 4, "two validations, two epochs apart"
