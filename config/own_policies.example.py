"""Policies of one's own, to be compared with as baselines: an example to copy.

A run's configuration names the file, and the policies among the baselines:

    plugins: [config/own_policies.example.py]
    evaluation: {baseline_policies: [fifo, sjf, patient_smallest]}

A policy gets one queue (rltune.policies.Queue, arrays with an entry a job) and the time, and returns a score a job:
the lowest goes first, ties go by submission. docs/reference/simulator.md says when it is asked.
"""

import numpy as np

from rltune.policies import Queue, policy

PATIENCE_S = 6 * 3600.0


@policy("patient_smallest")
def patient_smallest(queue: Queue, now: float) -> np.ndarray:
    """Fewest GPUs first; but a job that has waited six hours goes before all that have not, the longest wait first."""
    return np.where(queue.wait_s < PATIENCE_S, queue.gpus, -queue.wait_s)
