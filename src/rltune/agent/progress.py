"""What a training reports while it runs: lines of progress, a CSV file of the history so far, TensorBoard events."""

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from rltune.files import write_text
from rltune.placement.counts import Counts
from rltune.traces.progress import time_text

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
SILENCE_S = 30.0
SOLVER = ("asked", "presolved", "cached", "calls", "infeasible", "limit", "failure", "seconds")


class HistoryLog:
    """Writes ``progress.csv`` and TensorBoard events into a folder; None: nothing.

    Started with the rows of an interrupted training, it writes those again first.
    """

    def __init__(self, folder: Path | None, rows: list[dict[str, float]]) -> None:
        self._folder = folder
        if folder is None:
            return
        import tensorflow as tf

        self._tf = tf
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self._events = tf.summary.create_file_writer(str(folder))
        for row in rows:
            self._add_events(row)
        self._write(rows)

    def add(self, rows: list[dict[str, float]]) -> None:
        """Log the last of ``rows``."""
        if self._folder is not None:
            self._add_events(rows[-1])
            self._write(rows)

    def _add_events(self, row: dict[str, float]) -> None:
        # tf.summary.scalar in what it writes; itself it needs TensorBoard installed
        summary = self._tf.compat.v1.SummaryMetadata
        metadata = summary(plugin_data=summary.PluginData(plugin_name="scalars"))
        with self._events.as_default(step=int(row["epoch"])):
            for name, tag in TAGS.items():
                if not math.isnan(row[name]):
                    self._tf.summary.write(tag, self._tf.constant(row[name], self._tf.float32), metadata=metadata)
        self._events.flush()

    def _write(self, rows: list[dict[str, float]]) -> None:
        write_text(self._folder / "progress.csv", pd.DataFrame(rows).to_csv(index=False))


class ProgressLogger:
    """Prints a line about the first epoch, about every validation, and about others after a while without one.

    ``epochs``: in all; ``write``: takes a line; ``silence_s``: longest time without a line, if epochs are shorter.
    """

    def __init__(
        self, epochs: int, write: Callable[[str], None] = partial(print, flush=True), silence_s: float = SILENCE_S
    ) -> None:
        self.epochs, self.write, self.silence_s = epochs, write, silence_s
        self._start = self._last = time.perf_counter()
        self._first: float | None = None

    def __call__(self, row: dict[str, float]) -> None:
        """Take a row of the history, epoch by epoch."""
        now, epoch = time.perf_counter(), row["epoch"]
        first, self._first = self._first is None, self._first or epoch
        if first or not math.isnan(row["validation_rl"]) or now - self._last > self.silence_s:
            self._last = now
            self.write(_line(row, self.epochs, (now - self._start) / (epoch - self._first + 1)))


def solver_columns(counts: Counts) -> dict[str, float]:
    """Columns of the history that say how placement questions were answered."""
    latency = {f"milp_{name}_ms": value for name, value in counts.latency_ms().items()}
    return {f"milp_{name}": getattr(counts, name) for name in SOLVER} | latency


def _line(row: dict[str, float], epochs: int, epoch_s: float) -> str:
    """Say what an epoch brought, and how long the rest takes at ``epoch_s`` seconds an epoch."""
    text = f"epoch {row['epoch']:.0f} of {epochs}: reward {row['reward']:+.3f}"
    if not math.isnan(row["validation_rl"]):
        text += f"; validation {row['validation_rl']:.4g}, base {row['validation_base']:.4g}"
    return f"{text}; {time_text(epoch_s * (epochs - row['epoch']))} left"
