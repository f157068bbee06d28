"""A live cluster in the simulator, which jobs are ranked, their order, and their priorities."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from fake_slurm import (
    BAND,
    NOW_S,
    FakeSlurm,
    busy,
    controller,
    five_nodes,
    job,
    make_config,
    node,
    priorities,
    running,
    write_policy,
)
from hypothesis import given, strategies as st
from pydantic import ValidationError

from rltune.agent.policy_file import TrainedPolicy, load_policy
from rltune.config.slurm import Band
from rltune.slurm.decide import assign, decide
from rltune.slurm.eligibility import ABOVE, OVERRIDDEN, RANKED, reason_to_leave
from rltune.slurm.observe import observe


@pytest.fixture
def policy(tmp_path: Path) -> TrainedPolicy:
    """A policy of random weights."""
    return load_policy(write_policy(tmp_path / "policy.npz"))


def test_the_cluster_is_seen_as_it_is():
    slurm = busy()
    slurm.machines[3] = node("k80-2", "k80", 2, used=0, state=frozenset({"DOWN"}))
    slurm.machines.append(node("other", "v100", 8, partitions=("elsewhere",)))
    view = observe(slurm.queue.values(), slurm.machines, make_config(), NOW_S)
    assert tuple(view.cluster.index) == ("p100-1", "p100-2", "k80-1", "m40-1")
    assert view.snapshot.free["gpus"].tolist() == [0, 1, 0, 0] and view.layout.types == ("p100", "k80", "m40")
    assert [one.id for one in (*view.running, *view.ranked)] == [1, 2, *range(10, 16)]
    assert view.snapshot.chunks.tolist() == [(0, 4), (1, 3)] and view.snapshot.free["cpu"][1] == 29_000
    assert view.snapshot.start_s.tolist() == [view.snapshot.now_s - 500] * 2
    assert view.jobs.estimate_s.tolist() == [3600.0] * 8


def test_whole_nodes_records_that_contradict_and_jobs_past_their_limit():
    jobs = [
        running(1, "p100-1", gpus=1, shared="NO"),
        running(2, "p100-2", gpus=4, time_limit_s=60.0),
        running(3, "k80-1", gpus=0, cpus=8),
        job(10, gpus=2, gpu_type="p100"),
        job(11, gpus=16),
        job(12, time_limit_s=None),
    ]
    view = observe(jobs, five_nodes(1, 3), make_config(), NOW_S)
    assert view.snapshot.free.tolist()[0] == (0, 0, 0), "others stay off a node that is one job's"
    assert view.left == {11: "no pool could hold it now"} and [one.id for one in view.ranked] == [10, 12]
    assert view.jobs.estimate_s[-1] == 86_400.0
    at = view.cluster.index["p100-2"]
    assert view.snapshot.free["gpus"][at] == 0


def test_a_job_without_a_limit_counts_as_the_longest():
    """Else --time=UNLIMITED would pass jobs with honest limits; of a running one no more than a day is expected."""
    jobs = [running(1, "p100-1", time_limit_s=None), job(10, time_limit_s=None), job(11, time_limit_s=172_800.0)]
    view = observe(jobs, five_nodes(1), make_config(), NOW_S)
    assert view.jobs.estimate_s.tolist() == [86_400.0, 172_800.0, 172_800.0]


def test_partitions_that_share_nodes_are_one_pool(policy):
    machines = [node("a", partitions=("gpu", "long")), node("b", partitions=("long",)), node("c", partitions=("x",))]
    jobs = [job(1, partition="gpu"), job(2, partition="long"), job(3, partition="x")]
    config = make_config(eligible={"partitions": ["gpu", "long", "x"]})
    view = observe(jobs, machines, config, NOW_S)
    assert [len(pool.groups) for pool in view.cluster.config.pools] == [1, 1]
    orders = decide(view, policy, config).orders
    assert sorted(map(sorted, orders.values())) == [[1, 2], [3]]


def test_a_job_of_one_node_does_not_fit_several_smaller_ones(policy):
    full = [running(7, "p100-1", gpus=4), running(8, "p100-2", gpus=4)]
    view = observe([*full, job(1, gpus=4)], five_nodes(4, 4), make_config(), NOW_S)
    assert view.ranked and decide(view, policy, make_config()).starts == {}
    two = observe([*full, job(1, gpus=4, nodes=2)], five_nodes(4, 4), make_config(), NOW_S)
    assert decide(two, policy, make_config()).starts == {1: {"k80-1": 2, "k80-2": 2}}
    some = observe([*full, job(1, gpus=4, spreads=True)], five_nodes(4, 4), make_config(), NOW_S)
    assert decide(some, policy, make_config()).starts == {1: {"k80-1": 2, "k80-2": 2}}, (
        "--gpus=4 alone: as many as needed"
    )


def test_a_completing_job_is_expected_to_end_soon():
    ends = [running(1, "p100-1", gpus=4), running(2, "p100-2", gpus=4, state="COMPLETING")]
    snapshot = observe([*ends, job(10)], five_nodes(4, 4), make_config(), NOW_S).snapshot
    assert (snapshot.end_s - snapshot.now_s).tolist() == [3100.0, 60.0]


def test_nodes_that_are_to_restart_once_they_are_idle_still_get_jobs():
    assert node("a", state=frozenset({"IDLE", "REBOOT_REQUESTED"})).usable
    assert not node("a", state=frozenset({"IDLE", "REBOOT_REQUESTED", "DRAIN"})).usable
    assert not node("a", state=frozenset({"IDLE", "REBOOT_ISSUED"})).usable


def test_the_ranking_is_the_policys_own(tmp_path):
    """With a base_policy_bias so large that the network has no say, the order is the base policy's."""
    slurm = busy(40)
    for k, number in enumerate(sorted(n for n in slurm.queue if n >= 10)):
        slurm.change(number, time_limit_s=60.0 * ((k * 7) % 40 + 1))
    scheduler = {"policy": "sjf", "backfill": "easy", "placement": "best_fit", "locality": "strict"}
    scheduler |= {"split_worth": 1.0, "types": "auto", "gpu_price": 0.0, "uses_calibrated": False}
    write_policy(tmp_path / "policy.npz", base_policy_bias=1e6, scheduler=scheduler)
    made = controller(slurm, tmp_path)
    made.cycle()
    given = priorities(slurm)
    by_limit = sorted(given, key=lambda n: slurm.queue[n].time_limit_s or 0)
    assert by_limit == sorted(given, key=lambda n: -given[n])


def test_jobs_whose_resources_others_use_do_not_stop_it(tmp_path):
    """A job without GPUs has the CPUs of the only M40 node; a job waits for the M40."""
    nodes = five_nodes(4, 4, 2, 2, 0)
    nodes[4] = replace(nodes[4], cpus_alloc=32)
    jobs = [
        running(1, "p100-1", gpus=4),
        running(3, "m40-1", gpus=0, cpus=32),
        job(10, gpus=1, gpu_type="m40"),
        job(11, gpus=2),
        job(12, gpus=4),
        running(4, "p100-2", gpus=4, start_s=None),
    ]
    made = controller(FakeSlurm({one.id: one for one in jobs}, nodes), tmp_path)
    assert made.cycle().ranked == 2
    assert "in use by jobs without GPUs" in made.view.left[10]


@pytest.mark.parametrize(
    ("change", "eligible", "why"),
    [
        ({}, {}, RANKED),
        ({"partition": "cpu"}, {}, "another partition"),
        ({"partition": "gpu,cpu"}, {}, "also requests a partition that is not ranked"),
        ({}, {"users": ["grace"]}, "another user"),
        ({}, {"accounts": ["other"]}, "another account"),
        ({"qos": "sla"}, {"exclude_qos": ["sla"]}, "its QOS is left to Slurm"),
        ({"qos": "normal,sla"}, {"exclude_qos": ["sla"]}, "its QOS is left to Slurm"),
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
        ({"priority": 777}, {"priority_below": 50_000}, OVERRIDDEN),
        ({"reason": "QOSMaxGRESPerUser"}, {}, "waits for QOSMaxGRESPerUser"),
    ],
)
def test_which_jobs_are_left_to_slurm_and_why(change, eligible, why):
    """Somebody has set the priority 777."""
    rules = make_config(eligible={"partitions": ["gpu"], **eligible}).eligible
    owned = change.get("priority", 0) in BAND
    waiting = job(7, **change)
    assert reason_to_leave(waiting, rules, NOW_S, owned, waiting.priority == 777, BAND.high) == why


@given(st.data())
def test_priorities_follow_the_order_inside_the_band_with_the_fewest_writes(data):
    n = data.draw(st.integers(0, 8))
    order = data.draw(st.permutations(range(n)))
    ends = data.draw(st.booleans())  # priorities next to the band's ends leave no room between them
    inside = st.integers(BAND.low, BAND.low + 20) if ends else st.integers(BAND.low + 40, BAND.high - 40)
    value = st.one_of(st.just(5000), inside)
    current = {number: data.draw(value) for number in order}
    changed = assign(order, current, BAND)
    after = [changed.get(number, current[number]) for number in order]
    assert all(a > b for a, b in zip(after, after[1:])) and all(BAND.low <= p <= BAND.high for p in after)
    assert assign(order, dict(zip(order, after, strict=True)), BAND) == {}
    values = [current[number] for number in order if current[number] in BAND]
    falling = [k for k in range(n + 1) for some in combinations(values, k) if list(some) == sorted({*some})[::-1]]
    assert ends or len(changed) == n - max(falling), "no more jobs are written to than the order needs"


def test_a_queue_longer_than_the_band_is_refused():
    with pytest.raises(ValueError, match="widen it"):
        assign(range(20_002), {}, Band(low=1, high=20_001))


@pytest.mark.parametrize(
    ("band", "words"),
    [
        ([1_000_000, 1_019_999], "found 1000000 to 1019999, expected a band of 20,000 priorities or more"),
        ([2_000_000, 1_000_000], "expected a band of 20,000"),
        ([0, 1_000_000], "from 1 to 4294967293"),
        ([1_000_000, 2**32 - 2], "from 1 to 4294967293"),
        ({"low": 1_000_000, "high": 2_000_000}, "expected the lowest and the highest priority, such as"),
    ],
)
def test_a_band_that_cannot_be_is_refused(band, words):
    with pytest.raises(ValidationError, match=words):
        make_config(band=band)
