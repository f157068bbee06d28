"""A training that is stopped goes on as if nothing had happened, or says why it begins again."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from agent_fakes import task_of, trained, workload
from workload_cases import with_rows

from rltune.agent.checkpoint import NAME, load_checkpoint
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.progress import TAGS
from rltune.agent.trainer import make_trainer
from rltune.cluster.fit import Jobs
from rltune.config import Cell, LookaheadConfig, Preset, SimulationConfig

ROOT = Path(__file__).resolve().parents[2]
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
    iterations=5,
    batch_decisions=64,
    target_kl=1.0,
    validate_every=2,
    validation_windows=2,
)
CROWDED, _ = workload(900, seed=16, load=8.0)
CHOOSING = PRESET.model_copy(
    update=dict(
        rollouts=3,
        sequence_jobs=20,
        base_policy_bias=0.3,
        actor_lr=3e-2,
        iterations=10,
        validation_windows=4,
        tunes="reservations",
        credit_horizon_s=3600.0,
        margin=0.01,
    )
)
LINEAR = Preset(
    agent="linear", epochs=7, trajectories=4, sequence_jobs=40, contended=0.5, validate_every=2, validation_windows=2
)
Result = tuple[TrainedPolicy, pd.DataFrame]


class Killed(BaseException):
    """What a signal does."""


def run(
    folder: Path | None,
    stop_after: int | None = None,
    preset: Preset = PRESET,
    cell: Cell = CELL,
    jobs: Jobs = JOBS,
    **more: Any,
) -> Result:
    def progress(row: dict) -> None:
        if row["epoch"] == stop_after:
            raise Killed

    return trained(task_of(cell, preset, (jobs, LAYOUT), folder=folder, **more), progress, folder)


def exact(jobs: Jobs) -> Jobs:
    """The jobs with estimates that do not err."""
    return with_rows(jobs, estimate_s=jobs.run_s)


def timeless(history: pd.DataFrame) -> pd.DataFrame:
    return history[[c for c in history if "second" not in c and not c.endswith("_ms")]]


def equal(result: Result, whole: Result) -> None:
    pd.testing.assert_frame_equal(timeless(result[1]), timeless(whole[1]), check_exact=True)
    assert result[0].facts == whole[0].facts
    assert all(np.array_equal(a, b) for a, b in zip(result[0].weights, whole[0].weights, strict=True))


@pytest.fixture(scope="module")
def whole() -> Result:
    return run(None)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a training that was killed in its third epoch."""
    folder = tmp_path_factory.mktemp("training")
    with pytest.raises(Killed):
        run(folder, 3)
    return folder


@pytest.mark.parametrize(
    ("preset", "stops"),
    [(PRESET, (2, 5)), (PRESET, (6,)), (PRESET, (1,)), (LINEAR, (3, 6))],
    ids=lambda given: getattr(given, "agent", None),
)
def test_a_training_that_was_killed_ends_with_the_same_policy_and_history(preset, stops, whole, tmp_path, capsys):
    for stop in stops:
        with pytest.raises(Killed):
            run(tmp_path, stop, preset)
    capsys.readouterr()
    result = run(tmp_path, preset=preset)
    equal(result, whole if preset == PRESET else run(None, preset=preset))
    assert (result[1]["milp_asked"] > 0).all()
    printed = capsys.readouterr().out
    check_logs(tmp_path, result[1])
    kept = (stops[-1] - 1) // 2 * 2  # the last validation whose state was written
    assert (f"going on after epoch {kept} of {preset.epochs}" in printed) == (kept > 0)
    equal(run(tmp_path, preset=preset), result)  # as after a stop between its end and the notebook's
    assert f"going on after epoch {preset.epochs} of {preset.epochs}" in capsys.readouterr().out


def check_logs(folder: Path, history: pd.DataFrame) -> None:
    """They are in the training's folder and have every epoch once."""
    progress = pd.read_csv(folder / "progress.csv")
    assert list(progress["epoch"]) == list(history["epoch"]) and list(progress.columns) == list(history.columns)
    (events,) = folder.glob("*tfevents*")
    records = [tf.compat.v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(events))]
    values = [(event.step, value) for event in records for value in event.summary.value]
    assert {value.metadata.plugin_data.plugin_name for _, value in values} == {"scalars"}
    expected = history.set_index("epoch")[list(TAGS)].rename(columns=TAGS).stack()  # without what is not known
    found = {(epoch, value.tag): float(tf.make_ndarray(value.tensor)) for epoch, value in values}
    assert len(values) == len(found) and found == pytest.approx(expected.dropna().to_dict(), rel=1e-6)
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == [], "nothing half-written stays"


@pytest.mark.parametrize("margin", [0.01, 3.0])
def test_one_that_chooses_its_scheduler_and_credits_decisions_goes_on_the_same(margin, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rltune.agent.task.MAX_WINDOWS", 12)
    setting = dict(preset=CHOOSING.model_copy(update={"margin": margin}), jobs=CROWDED, calibrated=exact(CROWDED))
    policy, history = whole = run(None, **setting)
    facts, found = policy.facts, history["validation_rl"].min()
    assert facts["scheduler"]["uses_calibrated"] and facts["scheduler"]["backfill"] == "conservative"
    assert found < facts["validation_start"], "something better was found, and the margin decides"
    assert (facts["best_epoch"] > 0) == (facts["validation_metric"] == found) == (margin < 1)
    for stop in (3, 5):
        with pytest.raises(Killed):
            run(tmp_path, stop, **setting)
    capsys.readouterr()
    equal(run(tmp_path, **setting), whole)
    printed = capsys.readouterr().out
    assert "going on after epoch 4 of 6" in printed and "18 known from before" in printed
    assert len(pd.read_csv(tmp_path / "trials.csv")) == 18


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cell": CELL.but(seed=2)}, "cell"),
        ({"preset": PRESET.model_copy(update={"entropy": 0.1})}, "preset"),
        ({"jobs": workload(900, seed=10)[0]}, "jobs"),
        ({"calibrated": exact(JOBS)}, "jobs"),
        ({"simulation": SimulationConfig(sticky_head=True)}, "rules"),
        ({"lookahead": LookaheadConfig(jobs=3)}, "look-ahead"),
    ],
)
def test_the_state_of_another_training_is_not_used(change, named, stopped):
    given = {"cell": CELL, "preset": PRESET, "jobs": JOBS, **change}
    task = task_of(given.pop("cell"), given.pop("preset"), (given.pop("jobs"), LAYOUT), **given)
    assert load_checkpoint(stopped, task.identity) == (None, f"{stopped / NAME}: of another {named}")


def test_a_broken_state_is_not_used(tmp_path, capsys):
    (tmp_path / NAME).write_bytes(b"half a file")
    trainer = make_trainer(task_of(CELL, PRESET, (JOBS, LAYOUT), folder=tmp_path), tmp_path, 1)
    printed = capsys.readouterr().out
    assert trainer.epoch == 0 and f"{NAME}: cannot be read (" in printed and "training from the beginning" in printed
