"""What a metric is: how it is computed from a table of jobs, and the words that reports use for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def mean_of(column: str) -> Callable[[pd.DataFrame, int], pd.Series]:
    """What computes the mean of a column over the jobs of each sequence."""
    return lambda jobs, gpus: jobs.groupby("sequence")[column].mean()


@dataclass(frozen=True)
class Metric:
    """A measure of a sequence of jobs. Its file assigns it to ``METRIC``, and rltune.metrics finds it."""

    name: str
    """Its name in configurations and on the command line."""
    column: str
    """Its column in the table of sequences (rltune.simulator.metrics.sequence_table)."""
    compute: Callable[[pd.DataFrame, int], pd.Series]
    """(Table of jobs of rltune.simulator.metrics.job_table, GPUs of the cluster) → a number a sequence."""
    noun: str
    """`mean wait`."""
    short: str
    """`Wait`: on axes and in headings."""
    improvement: str
    """An improvement as a heading: `Less wait`."""
    words: tuple[str, str] = ("lower", "higher")
    """What a mean is when it got better, and when worse."""
    unit: str = ""
    format: str = "number"
    """One of rltune.report.format.FORMATS, of a mean."""
    higher_is_better: bool = False
    floor: float = 1.0
    """Smallest denominator of the reward, in the metric's unit."""
    trained_column: str = ""
    """Column that the reward uses instead, where it is not NaN."""
    rank: int = 100
    """Its rank among the metrics in tables and in names of mixes."""

    @property
    def sign(self) -> float:
        """−1 where more is better: the metric times its sign is to be minimised."""
        return -1.0 if self.higher_is_better else 1.0
