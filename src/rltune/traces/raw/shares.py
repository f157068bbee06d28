"""Shares of a GPU to whole GPUs, by the rule the trace's configuration names (``gpu_share``).

The simulator hands out whole GPUs, so a job that asked for 0.46 of one, or for three instances of half of one each,
has to be given whole ones (``round_up``: 1 and 2, the total rounded up), or be left out (``leave_out``).
"""

from __future__ import annotations

import numpy as np

from rltune.config.trace import GpuShare
from rltune.traces.audit import Audit

LEFT_OUT = "asks for a share of a GPU (gpu_share: leave_out)"
_SLACK = 1e-9
"""Keeps a sum of hundredths such as 3.0000000000000004 from becoming 4."""


def whole_gpus(gpus: np.ndarray, rule: GpuShare, audit: Audit) -> tuple[np.ndarray, np.ndarray]:
    """Whole GPUs of each job (float64; null where unknown), and which jobs are to be left out for their share.

    Args:
        gpus: GPUs of the job, perhaps with a share (PAI: instances × plan_gpu / 100).
        rule: ``TraceConfig.gpu_share``.
        audit: gets the number of shares rounded; jobs left out are the caller's to give a reason (:data:`LEFT_OUT`).
    """
    parted = np.abs(gpus - np.round(gpus)) > _SLACK
    if rule == "leave_out":
        return np.where(parted, np.nan, np.round(gpus)), parted
    audit.note("share of a GPU rounded up to whole GPUs", parted.sum())
    return np.ceil(gpus - _SLACK), np.zeros(len(gpus), dtype=bool)
