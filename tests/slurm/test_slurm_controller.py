"""The controller against a Slurm in memory: who is written to, what is given back, and that nothing is lost on faults."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fake_slurm import NOW_S, FakeSlurm, controller, five_nodes, job, make_config, node, running, write_policy
from hypothesis import given
from hypothesis import strategies as st

from rltune.agent.policy_file import TrainedPolicy, load_policy
from rltune.config.load import project_root, read_block
from rltune.config.slurm import BandConfig, SlurmConfig
from rltune.errors import DataError, RLTuneError
from rltune.slurm.controller import Stop
from rltune.slurm.decide import decide
from rltune.slurm.folder import Busy, Folder, Touch, told
from rltune.slurm.observe import observe
from rltune.slurm.priorities import assign
from rltune.slurm.scope import RANKED, why_left
from rltune.slurm.service import DONE, FAILED, NOT_HANDED_BACK, Service

BAND = BandConfig()


def busy(n: int = 6) -> FakeSlurm:
    """Jobs that wait for a full cluster, but for one GPU."""
    jobs = [running(1, "p100-1", gpus=4), running(2, "p100-2", gpus=3)]
    jobs += [job(10 + k, gpus=1 + k % 2, reason="Resources" if k == 0 else "Priority") for k in range(n)]
    return FakeSlurm({told.id: told for told in jobs}, five_nodes(4, 3, 2, 2, 1))


def priorities(slurm: FakeSlurm) -> dict[int, int]:
    return {number: told.priority for number, told in slurm.queue.items() if told.state == "PENDING"}


def test_the_example_is_valid() -> None:
    root = project_root()
    read = read_block(root / "config/slurm/example.yaml", SlurmConfig, root)
    assert read.band == BAND and read.failures == SlurmConfig.model_fields["failures"].default


# ---- who is ranked

@pytest.mark.parametrize(("change", "scope", "why"), [
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
    ({"reason": "QOSMaxGRESPerUser"}, {}, "waits for QOSMaxGRESPerUser"),
])  # fmt: skip
def test_who_is_left_to_slurm_and_why(change: dict, scope: dict, why: str) -> None:
    rules = make_config(scope={"partitions": ["gpu"], **scope}).scope
    assert why_left(job(7, **change), rules, NOW_S, ours=BAND.low <= change.get("priority", 0)) == why


# ---- priorities

@given(st.data())
def test_priorities_follow_the_order_inside_the_band_with_the_fewest_writes(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 8))
    order = data.draw(st.permutations(range(n)))
    value = st.one_of(st.just(5000), st.integers(BAND.low, BAND.low + 20), st.integers(BAND.low, BAND.high))
    current = {number: data.draw(value) for number in order}
    changed = assign(order, current, BAND)
    after = [changed.get(number, current[number]) for number in order]
    assert all(a > b for a, b in zip(after, after[1:])) and all(BAND.low <= p <= BAND.high for p in after)
    assert assign(order, dict(zip(order, after, strict=True)), BAND) == {}
    kept = max((len(some) for some in _subsets([current[j] for j in order]) if _stands(some)), default=0)
    narrow = any(p < BAND.low + 40 or p > BAND.high - 40 for p in current.values() if p != 5000)
    assert len(changed) == n - kept or narrow, "no more jobs are written to than the order needs"


def _subsets(values: list[int]):
    for bits in range(1 << len(values)):
        yield [v for i, v in enumerate(values) if bits >> i & 1]


def _stands(values: list[int]) -> bool:
    inside = all(BAND.low <= v <= BAND.high for v in values)
    return inside and all(a > b for a, b in zip(values, values[1:]))


def test_a_queue_longer_than_the_band_is_refused() -> None:
    with pytest.raises(ValueError, match="widen it"):
        assign(range(20_002), {}, BandConfig(low=1, high=20_001))


# ---- what is observed

def test_the_cluster_is_seen_as_it_is() -> None:
    slurm = busy()
    slurm.machines[3] = node("k80-2", "k80", 2, used=0, state=frozenset({"DOWN"}))
    slurm.machines.append(node("other", "v100", 8, partitions=("elsewhere",)))
    view = observe(slurm.queue.values(), slurm.machines, make_config(), NOW_S)
    assert view is not None and view.nodes == ("p100-1", "p100-2", "k80-1", "m40-1")
    assert view.found.free["gpus"].tolist() == [0, 1, 0, 0] and view.layout.types == ("p100", "k80", "m40")
    assert view.running == (1, 2) and [told.id for told in view.ranked] == list(range(10, 16))
    assert view.found.chunks.tolist() == [(0, 4), (1, 3)] and view.found.free["cpu"][1] == 29_000
    assert view.found.start_s.tolist() == [view.found.now_s - 500] * 2
    assert view.jobs.estimate_s.tolist() == [3600.0] * 8


def test_whole_nodes_records_that_contradict_and_jobs_past_their_limit() -> None:
    jobs = [
        running(1, "p100-1", gpus=1, shared="NO"), running(2, "p100-2", gpus=4, time_limit_s=60.0),
        running(3, "k80-1", gpus=0, cpus=8), job(10, gpus=2, gpu_type="p100"), job(11, gpus=16), job(12, time_limit_s=None),
    ]  # fmt: skip
    view = observe(jobs, five_nodes(1, 3), make_config(default_limit_s=777.0), NOW_S)
    assert view is not None and view.found.free.tolist()[0] == (0, 0, 0), "others stay off a node that is one job's"
    assert view.left == {11: "no pool could hold it now"} and [told.id for told in view.ranked] == [10, 12]
    assert view.jobs.estimate_s[-1] == 777.0
    at = view.nodes.index("p100-2")
    assert view.found.free["gpus"][at] == 0


def test_partitions_that_share_nodes_are_one_pool_and_others_are_ranked_apart() -> None:
    machines = [node("a", partitions=("gpu", "long")), node("b", partitions=("long",)), node("c", partitions=("x",))]
    jobs = [job(1, partition="gpu"), job(2, partition="long"), job(3, partition="x")]
    config = make_config(scope={"partitions": ["gpu", "long", "x"]})
    view = observe(jobs, machines, config, NOW_S)
    assert view is not None and [len(pool.groups) for pool in view.cluster.pools] == [1, 1]
    orders = decide(view, controller_policy(), config).orders
    assert sorted(map(sorted, orders.values())) == [[1, 2], [3]]


def controller_policy() -> TrainedPolicy:
    """A policy of random weights."""
    with tempfile.TemporaryDirectory() as folder:
        return load_policy(write_policy(Path(folder) / "policy.npz"))


def test_a_job_that_asks_one_node_for_its_gpus_is_not_thought_to_go_on_smaller_nodes() -> None:
    full = [running(7, "p100-1", gpus=4), running(8, "p100-2", gpus=4)]
    view = observe([*full, job(1, gpus=4)], five_nodes(4, 4), make_config(), NOW_S)
    assert view is not None and view.ranked and decide(view, controller_policy(), make_config()).starts == {}
    two = observe([*full, job(1, gpus=4, nodes=2)], five_nodes(4, 4), make_config(), NOW_S)
    assert two is not None and decide(two, controller_policy(), make_config()).starts == {1: {"k80-1": 2, "k80-2": 2}}


def test_the_ranking_is_the_policys_own(tmp_path: Path) -> None:
    """With a residual so large that the network has no say, the order is the base policy's."""
    slurm = busy(40)
    for k, number in enumerate(sorted(n for n in slurm.queue if n >= 10)):
        slurm.queue[number] = replace(slurm.queue[number], time_limit_s=60.0 * ((k * 7) % 40 + 1))
    write_policy(tmp_path / "policy.npz", residual=1e6, way={
        "policy": "sjf", "blocking": "easy", "placement": "best_fit", "locality": "strict", "worth": 1.0,
        "believes": False})  # fmt: skip
    made = controller(slurm, tmp_path)
    made.cycle()
    mine = {n: p for n, p in priorities(slurm).items()}
    by_limit = sorted(mine, key=lambda n: slurm.queue[n].time_limit_s or 0)
    assert by_limit == sorted(mine, key=lambda n: -mine[n])


# ---- cycles

def test_a_dry_run_writes_nothing_but_says_what_it_would(tmp_path: Path) -> None:
    slurm = busy()
    done = controller(slurm, tmp_path, live=False).cycle()
    assert done.ranked == 6 and done.changed == 6 and not slurm.writes and not Folder(tmp_path).touched()
    lines = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert {line["event"] for line in lines} == {"would change"} and {line["job"] for line in lines} == set(range(10, 16))
    assert {line["rank"] for line in lines} == set(range(1, 7))


def test_only_what_has_changed_is_written_and_all_is_in_the_band(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    assert made.cycle().changed == 6
    assert all(BAND.low <= p <= BAND.high for p in priorities(slurm).values())
    assert made.cycle().changed == 0, "the same queue again: nothing to write"
    slurm.add(job(99, gpus=1))
    assert made.cycle().changed <= 2
    assert set(Folder(tmp_path).touched()) == {*range(10, 16), 99}


def test_what_leaves_the_scope_is_released_and_what_starts_is_forgotten(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.queue[10] = replace(slurm.queue[10], dependency="afterok:3")
    slurm.queue[11] = replace(slurm.queue[11], state="RUNNING", start_s=NOW_S, node_names=("p100-2",))
    slurm.queue[12] = replace(slurm.queue[12], priority=0, held=True, reason="JobHeldUser")
    del slurm.queue[13]
    made.cycle()
    assert slurm.released == [10] and slurm.queue[10].priority == slurm.computed[10]
    assert set(Folder(tmp_path).touched()) == {11, 14, 15}, "11 runs, and may be requeued"
    assert slurm.queue[12].held, "a user's hold is the user's"


def test_a_job_that_starts_between_reading_and_writing_is_a_refusal(tmp_path: Path) -> None:
    slurm = busy()

    def starts() -> None:
        slurm.queue[10] = replace(slurm.queue[10], state="RUNNING", start_s=NOW_S, node_names=("p100-2",))
        slurm.queue.pop(11, None)

    slurm.before_update = starts
    made = controller(slurm, tmp_path)
    done = made.cycle()
    assert (done.changed, done.refused) == (4, 2)
    made.cycle()
    assert set(Folder(tmp_path).touched()) == {10, 12, 13, 14, 15}


def beside_one(shared: str) -> FakeSlurm:
    """A job of two GPUs; p100-1 has two free beside another such job, p100-2 is idle."""
    jobs = [running(1, "p100-1", gpus=2), job(10, gpus=2, gpu_type="p100", shared=shared)]
    return FakeSlurm({told.id: told for told in jobs}, five_nodes(2, 0, 2, 2, 1))


def test_whole_nodes_are_given_where_company_costs_and_taken_back(tmp_path: Path) -> None:
    slurm = beside_one("OK")
    made = controller(slurm, tmp_path, exclusive="model", sharing=2.0)
    made.cycle()
    assert slurm.queue[10].shared == "NO" and made.folder.touched()[10].alone
    made.cycle()
    assert len(slurm.writes) == 1, "what is written once is not written again"
    made.hand_back("test")
    assert slurm.queue[10].shared == "YES" and slurm.queue[10].priority == slurm.computed[10]


@pytest.mark.parametrize(("shared", "rules"), [
    ("YES", {"exclusive": "model", "sharing": 2.0}), ("NO", {"exclusive": "model", "sharing": 2.0}),
    ("OK", {"exclusive": "model"}), ("OK", {"sharing": 2.0}),
])  # fmt: skip
def test_whole_nodes_are_not_given_unasked(tmp_path: Path, shared: str, rules: dict) -> None:
    slurm = beside_one(shared)
    made = controller(slurm, tmp_path, **rules)
    for _ in range(3):
        made.cycle()
        assert slurm.queue[10].shared == shared
    made.hand_back("test")
    assert slurm.queue[10].shared == shared


@pytest.mark.parametrize("then", ["held", "never"])
def test_whole_nodes_are_taken_back_from_held_jobs_and_when_switched_off(tmp_path: Path, then: str) -> None:
    slurm = beside_one("OK")
    made = controller(slurm, tmp_path, exclusive="model", sharing=2.0)
    made.cycle()
    assert slurm.queue[10].shared == "NO"
    if then == "held":
        slurm.queue[10] = replace(slurm.queue[10], priority=0, held=True, reason="JobHeldUser")
    else:
        made.config = make_config()
    made.cycle()
    assert slurm.queue[10].shared == "YES" and slurm.queue[10].held == (then == "held")


# ---- whose priority it is

def test_a_requeued_job_is_known_again(tmp_path: Path) -> None:
    """It runs for some cycles, and comes back with the priority it had, first with a begin time, then without."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    given = slurm.queue[12].priority
    slurm.queue[12] = replace(slurm.queue[12], state="RUNNING", start_s=NOW_S, node_names=("p100-2",))
    made.cycle()
    made.cycle()
    slurm.queue[12] = replace(slurm.queue[12], state="PENDING", start_s=None, node_names=(), priority=given)
    made.cycle()
    assert BAND.low <= slurm.queue[12].priority <= BAND.high
    made.hand_back("test")
    assert slurm.queue[12].priority == slurm.computed[12]


def test_a_job_that_runs_while_all_is_handed_back_is_found_by_release_later(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    given = slurm.queue[12].priority
    slurm.queue[12] = replace(slurm.queue[12], state="RUNNING", start_s=NOW_S, node_names=("p100-2",))
    made.hand_back("test")
    assert set(made.folder.touched()) == {12}
    slurm.queue[12] = replace(slurm.queue[12], state="PENDING", start_s=None, node_names=(), priority=given)
    assert made.hand_back("later")[0] == 1 and slurm.queue[12].priority == slurm.computed[12]


def test_a_task_of_a_ranked_array_takes_the_arrays_priority_over(tmp_path: Path) -> None:
    slurm = busy(0)
    slurm.add(job(50, array_id=50, array_tasks=10))
    made = controller(slurm, tmp_path, scope={"partitions": ["gpu"], "arrays": "rank"})
    made.cycle()
    slurm.add(replace(slurm.queue[50], id=51, array_tasks=1))
    slurm.computed[51] = 4000
    made.hand_back("test")
    assert slurm.queue[51].priority == 4000 and slurm.queue[50].priority == slurm.computed[50]


def test_a_job_whose_record_cannot_be_read_is_not_forgotten(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    hidden = slurm.queue.pop(12)
    slurm.faults = ("job 12: time_limit: found 'x'",)
    made.cycle()
    assert 12 in made.folder.touched()
    slurm.queue[12], slurm.faults = hidden, ()
    made.hand_back("test")
    assert slurm.queue[12].priority == slurm.computed[12]


def test_what_somebody_else_has_set_is_theirs(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.queue[12] = replace(slurm.queue[12], partition="cpu", priority=777)
    made.cycle()
    made.hand_back("test")
    assert slurm.queue[12].priority == 777


def test_a_band_that_slurms_own_priorities_reach_is_refused(tmp_path: Path) -> None:
    slurm = FakeSlurm({10: job(10, priority=1_500_000)}, five_nodes(4, 4, 2, 2, 1))
    with pytest.raises(RLTuneError, match="1,000,000 to 2,000,000 that no controller"):
        Service(controller(slurm, tmp_path), once=True).run()
    high = controller(slurm, tmp_path, scope={"partitions": ["gpu"], "priority_below": 50_000})
    assert high.cycle().ranked == 0 and not slurm.writes, "a high priority of Slurm's own is no doing of ours"


def test_a_priority_that_did_not_arrive_leaves_the_one_before_ours(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    touched = made.folder.touched()
    before = slurm.queue[12].priority
    made.folder.write_touched({**touched, 12: Touch(BAND.low + 7, before)})  # killed before Slurm was told
    made.hand_back("test")
    assert slurm.queue[12].priority == slurm.computed[12]


# ---- faults

def test_jobs_that_others_hold_the_room_of_do_not_stop_it(tmp_path: Path) -> None:
    """The CPUs of the only m40 node are a CPU job's, for as long as it likes; a job waits for the m40."""
    nodes = five_nodes(4, 4, 2, 2, 0)
    nodes[4] = replace(nodes[4], cpus_alloc=32)
    jobs = [running(1, "p100-1", gpus=4), running(3, "m40-1", gpus=0, cpus=32), job(10, gpus=1, gpu_type="m40"),
            job(11, gpus=2), job(12, gpus=4), running(4, "p100-2", gpus=4, start_s=None)]  # fmt: skip
    made = controller(FakeSlurm({told.id: told for told in jobs}, nodes), tmp_path)
    assert made.cycle().ranked == 2 and made.view is not None
    assert "held by jobs without GPUs" in made.view.left[10]



def test_the_list_of_touched_jobs_is_written_before_slurm_is(tmp_path: Path) -> None:
    slurm = busy()

    def killed() -> None:
        raise KeyboardInterrupt

    slurm.before_update = killed
    with pytest.raises(KeyboardInterrupt):
        controller(slurm, tmp_path).cycle()
    assert set(Folder(tmp_path).touched()) == set(range(10, 16))


def test_a_crashed_controllers_jobs_are_gone_on_with_or_released(tmp_path: Path) -> None:
    slurm = busy()
    controller(slurm, tmp_path).cycle()
    with pytest.raises(RLTuneError, match="6 jobs"):
        Service(controller(slurm, tmp_path, live=False), once=True).run()
    again = controller(slurm, tmp_path)
    assert Service(again, once=True).run() == DONE and "going on with 6 jobs" in again.said[0]
    assert again.hand_back("test")[0] == 6
    assert priorities(slurm) == {n: p for n, p in slurm.computed.items() if n >= 10}
    assert not Folder(tmp_path).touched()


def test_a_lost_list_is_made_up_for_by_the_band(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.folder.touched_path.write_text("{half")
    with pytest.raises(DataError, match="release --band"):
        made.cycle()
    assert made.hand_back("test", band_too=True)[0] == 6 and priorities(slurm).keys() == set(range(10, 16))
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)} and not made.folder.touched()


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_hands_every_job_back(tmp_path: Path, signal_: int) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, interval_s=60.0)
    threading.Timer(1.0, os.kill, (os.getpid(), signal_)).start()
    assert Service(made).run() == DONE
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)}
    assert signal.Signals(signal_).name in made.said[-1]


def test_slurm_that_does_not_answer_is_borne_for_some_cycles(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, failures=3)

    def say(line: str) -> None:
        made.said.append(line)
        slurm.silent = True  # from the end of the first cycle on

    made.say = say
    assert Service(made, between_tries_s=0.0).run() == NOT_HANDED_BACK
    assert sum("cycle failed" in line for line in made.said) == 3
    assert len(made.folder.touched()) == 6, "the list stays for rltune slurm release"
    slurm.silent = False
    assert made.hand_back("later")[0] == 6


def test_an_error_that_nobody_foresaw_hands_back_and_shows_itself(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.queue[10] = replace(slurm.queue[10], submit_s="yesterday")
    with pytest.raises(TypeError):
        Service(made).run()
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)}


@pytest.mark.parametrize("spoil", ["gone", "broken", "old"])
def test_a_policy_that_cannot_be_used_hands_back(tmp_path: Path, spoil: str) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, policy_days=3.0)
    made.cycle()
    path = tmp_path / "policy.npz"
    if spoil == "gone":
        path.unlink()
    elif spoil == "broken":
        path.write_bytes(b"not a policy")
    else:
        os.utime(path, (1e9, 1e9))
    assert Service(made).run() == FAILED
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)}


def test_a_full_disk_stops_the_writing_but_not_the_handing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, failures=2)
    made.cycle()
    slurm.add(*(job(100 + k) for k in range(3)))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr(Folder, "write_touched", full)
    monkeypatch.setattr(Folder, "write_journal", full)
    writes = len(slurm.writes)
    assert Service(made, between_tries_s=0.0).run() == FAILED
    assert len(slurm.writes) == writes, "nothing is written that is not noted first"
    assert all(p < BAND.low for p in priorities(slurm).values())


def test_two_controllers_refuse_to_run_at_once(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    with made.folder.lock():
        with pytest.raises(Busy, match=str(os.getpid())):
            Service(controller(slurm, tmp_path), once=True).run()
        assert "is at work" in told(made.folder)
    assert "no controller" in told(made.folder)


def test_records_that_cannot_be_read_are_told_and_the_others_ranked(tmp_path: Path) -> None:
    slurm = busy()
    slurm.faults = ("job 77: time_limit: found 'x'",)
    done = controller(slurm, tmp_path).cycle()
    assert done.faults == slurm.faults and done.ranked == 6


def test_figures_and_decisions_are_left_for_others_to_read(tmp_path: Path) -> None:
    made = controller(busy(), tmp_path)
    made.cycle()
    text = made.folder.metrics_path.read_text()
    assert "rltune_ranked_jobs 6.0\n" in text and "# TYPE rltune_changes_total counter" in text
    assert Folder(tmp_path).touched()[10] == Touch(made.slurm.queue[10].priority)  # type: ignore[attr-defined]
    assert f"rltune_last_cycle_time_seconds {NOW_S!r}\n" in text and "rltune_live 1.0\n" in text
    made.gone()
    assert "rltune_live 0.0\n" in made.folder.metrics_path.read_text()
