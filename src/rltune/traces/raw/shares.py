"""Shares of a GPU to whole GPUs, by the rule the trace's configuration names (``gpu_share``).

The simulator hands out whole GPUs, so a job that asked for 0.46 of one, or for three instances of half of one each,
has to be given whole ones, or be left out:

=================  ============================================  =====================  =====================
rule               GPUs of the job                               1 × 0.46               3 × 0.5
=================  ============================================  =====================  =====================
``round_up``       the total, rounded up (default)               1                      2
``round_up_each``  each instance rounded up: none is shared      1                      3
``nearest``        the total, to the nearest (half: up), ≥ 1     1                      2
``leave_out``      none: the job is left out                     –                      –
=================  ============================================  =====================  =====================
"""

from __future__ import annotations

import numpy as np

from rltune.config.trace import GpuShare
from rltune.traces.audit import Audit

LEFT_OUT = "asks for a share of a GPU (gpu_share: leave_out)"
_REMARKS: dict[GpuShare, str] = {
    "round_up": "share of a GPU rounded up to whole GPUs",
    "round_up_each": "share of a GPU rounded up to whole GPUs, each instance by itself",
    "nearest": "share of a GPU rounded to the nearest whole number of GPUs",
}
_SLACK = 1e-9
"""Keeps a sum of hundredths such as 3.0000000000000004 from becoming 4."""


def whole_gpus(
    each: np.ndarray, count: np.ndarray | float, rule: GpuShare, audit: Audit
) -> tuple[np.ndarray, np.ndarray]:
    """Whole GPUs of each job (float64; null where unknown), and which jobs are to be left out for their share.

    Args:
        each: GPUs of one instance, perhaps a share (a PAI task's plan_gpu / 100, a pod's gpu_milli / 1000).
        count: instances (or GPUs of which ``each`` is the share).
        rule: ``TraceConfig.gpu_share``.
        audit: gets the number of shares rounded; jobs left out are the caller's to give a reason (:data:`LEFT_OUT`).
    """
    each, count = np.broadcast_arrays(np.asarray(each, dtype=np.float64), count)
    total = each * count
    parted = _part(each) if rule == "round_up_each" else _part(total)
    if rule == "leave_out":
        return np.where(parted, np.nan, np.round(total)), parted
    audit.note(_REMARKS[rule], parted.sum())
    if rule == "round_up_each":
        gpus = np.ceil(each - _SLACK) * count
    elif rule == "nearest":
        gpus = np.where(total > 0, np.maximum(np.floor(total + 0.5 + _SLACK), 1.0), total)
    else:
        gpus = np.ceil(total - _SLACK)
    return gpus, np.zeros(len(each), dtype=bool)


def _part(gpus: np.ndarray) -> np.ndarray:
    """Which are no whole number of GPUs."""
    return np.abs(gpus - np.round(gpus)) > _SLACK
