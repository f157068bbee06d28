"""Utilisation: allocated GPU-seconds over GPUs × makespan (paper §4.4)."""

from rltune.metrics.metric import Metric


def compute(jobs, gpus):
    """Share of all GPU-seconds from the first submission to the last completion."""
    grouped = jobs.groupby("sequence")
    makespan = grouped["end_s"].max() - grouped["submit_s"].min()
    area = (jobs["gpus"] * (jobs["end_s"] - jobs["start_s"])).groupby(jobs["sequence"]).sum()
    return area / (gpus * makespan)


METRIC = Metric(
    "utilisation",
    "utilisation",
    compute,
    noun="GPU utilisation",
    short="Utilisation",
    improvement="Higher utilisation",
    words=("higher", "lower"),
    format="percent",
    higher_is_better=True,
    floor=1e-3,
    trained_column="utilisation_span",
    rank=3,
)
