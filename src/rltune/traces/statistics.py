"""What traces look like in numbers: the paper's Tables 2 and 4, and when jobs arrive, how long they run, how much they
ask for, how waits come in bursts."""

import numpy as np
import pandas as pd

from rltune.config.trace import RecordedOn
from rltune.errors import DataError
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates.history import job_size

DAY_S = 86_400.0
MONTH_S = 30 * DAY_S
"""One month of Table 2, which is "normalized over one month" without saying how long that is: our choice."""


def span_s(jobs: pd.DataFrame) -> float:
    """Seconds from the first to the last submission.

    Raises:
        DataError: fewer than two submissions, or all at the same time: no rate can be given.
    """
    span = float(jobs["submit_s"].iloc[-1] - jobs["submit_s"].iloc[0]) if len(jobs) else 0.0
    if span <= 0:
        raise DataError(f"{len(jobs)} jobs submitted over {span:.0f} s: too few for a rate; give a longer trace.")
    return span


def workload_row(jobs: pd.DataFrame) -> pd.DataFrame:
    """One row of Table 2.

    Columns: ``type`` (GPU or CPU), ``jobs_per_month``, ``avg_wait_s`` (recorded waits; null where none is recorded),
    ``avg_run_s``, ``arrival_per_s``, ``alloc`` (GPUs, for CPU traces CPUs, summed over the jobs of one month). A month
    has 30 days.
    """
    span = span_s(jobs)
    rate = (len(jobs) - 1) / span
    gpu = bool((jobs["resource"] == "gpu").any())
    allocated = jobs["gpus"].mean() if gpu else jobs["cpus"].mean()
    return pd.DataFrame(
        {
            "type": ["GPU" if gpu else "CPU"],
            "jobs_per_month": [rate * MONTH_S],
            "avg_wait_s": [jobs["wait_s"].mean()],
            "avg_run_s": [jobs["run_s"].mean()],
            "arrival_per_s": [rate],
            "alloc": [allocated * rate * MONTH_S],
        }
    )


def summary_row(jobs: pd.DataFrame, system: RecordedOn | None) -> pd.DataFrame:
    """One row of Table 4, of a trace recorded on a system of which this is known.

    Columns: ``days`` (first to last submission), ``jobs``, ``gpus``, ``nodes``, ``gpu_types`` (comma-separated; of an
    unknown system those the jobs name), ``users``, ``run_avg_s``, ``run_max_days``; of a known system also ``scheduler``
    and ``network``. What is not known is null.
    """
    known = system or RecordedOn(source="")
    types = known.gpu_types or sorted(set(jobs["gpu_type"].dropna()))
    users = jobs["user"].nunique()
    row = pd.DataFrame(
        {
            "days": [span_s(jobs) / DAY_S],
            "jobs": [len(jobs)],
            "gpus": pd.array([known.gpus], dtype="Int64"),
            "nodes": pd.array([known.nodes], dtype="Int64"),
            "gpu_types": pd.Series([", ".join(types) or None], dtype="str"),
            "users": pd.array([users or None], dtype="Int64"),
            "run_avg_s": [jobs["run_s"].mean()],
            "run_max_days": [jobs["run_s"].max() / DAY_S],
        }
    )
    return row if system is None else row.assign(scheduler=system.scheduler, network=system.network)


HOUR_S = 3600.0
BATCH_JOBS = 256
"""Jobs a batch, and …"""
BATCHES = 100
"""… batches, of the paper's Figure 6."""
RUN_POINTS = 160
"""Points at which the distribution of run times is given, evenly spread over the logarithm."""


def batches(wait_s: pd.Series, jobs: int = BATCH_JOBS, most: int = BATCHES) -> pd.DataFrame:
    """The paper's Figure 6: consecutive batches of jobs, by how many wait long and how long all wait together.

    The paper does not say which hundred batches it shows. Here they are those, one after another, whose jobs wait most
    together (the first such): elsewhere, on a cluster that keeps up, there may be no wait to be seen.

    Args:
        wait_s: wait of each job in the order of submission, s; jobs whose wait is not known are passed over.
        jobs: jobs a batch; of a trace with fewer, all are one batch.
        most: batches at most.

    Columns: ``batch`` (counted from 1 over the whole trace), ``jobs``, ``above`` (jobs that wait longer than the median
    of all of the trace's), ``wait_h`` (waits of the batch together, hours), ``median_wait_s`` (that median),
    ``of_batches`` (whole batches of the trace). Raises DataError when no wait is known.
    """
    known = wait_s.dropna().to_numpy(np.float64)
    if not len(known):
        raise DataError("no job's wait is known; record one (`wait_s`, or `start_s`), or simulate it")
    length = min(jobs, len(known))
    count = len(known) // length
    rows = known[: count * length].reshape(count, length)
    total = np.r_[0.0, np.cumsum(rows.sum(axis=1))]
    shown = min(most, count)
    first = int(np.argmax(total[shown:] - total[:-shown]))
    rows = rows[first : first + shown]
    median = float(np.median(known))
    return pd.DataFrame(
        {
            "batch": np.arange(first, first + shown) + 1,
            "jobs": length,
            "above": (rows > median).sum(axis=1),
            "wait_h": rows.sum(axis=1) / HOUR_S,
            "median_wait_s": median,
            "of_batches": count,
        }
    )


def arrivals(jobs: pd.DataFrame, meta: TraceMeta) -> pd.DataFrame:
    """Submissions an hour, by hour of the day and by day of the week, in the cluster's time zone.

    Columns: ``by`` (hour or weekday), ``bin`` (0–23; 0 is Monday), ``jobs``, ``hours`` (how many such hours the trace
    spans), ``jobs_per_h``, ``relative`` (that over the trace's mean; 1: as ever). A bin that the trace does not span
    has no rate.
    """
    t0 = pd.Timestamp(meta.t0)
    submitted = (t0 + pd.to_timedelta(jobs["submit_s"].to_numpy(), unit="s")).tz_convert(meta.time_zone)
    first = t0.tz_convert("UTC").floor("h")
    spanned = first + pd.to_timedelta(np.arange((submitted[-1] - first) // pd.Timedelta("1h") + 1), unit="h")
    spanned = spanned.tz_convert(meta.time_zone)
    mean = len(jobs) / len(spanned)
    parts = []
    for by, bins in (("hour", 24), ("weekday", 7)):
        count, hours = (np.bincount(getattr(t, by), minlength=bins) for t in (submitted, spanned))
        rate = np.where(hours > 0, count / np.maximum(hours, 1), np.nan)
        counted = {"by": by, "bin": np.arange(bins), "jobs": count, "hours": hours}
        parts.append(pd.DataFrame({**counted, "jobs_per_h": rate, "relative": rate / mean}))
    return pd.concat(parts, ignore_index=True)


def busiest_share(jobs: pd.DataFrame) -> float:
    """Share of the jobs that come in the busiest tenth of the trace's hours: 0.1 were they spread evenly."""
    count = np.bincount((jobs["submit_s"].to_numpy() // HOUR_S).astype(np.int64))
    most = np.sort(count)[::-1][: max(1, round(0.1 * len(count)))]
    return float(most.sum() / count.sum())


def run_times(jobs: pd.DataFrame) -> pd.DataFrame:
    """Distribution of run times: ``run_s``, and the shares of jobs (``jobs``) and of GPU-time, of CPU traces CPU-time
    (``work``; null where no job's size is known), that jobs of at most this run time have."""
    run = np.sort(jobs["run_s"].to_numpy(np.float64))
    work = _work(jobs)[np.argsort(jobs["run_s"].to_numpy(np.float64), kind="stable")]
    points = np.geomspace(run[0], run[-1], RUN_POINTS)
    points[-1] = run[-1]
    below = np.searchsorted(run, points, side="right")
    total = np.r_[0.0, np.cumsum(work)]
    share = total[below] / total[-1] if total[-1] > 0 else np.nan
    return pd.DataFrame({"run_s": points, "jobs": below / len(run), "work": share})


def sizes(jobs: pd.DataFrame) -> pd.DataFrame:
    """Distribution of sizes (GPUs, of CPU traces CPUs): ``most``, a power of two, and the shares of jobs (``jobs``)
    and of GPU- or CPU-time (``work``) of those above half of it and up to it. Jobs of unknown size count nowhere."""
    size, work = job_size(jobs), _work(jobs)
    there = size > 0
    if not there.any():
        return pd.DataFrame({"most": [], "jobs": [], "work": []}, dtype=np.float64)
    bins = np.ceil(np.log2(np.maximum(size[there], 1.0)) - 1e-9).astype(np.int64)
    count, load = np.bincount(bins), np.bincount(bins, weights=work[there])
    return pd.DataFrame({"most": 2.0 ** np.arange(len(count)), "jobs": count / count.sum(), "work": load / load.sum()})


def _work(jobs: pd.DataFrame) -> np.ndarray:
    """GPU-seconds (CPU-seconds) of each job; 0 where its size is not known."""
    return np.maximum(job_size(jobs), 0.0) * jobs["run_s"].to_numpy(np.float64)
