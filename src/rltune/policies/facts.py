"""What a policy is told of a queued job."""

from __future__ import annotations

from typing import NamedTuple


class Facts(NamedTuple):
    """One queued job, now. All float64 but ``gpus``."""

    submit_s: float
    """Submission, seconds since the trace's t0."""
    estimate_s: float
    """Estimated run time."""
    gpus: int
    """Requested GPUs."""
    wait_s: float
    """Waiting time so far."""
    fair_share: float
    """Slurm's fair-share factor of its account, in (0, 1]."""
    gpu_share: float
    """Requested GPUs over those of its pool."""
    partition: float
    """Priority of its pool over the largest."""
    qos: float
    """1 for a job under a service-level agreement, else 0."""
