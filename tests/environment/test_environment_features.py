"""Feature sets: their columns, and the category of each feature."""

from rltune.environment.features import CLUSTER, CRITIC, ENGINEERED, FEATURE_SETS, FEATURES, VISIBLE


def test_every_feature_has_a_category_of_the_papers_table():
    assert {m.category for m in FEATURES.values()} == {VISIBLE, CLUSTER, ENGINEERED}
    assert not any(m.raw for m in FEATURES.values() if m.category == ENGINEERED)
    assert {c.names[0] for c in FEATURE_SETS["raw"]} <= {name for name, m in FEATURES.items() if m.raw}


def test_columns_of_each_set():
    switched = "log_estimate or 2 · job_size, 2 · urgency or log_wait"
    assert {name: ", ".join(map(str, columns)) for name, columns in {**FEATURE_SETS, "critic": CRITIC}.items()} == {
        "raw": "gpus, estimate, submit, cpus, memory, vc, gpu_type, wait",
        "engineered": f"log_gpus, {switched}, dsr, future_availability, can_schedule_now, sampled_ways, scattered",
        "engineered7": f"log_gpus, {switched}, dsr, future_availability, sampled_ways, scattered",
        "engineered9": f"log_gpus, {switched}, dsr, future_availability, can_schedule_now, sampled_ways, scattered, cff",
        "unsampled": "log_gpus, job_size, urgency, dsr, future_availability, can_schedule_now, num_ways, cff",
        "rlscheduler": "wait, estimate, gpus, memory, vc, can_schedule_now",
        "rich": "log_gpus, log_estimate, job_size, log_wait, urgency, dsr, future_availability, can_schedule_now, num_ways, "
        "cff, rank_size, rank_estimate, rank_gpus, rank_wait, rank_base, queue_length, free_share, backlog, next_release",
        "critic": "submit, estimate, gpus, can_schedule_now, wait",
    }
