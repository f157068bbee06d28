"""Jobs with a history to learn from, and the same jobs with another future."""

import numpy as np
import pandas as pd

from rltune.traces.columns import TraceMeta, empty_columns
from rltune.traces.estimates.history import end_s

META = TraceMeta("t", "T", "own", "csv", "2020-01-01T00:00:00.000+00:00", "Asia/Shanghai", "a file")


def table(rows: list[dict]) -> pd.DataFrame:
    """A job table of these rows; what they do not name is not known."""
    jobs = empty_columns(len(rows)).assign(gpus=1)
    jobs["job_id"] = pd.Series([f"j{i:05d}" for i in range(len(rows))], dtype="str")
    given_rows = pd.DataFrame(rows)
    for name in given_rows:
        jobs[name] = given_rows[name].astype(jobs[name].dtype)
    return jobs


def generated(count: int, seed: int = 1) -> pd.DataFrame:
    """Jobs of a few users, each with its own run time; some waits, some limits."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 8, count)
    run = np.exp(rng.normal(4 + user / 2, 0.4))
    return table(
        [
            {
                "submit_s": s,
                "run_s": r,
                "user": f"u{u}" if u else None,
                "vc": ["a", "b", None][u % 3],
                "gpus": 2 ** (u % 3),
                "wait_s": w if u % 2 else None,
                "requested_s": 10 * r if u > 4 else None,
                "gpu_type": ["T4", None][u % 2],
            }
            for s, r, u, w in zip(np.sort(rng.uniform(0, 40.0 * count, count)), run, user, rng.exponential(100, count))
        ]
    )


def with_another_future(jobs: pd.DataFrame, now_s: float, factor: float) -> pd.DataFrame:
    """The same jobs, but changed in what is not known at ``now_s``: every run time that ends later, every later job."""
    later = end_s(jobs) > now_s
    gone = np.where(jobs["wait_s"].isna(), 0.0, jobs["wait_s"]) + jobs["submit_s"]
    run = np.maximum(jobs["run_s"] * factor, np.nextafter(now_s, np.inf) - gone + 1.0)
    out = jobs.assign(run_s=np.where(later, run, jobs["run_s"]))
    coming = (jobs["submit_s"] > now_s).to_numpy()
    out.loc[coming, ["user", "vc"]] = ["someone new", "somewhere new"]
    return out
