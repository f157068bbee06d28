"""Which GPU type the controller gives a job: the planned one, within the user's request; and the expected run times."""

from dataclasses import replace

import numpy as np
import pytest
from fake_slurm import NOW_S, job, make_config, node, running
from slurm_types import K80S, LATE_S, LIMIT_S, P100S, SOON_S, SPEEDS, cluster, made, restricted, until

from rltune.cluster.speeds import read_profile
from rltune.slurm.gpu_types import slowdowns
from rltune.slurm.observe import observe
from rltune.slurm.watchdog import Shadow


@pytest.mark.parametrize(("rest_s", "excluded"), [(SOON_S, K80S), (LATE_S, P100S)])
def test_a_job_gets_the_type_on_which_it_completes_first(tmp_path, rest_s, excluded):
    slurm = cluster(rest_s)
    control = made(slurm, tmp_path)
    assert control.cycle().changed == 1 and slurm.queue[10].excluded == excluded
    assert control.cycle().changed == 0, "what is written once is not written again"
    slurm.queue[1] = until(SOON_S + LATE_S - rest_s)
    control.cycle()
    assert slurm.queue[10].excluded == (K80S | P100S) - excluded, "the plan has changed"
    assert not control.view.confined, "by its user"


@pytest.mark.parametrize(("hours", "excluded"), [({8: 100.0}, P100S), ({1: 0.01, 2: 100.0}, K80S)])
def test_a_job_past_its_maximum_wait_is_planned_first(tmp_path, hours, excluded):
    """Two others take all P100s, once these are free, and leave it a K80, unless it is late."""
    slurm = cluster(2 * SOON_S)
    slurm.add(*(job(k, gpus=2, time_limit_s=LIMIT_S) for k in (11, 12)))
    made(slurm, tmp_path, max_wait_h=hours).cycle()
    assert slurm.queue[10].excluded == excluded
    first = max(slurm.queue.values(), key=lambda of: of.priority)
    assert (first.id == 10) == (excluded == K80S)


def test_waiting_begins_when_slurm_could_start_a_job(tmp_path):
    """For the plan as for the priorities: the same job as above, submitted long ago, that could not start before now."""
    slurm = cluster(2 * SOON_S, submit_s=NOW_S - 100_000, eligible_s=NOW_S - 10.0)
    other = {"gpus": 2, "time_limit_s": LIMIT_S, "submit_s": NOW_S - 200_000, "eligible_s": NOW_S - 5.0}
    slurm.add(job(11, **other), job(12, **other))
    made(slurm, tmp_path, max_wait_h={1: 1.0, 2: 2.0}).cycle()
    assert slurm.queue[10].excluded == P100S


def test_a_dry_run_says_which_type_and_writes_nothing(tmp_path):
    slurm = cluster()
    done = made(slurm, tmp_path, live=False).cycle()
    assert done.planned[0].endswith("GPU type p100") and not slurm.writes and not slurm.queue[10].excluded
    journal = (tmp_path / "decisions.jsonl").read_text()
    assert '"gives":"GPU type p100","excludes":"k80-[1,9]"' in journal


@pytest.mark.parametrize(
    "fields",
    [
        {"asked_type": "k80", "gpu_type": "k80", "gpus_by_type": {"k80": 1}},
        {"excluded": frozenset({"k80-9"})},
        {"excluded": K80S},
        {"is_bound": True},
        {"array_id": 9},
        {"constraint": "p100"},
        {"constraint": "fast|other"},
        {"constraint": "p100&fast"},
        {"constraint": "none"},
        {"shared": "NO"},
        {"shared": "USER"},
        {"mem_mb": None},
        {"partition": "gpu,more"},
    ],
)
def test_what_the_user_requested_stays(tmp_path, fields):
    slurm = cluster(**fields)
    slurm.machines.append(node("v100-1", "v100", 4, partitions=("more",)))
    eligible = {"partitions": ["gpu", "more"], "also": ["arrays", "constraints"]}
    control = made(slurm, tmp_path, eligible=eligible, speeds={**SPEEDS, "V100": 9.0})
    assert control.cycle().ranked == 1
    assert [change.exclude for change in slurm.writes] == [None]
    assert slurm.queue[10].excluded == fields.get("excluded", frozenset())


V100 = node("v100-1", "v100", 1, features=("v100",))
MIXED = replace(node("mix-1"), gpus={"p100": 2, "k80": 2}, gpus_alloc={})


@pytest.mark.parametrize(
    ("constraint", "more", "excluded"),
    [
        ("p100|k80", [], K80S),
        ("k80|fast", [], K80S),
        ("p100|k80", [V100], K80S | {"v100-1"}),  # although the V100 is the fastest
        ("", [MIXED], K80S | {"mix-1"}),
        ("p100&fast", [], None),
        ("[p100|k80]", [], None),
        ("none", [], None),  # no node has it: Slurm knows why the job waits
    ],
)
def test_features_select_types(tmp_path, constraint, more, excluded):
    """A node of several types is excluded. None: the constraint selects no types, and the job is not ranked."""
    slurm = cluster(constraint=constraint)
    slurm.machines += more
    assert made(slurm, tmp_path, speeds={**SPEEDS, "V100": 50.0}).cycle().ranked == (excluded is not None)
    assert slurm.queue[10].excluded == (excluded or frozenset())


@pytest.mark.parametrize(
    ("faster", "fields"),
    [
        ({}, {"nodes": 2, "gpus": 2}),  # it requests two nodes, of which there is one
        ({"partitions": ("big",)}, {}),  # another partition, to which a K80 belongs, too
        ({"cpus_alloc": 32}, {}),  # its CPUs are taken by somebody without GPUs
        ({"state": frozenset({"DRAIN"})}, {}),
    ],
)
def test_no_type_on_which_the_job_cannot_start(tmp_path, faster, fields):
    slurm = cluster(**fields)
    slurm.machines[1:2] = [node(name, "k80", 2, partitions=("gpu", "big")) for name in ("k80-1", "k80-2")]
    slurm.machines += [node("p100-2", used=4), node("v100-1", "v100", 4, **faster)]
    slurm.add(running(2, "p100-2", gpus=4, asked_type="p100", gpu_type="p100", time_limit_s=LATE_S))
    eligible, speeds = {"partitions": ["gpu", "big"]}, {**SPEEDS, "V100": 50.0}
    control = made(slurm, tmp_path, eligible=eligible, speeds=speeds)
    assert control.cycle().ranked == 1 and "v100-1" in slurm.queue[10].excluded


def test_a_job_that_slurm_cannot_start_with_its_type_gets_none_again(tmp_path):
    """Slurm sets its priority to 0, and restores it once no nodes are excluded."""
    slurm, control = restricted(tmp_path)
    slurm.change(10, reason="BadConstraints", priority=0, held=True)
    control.cycle()
    assert slurm.queue[10].excluded == frozenset()
    slurm.change(10, reason="Priority", priority=4990, held=False)
    for _ in range(4):
        assert control.cycle().ranked == 1 and slurm.queue[10].excluded == frozenset()


def test_a_job_that_was_given_its_type_is_expected_to_end_on_it(tmp_path):
    slurm, control = restricted(tmp_path)
    slurm.queue.pop(1)
    slurm.start(10, "p100-1")
    slurm.machines[0] = node("p100-1", used=1, features=("p100", "fast"))
    control.cycle()
    assert [one.id for one in control.view.running] == [10]
    assert control.view.snapshot.end_s[0] + control.view.t0_s == pytest.approx(NOW_S + LIMIT_S / 4)


def test_a_node_of_more_gpus_than_a_node_can_have_is_left_out_and_named():
    """Such as one of 16 GPUs in seven slices each."""
    machines = [node("p100-1"), node("mig-1", "1g.10gb", 112)]
    view = observe([job(10)], machines, make_config(), NOW_S)
    assert [one.name for one in view.cluster.nodes] == ["p100-1"]
    assert "node mig-1: 112 GPUs, at most 64; not used" in view.faults


def test_a_limit_is_for_the_slowest_type_that_the_job_allows():
    """A job that runs on a faster one is expected to end earlier."""
    slow = running(2, "k80-1", gpu_type="k80", time_limit_s=LIMIT_S)
    fast = running(3, "p100-2", gpu_type="p100", time_limit_s=LIMIT_S, start_s=NOW_S - 100)
    machines = [node("p100-1", used=4), node("p100-2", used=1), node("k80-1", "k80", 2, used=1)]
    jobs = [until(SOON_S), slow, fast, job(10, time_limit_s=LIMIT_S)]
    view = observe(jobs, machines, make_config(speeds=SPEEDS), NOW_S)
    ends = dict(zip((one.id for one in view.running), view.snapshot.end_s + view.t0_s, strict=True))
    assert ends == pytest.approx({1: NOW_S + SOON_S, 2: NOW_S - 500 + LIMIT_S, 3: NOW_S - 100 + LIMIT_S / 4})
    kinds = dict(zip(view.layout.types, view.jobs.cut[-1]["slow"] * view.jobs.estimate_s[-1], strict=True))
    assert kinds == pytest.approx({"p100": LIMIT_S / 4, "k80": LIMIT_S})


def test_a_model_that_its_comment_names_has_the_speeds_of_the_profile(tmp_path):
    """Others take any type; a model runs only where it was measured."""
    profile = tmp_path / "speeds.csv"
    head = "model,gpus,gpu_type,consolidated_steps_per_s,unconsolidated_steps_per_s"
    profile.write_text(f"{head}\nbert,1,P100,8,\nbert,1,K80,2,\nlarge,1,P100,1,\nlarge,1,K80,0,\n")
    speeds = read_profile(profile)
    jobs = [job(k, comment=name) for k, name in enumerate(["bert", "large", "else", ""])]
    found = slowdowns(jobs, ["p100", "k80"], speeds).consolidated
    assert (found[:, 1] / found[:, 0]).tolist() == [4.0, np.inf, 1.0, 1.0]
    slurm = cluster(comment="else")
    slurm.add(job(11, comment="large", time_limit_s=LIMIT_S))
    made(slurm, tmp_path, speeds=str(profile)).cycle()
    assert [slurm.queue[k].excluded for k in (10, 11)] == [frozenset(), frozenset()], "11 has one type only"


def test_two_speeds_of_one_type_are_refused(tmp_path):
    with pytest.raises(ValueError, match="found k80 twice; upper and lower case are the same type"):
        made(cluster(), tmp_path, speeds={"K80": 1.0, "k80": 4.0})


def test_a_type_without_a_speed_is_named(tmp_path):
    """A new type must not end the controller: the order goes on."""
    slurm, control = restricted(tmp_path)
    slurm.machines.append(node("a100-1", "a100", 1))
    done = control.cycle()
    assert any(
        "the configuration's speeds: no speed on GPU type a100; found p100, k80" in fault for fault in done.faults
    )
    assert done.ranked == 1 and slurm.queue[10].excluded == frozenset()
    assert control.cycle().faults == done.faults, "each cycle says it"


@pytest.mark.parametrize(
    ("first", "constraint", "realised_s", "simulated_s"),
    [([replace(until(100.0), gpus=1)], "", 200.0, 400.0), ([], "p100", 100.0, 100.0)],
    ids=["waits for a faster type", "may run there alone"],
)
def test_the_watchdog_compares_completions(first, constraint, realised_s, simulated_s):
    """A job waits 100 s for a P100, or not at all, and takes 100 s there; in the simulation it takes 400 s on a K80, unless
    its features forbid that."""
    config = make_config(speeds=SPEEDS, watchdog={"policy": "fifo", "min_jobs": 1})
    machines = [node("p100-1", gpus=1, used=len(first), features=("p100",)), node("k80-1", "k80", 1, features=("k80",))]
    waiting = job(10, submit_s=NOW_S, time_limit_s=LIMIT_S, constraint=constraint)
    begin = observe([*first, waiting], machines, config, NOW_S)
    assert begin.everyone[-1].gpu_type == (constraint or "p100|k80")
    shadow, start_s = Shadow(begin, config), NOW_S + 100 * len(first)
    shadow.watch(begin.everyone, begin.ranked, NOW_S)
    ran = replace(begin.everyone[-1], state="RUNNING", start_s=start_s, node_names=("p100-1",))
    shadow.watch([ran], [], start_s + 20)
    shadow.watch([], [], start_s + 100)
    waits = shadow.waits(NOW_S + 1000)
    assert (waits.jobs, waits.realised_s, waits.simulated_s) == (1, realised_s, simulated_s)


def test_types_and_whole_nodes_exclude_one_another():
    with pytest.raises(ValueError, match="speeds: goes with exclusive: never"):
        make_config(speeds=SPEEDS, exclusive="model")
