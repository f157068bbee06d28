"""Which waiting jobs are ranked, and the words for why others are left to Slurm."""

from __future__ import annotations

import pytest
from fake_slurm import BAND, NOW_S, job, make_config

from rltune.slurm.scope import ABOVE, RANKED, why_left


@pytest.mark.parametrize(
    ("change", "scope", "why"),
    [
        ({}, {}, RANKED),
        ({"partition": "cpu"}, {}, "another partition"),
        ({"partition": "gpu,cpu"}, {}, "asks for a partition that is not ranked, too"),
        ({}, {"users": ["grace"]}, "another user"),
        ({}, {"not_users": ["ada"]}, "its user is left to Slurm"),
        ({}, {"accounts": ["other"]}, "another account"),
        ({}, {"qos": ["high"]}, "another QOS"),
        ({"qos": "sla"}, {"not_qos": ["sla"]}, "its QOS is left to Slurm"),
        ({"state": "REQUEUED"}, {}, "in state REQUEUED"),
        ({"priority": 0, "held": True, "reason": "JobHeldUser"}, {}, "held"),
        ({"dependency": "afterok:7(unfulfilled)"}, {}, "depends on other jobs"),
        ({"eligible_s": NOW_S + 60}, {}, "begins later"),
        ({"eligible_s": NOW_S - 60}, {}, RANKED),
        ({"het_id": 4}, {}, "part of a heterogeneous job"),
        ({"array_id": 4}, {}, "task of an array"),
        ({"array_id": 4}, {"arrays": "rank"}, RANKED),
        ({"constraint": "nvlink"}, {}, "asks for features of nodes"),
        ({"constraint": "nvlink"}, {"constraints": "rank"}, RANKED),
        ({"gpus": 0}, {}, "asks for no GPU"),
        ({"gpus_by_type": {"p100": 1, "k80": 1}}, {}, "asks for GPUs of several types"),
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
def test_who_is_left_to_slurm_and_why(change: dict, scope: dict, why: str) -> None:
    rules = make_config(scope={"partitions": ["gpu"], **scope}).scope
    assert why_left(job(7, **change), rules, NOW_S, ours=change.get("priority", 0) in BAND, most=BAND.high) == why


def test_a_priority_that_somebody_has_set_is_a_reason_whatever_it_is() -> None:
    rules = make_config(scope={"partitions": ["gpu"], "priority_below": 50_000}).scope
    assert why_left(job(7, priority=777), rules, NOW_S, theirs=True) == "somebody has set its priority"
