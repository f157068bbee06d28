"""A live cluster as the simulator sees it, and what is decided of it: free and taken, pools, types, the policy's order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_slurm import (
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

from rltune.agent.policy_file import TrainedPolicy, load_policy
from rltune.slurm.decide import decide
from rltune.slurm.observe import observe


@pytest.fixture
def policy(tmp_path: Path) -> TrainedPolicy:
    """A policy of random weights."""
    return load_policy(write_policy(tmp_path / "policy.npz"))


def test_the_cluster_is_seen_as_it_is() -> None:
    slurm = busy()
    slurm.machines[3] = node("k80-2", "k80", 2, used=0, state=frozenset({"DOWN"}))
    slurm.machines.append(node("other", "v100", 8, partitions=("elsewhere",)))
    view = observe(slurm.queue.values(), slurm.machines, make_config(), NOW_S)
    assert view is not None and tuple(view.cluster.index) == ("p100-1", "p100-2", "k80-1", "m40-1")
    assert view.found.free["gpus"].tolist() == [0, 1, 0, 0] and view.layout.types == ("p100", "k80", "m40")
    assert view.running == (1, 2) and [one.id for one in view.ranked] == list(range(10, 16))
    assert view.found.chunks.tolist() == [(0, 4), (1, 3)] and view.found.free["cpu"][1] == 29_000
    assert view.found.start_s.tolist() == [view.found.now_s - 500] * 2
    assert view.jobs.estimate_s.tolist() == [3600.0] * 8


def test_whole_nodes_records_that_contradict_and_jobs_past_their_limit() -> None:
    jobs = [
        running(1, "p100-1", gpus=1, shared="NO"),
        running(2, "p100-2", gpus=4, time_limit_s=60.0),
        running(3, "k80-1", gpus=0, cpus=8),
        job(10, gpus=2, gpu_type="p100"),
        job(11, gpus=16),
        job(12, time_limit_s=None),
    ]
    view = observe(jobs, five_nodes(1, 3), make_config(), NOW_S)
    assert view is not None and view.found.free.tolist()[0] == (0, 0, 0), "others stay off a node that is one job's"
    assert view.left == {11: "no pool could hold it now"} and [one.id for one in view.ranked] == [10, 12]
    assert view.jobs.estimate_s[-1] == 86_400.0
    at = view.cluster.index["p100-2"]
    assert view.found.free["gpus"][at] == 0


def test_partitions_that_share_nodes_are_one_pool_and_others_are_ranked_apart(policy: TrainedPolicy) -> None:
    machines = [node("a", partitions=("gpu", "long")), node("b", partitions=("long",)), node("c", partitions=("x",))]
    jobs = [job(1, partition="gpu"), job(2, partition="long"), job(3, partition="x")]
    config = make_config(eligible={"partitions": ["gpu", "long", "x"]})
    view = observe(jobs, machines, config, NOW_S)
    assert view is not None and [len(pool.groups) for pool in view.cluster.config.pools] == [1, 1]
    orders = decide(view, policy, config).orders
    assert sorted(map(sorted, orders.values())) == [[1, 2], [3]]


def test_a_job_that_asks_one_node_for_its_gpus_is_not_thought_to_go_on_smaller_nodes(policy: TrainedPolicy) -> None:
    full = [running(7, "p100-1", gpus=4), running(8, "p100-2", gpus=4)]
    view = observe([*full, job(1, gpus=4)], five_nodes(4, 4), make_config(), NOW_S)
    assert view is not None and view.ranked and decide(view, policy, make_config()).starts == {}
    two = observe([*full, job(1, gpus=4, nodes=2)], five_nodes(4, 4), make_config(), NOW_S)
    assert two is not None and decide(two, policy, make_config()).starts == {1: {"k80-1": 2, "k80-2": 2}}


def test_the_ranking_is_the_policys_own(tmp_path: Path) -> None:
    """With a base_policy_bias so large that the network has no say, the order is the base policy's."""
    slurm = busy(40)
    for k, number in enumerate(sorted(n for n in slurm.queue if n >= 10)):
        slurm.change(number, time_limit_s=60.0 * ((k * 7) % 40 + 1))
    scheduler = {"policy": "sjf", "backfill": "easy", "placement": "best_fit", "locality": "strict"}
    scheduler |= {"split_worth": 1.0, "types": "auto", "gpu_price": 0.0, "uses_calibrated": False}
    write_policy(tmp_path / "policy.npz", base_policy_bias=1e6, scheduler=scheduler)
    made = controller(slurm, tmp_path)
    made.cycle()
    mine = priorities(slurm)
    by_limit = sorted(mine, key=lambda n: slurm.queue[n].time_limit_s or 0)
    assert by_limit == sorted(mine, key=lambda n: -mine[n])


def test_jobs_that_others_hold_the_room_of_do_not_stop_it(tmp_path: Path) -> None:
    """The CPUs of the only m40 node are a CPU job's, for as long as it likes; a job waits for the m40."""
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
    assert made.cycle().ranked == 2 and made.view is not None
    assert "in use by jobs without GPUs" in made.view.left[10]
