"""What each feature of rltune.environment.features says, in words, for tables; ``docs/reference/features.md`` says the same."""

from __future__ import annotations

from typing import NamedTuple

VISIBLE, CLUSTER, ENGINEERED = "visible job", "cluster", "engineered"
"""The categories of the paper's Table 3: of the job itself, of what is free and queued, and made of these."""


class Meaning(NamedTuple):
    """One feature in words."""

    category: str
    """VISIBLE, CLUSTER or ENGINEERED."""
    raw: bool
    """Whether it is one fact that is only scaled; else it is computed of several."""
    definition: str
    """How it is computed; *seconds* are estimated, *free* is now, *seen* are the jobs whose rows the agent gets."""
    source: str
    """T3: the paper's Table 3; eq.: an equation of its §3.2; ours; or whose else."""


MEANINGS: dict[str, Meaning] = {
    "gpus": Meaning(VISIBLE, True, "GPUs / 64, cut at 1", "T3, requested GPUs"),
    "estimate": Meaning(
        VISIBLE, True, "estimated run time / 12 h, cut at 1", "T3, requested time; scale of RLScheduler"
    ),
    "cpus": Meaning(
        VISIBLE, True, "CPUs / 512, cut at 1; where none were asked for, those that go with the GPUs", "T3, req_CPU"
    ),
    "memory": Meaning(
        VISIBLE, True, "memory / 4,096 GB, cut at 1; where none was asked for, what goes with the GPUs", "T3, req_mem"
    ),
    "vc": Meaning(VISIBLE, True, "number of the pool from 0 / pools", "T3, virtual cluster"),
    "gpu_type": Meaning(VISIBLE, True, "number of the first GPU type it may use, from 0 / types", "T3, GPU type"),
    "log_gpus": Meaning(VISIBLE, True, "log2(1 + GPUs) / 7, cut at 2", "ours: 128 GPUs are 1"),
    "log_estimate": Meaning(VISIBLE, True, "log10(1 + seconds) / 6, cut at 2", "ours: 12 days are 1"),
    "job_size": Meaning(ENGINEERED, False, "log10(1 + GPUs × seconds) / 8, cut at 2", "T3, job size"),
    "submit": Meaning(VISIBLE, True, "submission since the sequence's first / 12 h, cut at 1", "T3, submit time"),
    "wait": Meaning(VISIBLE, True, "wait so far / 12 h, cut at 1", "RLScheduler"),
    "log_wait": Meaning(VISIBLE, True, "log10(1 + seconds waited) / 6, cut at 2", "ours"),
    "urgency": Meaning(ENGINEERED, False, "wait / (wait + estimate)", "T3, job urgency score; formula ours"),
    "rank_size": Meaning(ENGINEERED, False, "share of the other jobs seen with less GPUs × seconds", "ours"),
    "rank_estimate": Meaning(ENGINEERED, False, "share of the other jobs seen with a shorter estimate", "ours"),
    "rank_gpus": Meaning(ENGINEERED, False, "share of the other jobs seen with fewer GPUs", "ours"),
    "rank_wait": Meaning(
        ENGINEERED, False, "share of the other jobs seen with a shorter wait: 1 has waited longest", "ours"
    ),
    "place": Meaning(ENGINEERED, False, "place in the order of the base policy: 0 first, 1 last", "ours"),
    "can_schedule_now": Meaning(CLUSTER, False, "1 when it could start now, under the run's locality", "T3"),
    "num_ways": Meaning(CLUSTER, False, "ways to place it now, counted to 8, / 8", "T3, num_ways_to_schedule"),
    "sampled_ways": Meaning(CLUSTER, False, "num_ways, doubled from two ways on", "§3.2, feature sampling"),
    "dsr": Meaning(
        ENGINEERED, False, "x / (1 + x), x = GPUs / free GPUs of the types it may use (at least 1)", "T3, eq. 1"
    ),
    "future_availability": Meaning(
        ENGINEERED,
        False,
        "(free − its GPUs + GPUs expected back within 1 h) / all, of its types, cut at ±1",
        "T3, eq. 2",
    ),
    "cff": Meaning(
        ENGINEERED,
        False,
        "fragmentation, 1 − Σ free² / Σ (node size × free) over nodes; 0 when nothing is free",
        "T3, eq. 3",
    ),
    "scattered": Meaning(CLUSTER, False, "1 when cff is above 0.5", "regime of the sampling"),
    "free_share": Meaning(CLUSTER, True, "free GPUs / GPUs", "§3.2"),
    "free_nodes": Meaning(CLUSTER, True, "nodes of which every GPU is free / nodes", "T3"),
    "queue_length": Meaning(
        CLUSTER, True, "log2(1 + jobs in the queue, unseen ones too) / 8, cut at 2", "ours: 255 jobs are 1"
    ),
    "backlog": Meaning(
        CLUSTER,
        False,
        "log10(1 + hours) / 3, cut at 2; hours the whole pool would need for the jobs seen",
        "ours: 1,000 h are 1",
    ),
    "next_release": Meaning(
        CLUSTER, False, "t / (t + 10 min), t until the next expected end in the pool; 1 when nothing runs", "ours"
    ),
}
"""By the names of FEATURES."""
