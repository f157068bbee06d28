"""The chronological split and the disjoint windows of evaluation. All positions are row numbers of the job table."""

from dataclasses import dataclass

import numpy as np

from rltune.errors import ConfigError

VALIDATION_SHARE = 0.1
"""Of the jobs that training may use, the last tenth is kept for choices (checkpoint, settings)."""


@dataclass(frozen=True)
class Split:
    """Half-open ranges of rows (start, stop), in order of submission and without overlap."""

    train: tuple[int, int]
    validation: tuple[int, int]
    test: tuple[int, int]


def split_points(n_jobs: int, train: float = 0.9, validation: float = VALIDATION_SHARE) -> Split:
    """Split ``n_jobs`` rows in time (paper §3.1.1: first 90 % for training, last 10 % held out).

    Args:
        n_jobs: rows of the job table.
        train: share, from the beginning, that training and every choice may use; the rest is test.
        validation: share of that, at its end, kept for choices.

    Raises:
        ConfigError: a range without a job.
    """
    # Rounding first keeps 0.9 × 1000 from becoming 899.
    stop = int(round(n_jobs * train, 6))
    cut = int(round(stop * (1 - validation), 6))
    if not 0 < cut < stop < n_jobs:
        raise ConfigError(
            f"found {n_jobs} job{'s' * (n_jobs != 1)}, too few: expected one or more each for training, validation and test"
        )
    return Split(train=(0, cut), validation=(cut, stop), test=(stop, n_jobs))


def disjoint_windows(start: int, stop: int, length: int) -> np.ndarray:
    """First rows of the consecutive windows of ``length`` jobs that fit whole into [start, stop) (int64).

    Raises:
        ConfigError: not one window fits.
    """
    count = (stop - start) // length
    if count < 1:
        raise ConfigError(f"a window of {length} jobs does not fit into {stop - start} jobs (rows {start}–{stop})")
    return start + length * np.arange(count, dtype=np.int64)


def spread(windows: np.ndarray, most: int | None) -> np.ndarray:
    """At most ``most`` of the windows, evenly spread over them; all where ``most`` is None."""
    if most is None or len(windows) <= most:
        return windows
    return windows[np.linspace(0, len(windows) - 1, most).round().astype(np.int64)]
