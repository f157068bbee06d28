"""Frames of what traces look like, as the chapter on traces would compute them."""

import io

import numpy as np
import pandas as pd

TRACES = {"philly": ("Philly", 8725.0), "venus": ("Helios Venus", 5113.0), "pai": ("Alibaba PAI", 38223.0)}


def parsed(text: str) -> pd.DataFrame:
    """A table whose columns are two spaces apart."""
    return pd.read_csv(io.StringIO(text), sep=r"\s{2,}", engine="python")


def statistics() -> pd.DataFrame:
    """Table 2 of our traces; one waited in a simulation."""
    return parsed("""\
trace         type  jobs_per_month  avg_wait_s  avg_run_s  arrival_per_s  alloc   wait_is
Philly        GPU   60000.0         2703.3      20000.0    0.0223         84602   recorded
Helios Venus  GPU   60001.0         1351.65     10000.0    0.0446         169204  simulated: FIFO on Cluster 1
Alibaba PAI   GPU   60002.0         901.1       6666.7     0.0669         253806  recorded
SDSC-SP2      CPU   2887.0          0.5         9.0        0.001          44416   recorded
""").assign(data="synthetic")


def summary() -> pd.DataFrame:
    """Table 4 of our traces."""
    titles = [title for title, _ in TRACES.values()]
    same = {"days": 75, "jobs": 96260, "gpus": 2490, "gpu_types": "P100", "users": 319, "data": "synthetic"}
    nodes = pd.array([552, None, None], dtype="Int64")
    return pd.DataFrame({"trace": titles, **same, "run_avg_s": 28329.0, "run_max_days": 60.0, "nodes": nodes})


def each(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows for every trace, a CPU trace among them."""
    who = [(t, "GPU") for t, _ in TRACES.values()] + [("SDSC-SP2", "CPU")]
    return pd.concat([frame.assign(trace=t, type=kind, data="synthetic") for t, kind in who], ignore_index=True)


def batches() -> pd.DataFrame:
    """Figure 6 of our GPU traces; one waited in a simulation."""
    one = pd.DataFrame({"batch": np.arange(41, 141), "above": np.arange(100) * 2, "wait_h": np.arange(100.0) ** 2})
    rows = each(one.assign(jobs=256, median_wait_s=12.0, of_batches=300))
    rows["wait_is"] = np.where(rows["trace"] == "Helios Venus", "simulated: FIFO on Cluster 1", "recorded")
    return rows[rows["type"] == "GPU"]


def arrivals() -> pd.DataFrame:
    """Arrivals of our traces, none seen at weekends."""
    hour = pd.DataFrame({"by": "hour", "bin": range(24), "relative": np.linspace(0.5, 1.5, 24)})
    day = pd.DataFrame({"by": "weekday", "bin": range(7), "relative": [1.0] * 5 + [np.nan] * 2})
    return each(pd.concat([hour, day], ignore_index=True).assign(busiest=0.4))


def run_times() -> pd.DataFrame:
    """Run times of our traces."""
    return each(pd.DataFrame({"run_s": [1.0, 60.0, 3600.0], "jobs": [0.2, 0.5, 1.0], "work": [0.0, 0.1, 1.0]}))


def sizes() -> pd.DataFrame:
    """Sizes of our traces."""
    return each(pd.DataFrame({"most": [1.0, 2.0, 4.0], "jobs": [0.7, 0.2, 0.1], "work": [0.1, 0.2, 0.7]}))


def estimates() -> pd.DataFrame:
    """Accuracy of two estimates of our traces."""
    return each(
        parsed("""\
estimate         jobs  modelled  median_abs_log  spearman  within_2  median_ratio
lognormal-1      900   1.0       0.67            0.9       0.5       1.0
history-rolling  900   0.99      1.1             nan       0.3       0.9
""")
    )


def loads() -> pd.DataFrame:
    """Offered load of every workload."""
    titles = [title for title, _ in TRACES.values()]
    load = {"load_all": [0.8, 1.8, 2.8], "load_test": [0.7, 1.7, 2.7]}
    return pd.DataFrame({"trace": titles, "cluster": "Cluster 1", "gpus": 192, "data": "synthetic", **load})
