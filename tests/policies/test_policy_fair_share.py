"""Slurm's multifactor order: known decayed usage and fair shares, and what they do to a schedule."""

import numpy as np
import pytest
from workload_cases import cluster, compiled, group

from rltune.policies.multifactor import HALF_LIFE_S
from rltune.reference.usage import Usage
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.state import SHARE
from rltune.simulator.usage import decayed, fair_share, know, use

RATE = np.log(2) / HALF_LIFE_S


def test_usage_builds_up_and_halves_every_week():
    """Four GPUs for 1000 s, of which the first seconds have decayed a little; a week later half is left."""
    share = np.zeros(2, SHARE)
    use(share, 0, 0.0, 4)
    used = 4 * (1 - np.exp(-RATE * 1000)) / RATE
    assert 3997 < used < 4000
    assert decayed(share[0], 1000.0) == pytest.approx(used)
    use(share, 0, 1000.0, -4)
    for weeks in range(4):
        assert decayed(share[0], 1000.0 + weeks * HALF_LIFE_S) == pytest.approx(used / 2**weeks)
        assert decayed(share[1], 1000.0 + weeks * HALF_LIFE_S) == pytest.approx(used / 2**weeks)


def test_fair_shares_of_two_accounts():
    """Each is to have a half. Nobody has used anything: 1. One all: 2^−2 and 1. Three to one: 2^−1.5 and 2^−0.5."""
    share, plain = np.zeros(3, SHARE), Usage()
    for account in (0, 1, 1):
        know(share, account)
        plain.known.add(account)

    def change(account: int, now: float, gpus: int) -> None:
        use(share, account, now, gpus)
        plain.use(account, now, gpus)

    def factors(now: float) -> list[float]:
        found = [fair_share(share, account, now) for account in (0, 1)]
        assert found == [plain.fair_share(account, now) for account in (0, 1)]
        return found

    assert factors(0.0) == [1, 1]
    change(0, 0.0, 3)
    assert factors(0.0) == [1, 1]
    assert factors(10.0) == pytest.approx([0.25, 1])
    change(1, 10.0, 3)
    change(0, 10.0, -3)
    assert factors(20.0) == pytest.approx([0.5, 0.5], rel=1e-4)  # the first seconds count a little less by now
    change(1, 20.0, -3)
    change(0, 20.0, 3)
    assert factors(40.0) == pytest.approx([2**-1.5, 2**-0.5], rel=1e-4)
    # the shares of what is used stay as they are while all of it decays
    change(0, 40.0, -3)
    assert factors(40.0 + 3 * HALF_LIFE_S) == pytest.approx(factors(40.0))


def starts(rows: list[dict], policy: str = "multifactor", **more: str) -> list[float]:
    """Start times on a node of four GPUs."""
    jobs, layout = compiled(cluster([group(1, 4)]), rows)
    return simulate(jobs, layout, [0], [len(rows)], SchedulerConfig(policy, **more), check=True).start[0].tolist()


def test_the_account_that_has_used_less_goes_first():
    """At 100 all use is u's: 2^−2 for u, 1 for v; a second of age more is nothing to that."""
    rows = [
        {"gpus": 4, "user": "u", "run_s": 100.0},
        {"gpus": 4, "user": "u", "run_s": 50.0, "submit_s": 1.0},
        {"gpus": 4, "user": "v", "run_s": 50.0, "submit_s": 2.0},
    ]
    assert starts(rows) == [0, 150, 100]
    assert starts([{**row, "user": "u"} for row in rows]) == [0, 100, 150]


def test_without_users_the_virtual_clusters_share():
    """Pools as partitions of one queue: what counts is whose jobs have run, wherever."""
    config = cluster([group(1, 4)], [group(1, 4)])
    rows = [{"gpus": 4, "vc": vc, "run_s": 100.0} for vc in ("a", "b", "a", "b")]
    jobs, _ = compiled(config, rows)
    assert jobs.account.tolist() == [0, 1, 0, 1]
    jobs, _ = compiled(config, [{**row, "user": "u"} for row in rows])
    assert jobs.account.tolist() == [0, 0, 0, 0]
    jobs, _ = compiled(cluster([group(1, 4)]), [{}, {"vc": "a"}, {}])
    assert jobs.account.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("policy", "expected"), [("multifactor", [0, 60, 10, 70]), ("multifactor_size", [0, 110, 60, 10])]
)
def test_the_job_attribute_is_the_time_or_the_size(policy, expected):
    """One user, one job at a time by memory: estimates of 50, 2000 and 9000 s; or four GPUs, two, one."""
    rows = [
        {"gpus": 1, "mem_gb": 128.0, "run_s": 10.0},
        {"gpus": 1, "mem_gb": 128.0, "run_s": 10.0, "requested_s": 2000.0, "submit_s": 1.0},
        {"gpus": 2, "mem_gb": 128.0, "run_s": 50.0, "requested_s": 50.0, "submit_s": 1.0},
        {"gpus": 4, "mem_gb": 128.0, "run_s": 50.0, "requested_s": 9000.0, "submit_s": 1.0},
    ]
    assert starts([{**row, "user": "u"} for row in rows], policy) == expected


@pytest.mark.parametrize(("priorities", "expected"), [([1.0, 1.0], [0, 0, 100, 200]), ([1.0, 4.0], [0, 0, 200, 200])])
def test_partitions_rank_pools_in_one_queue(priorities, expected):
    """Pool a is busy until 100, b until 200. The third job, of a, is first where the pools are equal; where b counts
    for four, the fourth is committed to and holds the third up."""
    config = cluster([group(1, 4)], [group(1, 4)], priorities=priorities)
    rows = [
        {"vc": vc, "gpus": 4, "user": "u", "run_s": run, "submit_s": submit}
        for vc, run, submit in (("a", 100.0, 0.0), ("b", 200.0, 0.0), ("a", 50.0, 1.0), ("b", 50.0, 1.0))
    ]
    jobs, layout = compiled(config, rows)
    scheduler = SchedulerConfig("multifactor", sticky_head=True)
    assert simulate(jobs, layout, [0], [4], scheduler, check=True).start[0].tolist() == expected


def test_age_overtakes_a_fair_share_in_days():
    """u has used all: 2^−2 to v's 1. A job of u that is older by six days (6/7 > 3/4) goes first, by five (5/7) not."""
    day = 86400.0

    def order(days: float) -> list[float]:
        rows = [
            {"gpus": 4, "user": "u", "run_s": 6.5 * day, "requested_s": 60.0},
            {"gpus": 4, "user": "u", "run_s": 60.0, "submit_s": 0.2 * day},
            {"gpus": 4, "user": "v", "run_s": 60.0, "submit_s": (0.2 + days) * day},
        ]
        return [start - 6.5 * day for start in starts(rows)[1:]]

    assert order(6.0) == [0, 60]
    assert order(5.0) == [60, 0]


def test_accounts_that_come_later_change_nothing_before():
    """A share is one over the accounts that have come so far: held-out jobs cannot reach back."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "gpus": int(rng.choice([1, 2, 4])),
            "user": str(rng.choice(["u", "v"])),
            "run_s": float(rng.integers(50, 900)),
            "submit_s": 40.0 * i,
        }
        for i in range(60)
    ]
    late = [{"gpus": 1, "user": f"new{i}", "run_s": 10.0, "submit_s": 1e6 + i} for i in range(5)]
    for backfill in ("none", "easy"):
        assert starts(rows + late, backfill=backfill)[:60] == starts(rows, backfill=backfill)
