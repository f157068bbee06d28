"""Which GPU type a job gets, where it may use several that run it at different speeds.

============  ==================================================================================================
auto          ``least`` under conservative backfilling, else ``fastest_free``; ``any`` where types are equally fast or the
              placement ignores speeds (rltune.simulator.config)
any           as the placement rule has it, whatever the speed: what a request without a type gets
fastest_free  the fastest on which the job fits now
fastest_only  the fastest that could hold it, also where others are free
least         that of the least expected completion: expected start, by reservations, and run time (minimum completion
              time, Braun et al. 2001); a job may wait for a faster type while a slower one is free
allox         as ``least``, with order and types of the first jobs of the ranking as AlloX has them (rltune.simulator.allox)
joint         as ``least``, with order and types of the first jobs of the ranking planned together (rltune.simulator.joint)
============  ==================================================================================================

``least`` and ``joint`` choose the spread too: each type counts twice, on as few nodes as possible and on up to as many more as the
locality allows. ``least``, ``allox`` and ``joint`` may have a price of GPU time: they minimise the expected completion plus ``gpu_price`` · GPUs · run time on
the type · mean speed of the type (relative to the mean of the types). A job then leaves a fast type that gains it little to others.
"""

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.config.cells import PLANNED_TYPES

PRICES = (0.03, 0.1, 0.3)
"""Prices of GPU time worth trying, s per GPU-second."""
MATCHED = 64
"""Jobs that ``allox`` matches at once: the time that it takes grows with their cube."""
PLANNED = 8
"""Jobs that ``joint`` plans together (the K of the paper, §3.2: 8 to 16). More are planned on estimates that do not hold so long."""


def differ(jobs: Jobs) -> bool:
    """Whether GPU types that could hold some job run it at different speeds."""
    able, slow = jobs.cut["full"] >= 0, jobs.cut["slow"]
    return bool((np.where(able, slow, np.inf).min(axis=1) < np.where(able, slow, -np.inf).max(axis=1)).any())


def with_type_rule(jobs: Jobs, types: str, gpu_price: float) -> Jobs:
    """The jobs as the simulator reads this rule of them."""
    if types == "any":
        return jobs
    cut = jobs.cut.copy()
    slow = np.where(cut["full"] >= 0, cut["slow"], np.inf)
    if types == "fastest_only":
        cut["full"][slow > slow.min(axis=1, keepdims=True)] = -1
    else:
        cut["rank"] = (slow[:, None, :] < slow[:, :, None]).sum(axis=2)
    if types in PLANNED_TYPES:
        cut["price"] *= gpu_price
    return Jobs(jobs.row, cut)  # what is alike before is alike now: shapes stay
