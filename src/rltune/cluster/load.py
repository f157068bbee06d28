"""Offered load: what jobs ask of a cluster, relative to what it has."""

from __future__ import annotations

import numpy as np
import pandas as pd


def offered_load(jobs: pd.DataFrame, gpus: int) -> float:
    """Requested GPU-seconds per second of the submission span, over the cluster's GPUs; NaN for a span of nothing.

    At 1 the cluster could just keep up for ever; above, queues grow as long as jobs arrive.
    """
    span = jobs["submit_s"].max() - jobs["submit_s"].min()
    asked = float(np.dot(jobs["gpus"].to_numpy(float), jobs["run_s"].to_numpy()))
    return asked / span / gpus if span > 0 else float("nan")
