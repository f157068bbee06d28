"""What a training says of itself: the line, how long the rest takes, and when a line is due."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from rltune.agent.logs import Teller, progress_line


def row(epoch: int, reward: float = 0.25, rl: float = math.nan, base: float = math.nan) -> dict[str, float]:
    return {"epoch": epoch, "reward": reward, "validation_rl": rl, "validation_base": base}


@pytest.mark.parametrize(
    ("left_s", "told"),
    [
        (0.0, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (90.0, "1 min 30 s"),
        (605.0, "10 min 05 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 00 min"),
        (3 * 3600 + 7 * 60 + 59.0, "3 h 07 min"),
        (90_000.0, "25 h 00 min"),
    ],
)
def test_how_long_the_rest_takes(left_s: float, told: str) -> None:
    assert progress_line(row(6), 10, left_s / 4) == f"epoch 6 of 10: reward +0.250; {told} left"


def test_a_line_about_a_validation() -> None:
    told = progress_line(row(4, -0.0625, 1234.567, 0.0123456), 20, 90 / 16)
    assert told == "epoch 4 of 20: reward -0.062; validation 1235, base 0.01235; 1 min 30 s left"
    assert progress_line(row(20, 1.0, 2.5, 3.0), 20, 7.0) == (
        "epoch 20 of 20: reward +1.000; validation 2.5, base 3; 0 s left"
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Shows ``now_s``, which the test sets."""
    clock = SimpleNamespace(now_s=1000.0)
    monkeypatch.setattr("rltune.agent.logs.time", SimpleNamespace(perf_counter=lambda: clock.now_s))
    return clock


def told_at(clock: SimpleNamespace, epochs: int, rows: list[tuple[float, dict[str, float]]]) -> dict[int, str]:
    """Lines by epoch, of rows that come so many seconds after the teller was made."""
    lines: list[str] = []
    told, begun_s, teller = {}, clock.now_s, Teller(epochs, lines.append)
    for after_s, one in rows:
        clock.now_s = begun_s + after_s
        teller(one)
        told |= {int(one["epoch"]): line for line in lines}
        lines.clear()
    return told


def test_the_first_epoch_every_validation_and_a_line_after_a_while(clock: SimpleNamespace) -> None:
    rows = [
        (10.0, row(1)),
        (20.0, row(2, rl=5.0, base=6.0)),
        (50.0, row(3)),
        (50.1, row(4)),
        (90.0, row(5)),
        (91.0, row(6)),
    ]
    told = told_at(clock, 100, rows)
    assert list(told) == [1, 2, 4, 5], "30 s after another are not yet a while"
    assert told[1] == "epoch 1 of 100: reward +0.250; 16 min 30 s left"
    assert told[2] == "epoch 2 of 100: reward +0.250; validation 5, base 6; 16 min 20 s left"
    assert told[5] == "epoch 5 of 100: reward +0.250; 28 min 30 s left", "90 s for five epochs, of which 95 are left"


def test_a_training_that_goes_on_counts_the_epochs_of_its_own_time(clock: SimpleNamespace) -> None:
    told = told_at(clock, 60, [(30.0, row(41)), (60.0, row(42, rl=5.0, base=6.0))])
    assert told[41] == "epoch 41 of 60: reward +0.250; 9 min 30 s left"
    assert told[42].endswith("; 9 min 00 s left")
