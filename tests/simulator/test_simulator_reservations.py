"""Reservations of backfilling, where a job may be split and GPU types differ in speed."""

from __future__ import annotations

import numpy as np
from twin_cases import starts
from workload_cases import at_speeds, cluster, compiled, group

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout

CLUSTER = cluster([group(3, 4, "V100"), group(5, 4, "P100")], gpu_types="match")
V100 = {"run_s": 100.0, "gpus": 12, "gpu_type": "V100"}
P100 = [{"run_s": 500.0, "gpus": gpus, "gpu_type": "P100"} for gpus in (3, 3, 2)]
"""They leave 1, 1, 2, 4 and 4 GPUs free on the nodes of this type."""
NEXT = [
    {"submit_s": 1.0, "run_s": 50.0, "gpus": 12},
    {"submit_s": 2.0, "run_s": 50.0, "gpus": 12, "gpu_type": "V100"},
    {"submit_s": 3.0, "run_s": 200.0, "gpus": 4, "gpu_type": "P100"},
]


def at_two_speeds() -> tuple[Jobs, Layout]:
    """A P100 runs a job 1.5 times as long."""
    jobs, layout = compiled(CLUSTER, [V100, *P100, *NEXT])
    slow = np.tile([1.5 if name == "P100" else 1.0 for name in layout.types], (len(jobs.row), 1))
    return at_speeds(jobs, slow), layout


def test_a_reservation_is_where_it_was_sought_though_another_type_was_tried_since() -> None:
    assert starts(at_two_speeds(), "fifo", "conservative", "best_fit", "plus_one", types="least")[-1] == 3.0


def test_easy_starts_a_job_that_is_quick_enough_though_its_estimate_is_not() -> None:
    """Its estimate, 100 s, is too long to end before the head starts; half of it is not."""
    jobs, layout = compiled(
        cluster([group(1, 2)]),
        [{"run_s": 100.0, "gpus": 1}, {"submit_s": 1.0, "run_s": 50.0, "gpus": 2}, {"submit_s": 2.0, "run_s": 100.0}],
    )
    cut = jobs.cut.copy()
    cut["slow"][2] = 0.5
    assert starts((jobs, layout), "fifo", "easy") == [0.0, 100.0, 150.0]
    assert starts((jobs._replace(cut=cut), layout), "fifo", "easy") == [0.0, 100.0, 2.0]
