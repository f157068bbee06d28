"""What a training tells while it runs: a line an epoch, a CSV file of the history so far, TensorBoard events."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.files import write_text
from rltune.placement.counts import Counts

TAGS = {
    "reward": "return/reward",
    "difference": "return/base - agent",
    "validation_rl": "return/validation",
    "kl": "update/kl",
    "entropy": "update/entropy",
    "clip_fraction": "update/clip_fraction",
    "explained_variance": "update/explained_variance",
    "choices_per_second": "rollout/choices_per_second",
    "mean_queue": "rollout/mean_queue",
    "milp_calls": "rollout/milp_calls",
}
"""Columns of the history shown in TensorBoard, and their names there."""
QUIET_S = 30.0
"""Longest time without a line, if epochs are shorter."""


def history_row(
    epoch: int, base: pd.DataFrame, agent: pd.DataFrame, gap: np.ndarray, times: Sequence[float], told: dict[str, float]
) -> dict[str, float]:
    """An epoch's row of the history, not validated yet.

    `kept_epoch`, the epoch whose weights are the best so far, is to be set after it. ``base`` and ``agent``: tables of
    the same sequences; ``gap``: their rewards; ``times``: when the epoch, the agent's rollouts and the update began, and
    when that ended, s; ``told``: what the update tells.
    """
    began, rolling, rolled, updated = times
    choices, means = int(agent["choices"].sum()), [float(side["score"].mean()) for side in (base, agent)]
    return {
        "epoch": epoch,
        "reward": float(gap.mean()),
        "base": means[0],
        "rl": means[1],
        "difference": means[0] - means[1],
        **told,
        "decisions": int(agent["decisions"].sum()),
        "choices": choices,
        "mean_queue": float(agent["mean_queue"].mean()),
        "rollout_seconds": rolled - began,
        "update_seconds": updated - rolled,
        "choices_per_second": choices / (rolled - rolling),
        "validation_rl": math.nan,
        "validation_base": math.nan,
        "validation_random": math.nan,
        "kept_epoch": 0,
    }


class Log:
    """Writes ``progress.csv`` and TensorBoard events into a folder; None: nothing.

    Started with the rows of an interrupted training, it writes those anew first.
    """

    def __init__(self, folder: Path | None, rows: list[dict[str, float]]) -> None:
        self.folder, self._events = folder, None
        if folder is None:
            return
        import tensorflow as tf

        folder.mkdir(parents=True, exist_ok=True)
        # the record's format asks for a version first; TensorBoard finds a file by the word in its name
        self._events = tf.io.TFRecordWriter(str(folder / "events.out.tfevents.training"))
        self._kinds = tf.compat.v1.Event, tf.compat.v1.Summary
        self._events.write(self._kinds[0](wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        for row in rows:
            self._event(row)
        self._write(rows)

    def epoch(self, rows: list[dict[str, float]]) -> None:
        """Tell of the last of ``rows``."""
        if self.folder is not None:
            self._event(rows[-1])
            self._write(rows)

    def close(self) -> None:
        """No more epochs."""
        if self._events is not None:
            self._events.close()

    def _event(self, row: dict[str, float]) -> None:
        event, summary = self._kinds
        known = {tag: float(row[name]) for name, tag in TAGS.items() if not math.isnan(row[name])}
        values = [summary.Value(tag=tag, simple_value=value) for tag, value in known.items()]
        record = event(wall_time=time.time(), step=int(row["epoch"]), summary=summary(value=values))
        self._events.write(record.SerializeToString())
        self._events.flush()

    def _write(self, rows: list[dict[str, float]]) -> None:
        write_text(self.folder / "progress.csv", pd.DataFrame(rows).to_csv(index=False))


class Teller:
    """Says a line about the first epoch, about every validation, and about others after a while without one.

    ``epochs``: in all, if training does not stop early; ``say``: takes a line.
    """

    def __init__(self, epochs: int, say: Callable[[str], None] = partial(print, flush=True)) -> None:
        self.epochs, self.say = epochs, say
        self._began = self._said = time.perf_counter()
        self._first: float | None = None

    def __call__(self, row: dict[str, float]) -> None:
        """Called with each row of the history."""
        now, epoch = time.perf_counter(), row["epoch"]
        first = self._first is None
        if self._first is None:
            self._first = epoch
        if first or not math.isnan(row["validation_rl"]) or now - self._said > QUIET_S:
            self._said = now
            self.say(progress_line(row, self.epochs, (now - self._began) / (epoch - self._first + 1)))


def solver_columns(counts: Counts) -> dict[str, float]:
    """Columns of the history that say how placement questions were answered."""
    names = ("asked", "presolved", "cached", "calls", "infeasible", "limit", "failure", "seconds")
    latency = {f"milp_{name}_ms": value for name, value in counts.latency_ms().items()}
    return {f"milp_{name}": getattr(counts, name) for name in names} | latency


def progress_line(row: dict[str, float], epochs: int, epoch_s: float) -> str:
    """What an epoch brought, and how long the rest takes at ``epoch_s`` seconds an epoch."""
    left_s = epoch_s * (epochs - row["epoch"])
    text = f"epoch {row['epoch']:.0f} of {epochs}: reward {row['reward']:+.3f}"
    if not math.isnan(row["validation_rl"]):
        text += f"; validation {row['validation_rl']:.4g}, base {row['validation_base']:.4g}"
    return f"{text}; {_duration(left_s)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
