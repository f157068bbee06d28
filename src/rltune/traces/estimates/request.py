"""What an estimate is made for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import Predictions
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates.history import all_known, rolling_median

MIN_ESTIMATE_S = 1.0


@dataclass(frozen=True)
class Request:
    """Jobs to estimate the run times of, and what some kinds need besides."""

    jobs: pd.DataFrame
    """In the order of submission; history is what it holds, no more."""
    meta: TraceMeta
    sigma: float = 0.0
    seed: int = 0
    predictions: Predictions | None = None
    root: Path = Path()
    """Folder that a relative path in ``predictions`` starts from."""

    def else_rolling(self, seconds: np.ndarray, source: str, other: str) -> tuple[np.ndarray, np.ndarray]:
        """``seconds`` [J] where they are not NaN, else the rolling median; what each is made from."""
        there = ~np.isnan(seconds)
        rolling, _ = rolling_median(all_known(self.jobs))
        return np.where(there, seconds, rolling), np.where(there, source, other).astype(object)
