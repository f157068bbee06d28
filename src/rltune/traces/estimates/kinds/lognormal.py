"""The true run time, blurred: run × exp(sigma × z), z standard normal, so the median ratio of estimate to truth is 1.

The paper (§4.1) calls estimates "potentially noisy"; sigma 1 is our choice.
"""

import numpy as np
import pandas as pd

from rltune.traces.columns import job_uniform
from rltune.traces.estimates.history import Request


def estimate(request: Request) -> tuple[np.ndarray, str]:
    """Blurred run times [J], s."""
    z = job_normal(request.jobs["job_id"], request.meta.name, request.seed)
    return request.jobs["run_s"].to_numpy(np.float64) * np.exp(request.sigma * z), "lognormal"


def job_normal(job_id: pd.Series, trace_name: str, seed: int) -> np.ndarray:
    """A standard normal number for each job (float64), a function of trace name, job id and seed alone."""
    from scipy.special import ndtri  # a tenth of a second that simulations need not wait for

    return ndtri(job_uniform(job_id, f"{trace_name}\n{seed}"))
