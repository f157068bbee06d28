"""Feature sets: their widths, what may be switched, and that each feature has its words."""

from __future__ import annotations

from rltune.environment.features import CLUSTER, CRITIC, ENGINEERED, FEATURE_SETS, FEATURES, VISIBLE, columns_of


def test_at_most_two_columns_are_switched_and_a_third_says_which() -> None:
    for name in FEATURE_SETS:
        columns = columns_of(name)
        switched = [c for c in columns if c.switched]
        assert len(switched) <= 2
        assert bool(switched) == any(c.names == ("scattered", "scattered") for c in columns)
        assert all(c.weights == (1, 1) for c in columns if not c.switched)
    assert not any(c.switched for c in CRITIC)


def test_every_feature_has_a_category_of_the_papers_table() -> None:
    assert {m.category for m in FEATURES.values()} == {VISIBLE, CLUSTER, ENGINEERED}
    assert not any(m.raw for m in FEATURES.values() if m.category == ENGINEERED)
    assert {c.names[0] for c in FEATURE_SETS["raw"]} <= {name for name, m in FEATURES.items() if m.raw}


def test_columns_of_each_set() -> None:
    switched = "log_estimate or 2 · job_size, 2 · urgency or log_wait"
    assert {name: ", ".join(map(str, columns)) for name, columns in {**FEATURE_SETS, "critic": CRITIC}.items()} == {
        "raw": "gpus, estimate, submit, cpus, memory, vc, gpu_type, wait",
        "engineered": f"log_gpus, {switched}, dsr, future_availability, can_schedule_now, sampled_ways, scattered",
        "engineered7": f"log_gpus, {switched}, dsr, future_availability, sampled_ways, scattered",
        "engineered9": f"log_gpus, {switched}, dsr, future_availability, can_schedule_now, sampled_ways, scattered, cff",
        "unsampled": "log_gpus, job_size, urgency, dsr, future_availability, can_schedule_now, num_ways, cff",
        "rlscheduler": "wait, estimate, gpus, memory, vc, can_schedule_now",
        "rich": "log_gpus, log_estimate, job_size, log_wait, urgency, dsr, future_availability, can_schedule_now, num_ways, "
        "cff, rank_size, rank_estimate, rank_gpus, rank_wait, place, queue_length, free_share, backlog, next_release",
        "critic": "submit, estimate, gpus, can_schedule_now, wait",
    }
