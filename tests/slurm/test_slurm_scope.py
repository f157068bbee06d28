"""Which waiting jobs are ranked, and the words for why others are left to Slurm."""

from __future__ import annotations

import pytest
from fake_slurm import BAND, NOW_S, job, make_config

from rltune.slurm.eligibility import ABOVE, RANKED, reason_to_leave


@pytest.mark.parametrize(
    ("change", "eligible", "why"),
    [
        ({}, {}, RANKED),
        ({"partition": "cpu"}, {}, "another partition"),
        ({"partition": "gpu,cpu"}, {}, "also requests a partition that is not ranked"),
        ({}, {"users": ["grace"]}, "another user"),
        ({}, {"accounts": ["other"]}, "another account"),
        ({"qos": "sla"}, {"exclude_qos": ["sla"]}, "its QOS is left to Slurm"),
        ({"state": "REQUEUED"}, {}, "in state REQUEUED"),
        ({"priority": 0, "held": True, "reason": "JobHeldUser"}, {}, "held"),
        ({"dependency": "afterok:7(unfulfilled)"}, {}, "depends on other jobs"),
        ({"eligible_s": NOW_S + 60}, {}, "begins later"),
        ({"eligible_s": NOW_S - 60}, {}, RANKED),
        ({"het_id": 4}, {}, "part of a heterogeneous job"),
        ({"array_id": 4}, {}, "task of an array"),
        ({"array_id": 4}, {"also": ["arrays"]}, RANKED),
        ({"constraint": "nvlink"}, {}, "requests features of nodes"),
        ({"constraint": "nvlink"}, {"also": ["constraints"]}, RANKED),
        ({"gpus": 0}, {}, "requests no GPU"),
        ({"gpus_by_type": {"p100": 1, "k80": 1}}, {}, "requests GPUs of several types"),
        ({"priority": 90_000}, {"priority_below": 50_000}, "high priority"),
        ({"priority": BAND.low + 5}, {"priority_below": 50_000}, RANKED),
        ({"priority": 90_000}, {}, RANKED),
        ({"priority": BAND.high}, {}, RANKED),
        ({"priority": BAND.high + 1}, {}, ABOVE),
        ({"priority": BAND.high + 1}, {"priority_below": BAND.high + 2}, RANKED),
        ({"priority": BAND.high + 2}, {"priority_below": BAND.high + 2}, "high priority"),
        ({"reason": "QOSMaxGRESPerUser"}, {}, "waits for QOSMaxGRESPerUser"),
    ],
)
def test_who_is_left_to_slurm_and_why(change: dict, eligible: dict, why: str) -> None:
    rules = make_config(eligible={"partitions": ["gpu"], **eligible}).eligible
    assert (
        reason_to_leave(job(7, **change), rules, NOW_S, owned=change.get("priority", 0) in BAND, most=BAND.high) == why
    )


def test_a_priority_that_somebody_has_set_is_a_reason_whatever_it_is() -> None:
    rules = make_config(eligible={"partitions": ["gpu"], "priority_below": 50_000}).eligible
    assert reason_to_leave(job(7, priority=777), rules, NOW_S, overridden=True) == "somebody has set its priority"
