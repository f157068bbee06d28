"""A custom metric, from the table of jobs: the wait that one job in twenty exceeds, with an interval."""

import numpy as np

from rltune.environment.example import example_workload
from rltune.evaluation.intervals import improved
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table

JOBS, WINDOWS = 256, 12


def long_waits(policy):
    """The 95th percentile of the waits of each window [WINDOWS], s."""
    jobs, layout = example_workload()
    first = JOBS * np.arange(WINDOWS)
    state = simulate(jobs, layout, first, np.full(WINDOWS, JOBS), SchedulerConfig(policy, backfill="easy"))
    return job_table(jobs, state).groupby("sequence")["wait_s"].quantile(0.95).to_numpy()


fifo, saf = long_waits("fifo"), long_waits("saf")
less = improved(saf, fifo, resamples=5000)
print(f"FIFO {fifo.mean():,.0f} s, SAF {saf.mean():,.0f} s: {less.gain:.1%} less ({less.low:.1%} to {less.high:.1%})")
