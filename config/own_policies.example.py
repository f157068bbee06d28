"""Custom policies as baselines: an example to copy.

A run's configuration names the file, and the policies among the baselines:

    plugins: [config/own_policies.example.py]
    evaluation: {baseline_policies: [fifo, sjf, patient_smallest]}

A policy gets one queue (rltune.policies.Queue, arrays with one entry per job) and the time, and returns one score per job:
the lowest comes first, ties are broken by submission. docs/reference/simulator.md says when it is called.
"""

import numpy as np

from rltune.policies import Queue, policy

PATIENCE_S = 6 * 3600.0


@policy("patient_smallest")
def patient_smallest(queue: Queue, now: float) -> np.ndarray:
    """Fewest GPUs first; but jobs that have waited six hours come before all others, the longest wait first."""
    return np.where(queue.wait_s < PATIENCE_S, queue.gpus, -queue.wait_s)
