"""The deployment of a run: which jobs are submitted, which scheduler orders them, runs that fail, missing packages."""

from dataclasses import asdict, replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from operator_cases import CLUSTER, agent, log, run_of, workload_of
from workload_cases import cluster, group

from rltune.agent.scheduler_choice import AgentScheduler
from rltune.cluster.workload import Workload
from rltune.config.context import Run
from rltune.config.deployment import QOS, SHORT_S
from rltune.config.max_wait import DEFAULT
from rltune.config.slurm import SlurmConfig
from rltune.errors import ClusterDied, ConfigError, SlurmError
from rltune.evaluation.contenders import Contender, scheduler_used
from rltune.evaluation.studies import deployment_simulated
from rltune.evaluation.studies.deployment_simulated import classes, facts, first_jobs, simulated
from rltune.files import read_json
from rltune.slurm.decide import scheduler_of
from rltune.slurm.emulate import packages
from rltune.slurm.experiment import deployment
from rltune.slurm.experiment.conduct import Conducted
from rltune.slurm.experiment.deployment import deploy, deploy_all, missing_runs, submissions
from rltune.slurm.experiment.submission import Submission

CELL = "tiny__small__fifo__wait__none__lookahead__strict__engineered__lognormal-1__quick__s1"
BLOCK = {"cell": CELL, "jobs": 8, "repetitions": 2, "schedulers": ["slurm", "rltune", "saf"]}


@pytest.fixture(scope="module")
def run() -> Run:
    return run_of(deployment=BLOCK)


@pytest.fixture(scope="module")
def workload(run: Run) -> Workload:
    return workload_of(run)


def conducted(cluster: object, jobs: list[Submission], *_: object) -> Conducted:
    """What a cluster gives on which every job starts at once."""
    frame = pd.DataFrame([asdict(job) for job in jobs]).rename(columns={"name": "job"})
    at, run_s = frame["at_s"], frame["run_s"]
    frame = frame.assign(asked_gpus=frame["gpus"], submit_s=at, start_s=at, end_s=at + run_s, state="COMPLETED")
    facts = {"true_s": 1.0, "drift_s": 0.0, "slurm": "22.05", "simulated_s": float((at + run_s).max())}
    return Conducted(frame, pd.DataFrame(columns=["began_s"]), facts)


@pytest.fixture
def conduct(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Conducts runs on a cluster on which every job starts at once."""
    conduct = Mock(side_effect=conducted)
    monkeypatch.setattr(deployment, "conduct", conduct)
    return conduct


def test_repetitions_take_the_next_jobs_of_the_test_part(run, workload):
    begin, _ = workload.split.test
    assert list(first_jobs(run.config.deployment, workload)) == [begin, begin + 8]
    jobs = submissions(run, workload, 2)
    assert [job.name for job in jobs] == [f"job{begin + 8 + k}" for k in range(8)] and jobs[0].at_s == 0
    assert {job.account for job in jobs} <= {"ann_b", "ben", "cy"}
    rows, limits = workload.jobs, workload.table["requested_s"]
    for k, job in enumerate(jobs, begin + 8):
        assert (job.gpus, job.run_s) == (rows.gpus[k], rows.run_s[k]) and job.nodes == -(-job.gpus // 8)
        assert job.at_s == rows.submit_s[k] - rows.submit_s[begin + 8]
        assert job.limit_s >= job.run_s, "no job is ended by its limit"
        assert pd.isna(limits[k]) or job.limit_s == limits[k] == 2 * job.run_s
        assert job.partition == ("a-short" if job.limit_s <= SHORT_S else "a")
    assert facts(run, workload)["accounts"] == 3


def test_jobs_that_ask_for_types_are_refused(run, workload):
    run = replace(run, clusters={"small": CLUSTER.model_copy(update={"gpu_types": "match"})})
    with pytest.raises(ConfigError, match="found 8 jobs of tiny that ask for GPU types"):
        submissions(run, replace(workload, table=workload.table.assign(gpu_type="P100")), 1)


def test_each_scheduler_has_its_policy(run, workload, tmp_path, conduct):
    trained = agent("sjf", scheduler={"policy": "wfp3"})
    for scheduler in ("slurm", "saf", "rltune"):
        deploy(run, workload, trained, scheduler, 1, tmp_path / "log")
    none, rule, given = (call.args[2] for call in conduct.call_args_list)
    config = SlurmConfig.model_validate({"policy": "-", "eligible": {"partitions": ["all"]}})
    assert none is None and given is trained
    assert [scheduler_of(policy, config).policy for policy in (rule, given)] == ["saf", "wfp3"]


def test_a_run_whose_cluster_dies_is_repeated(run, workload, tmp_path, conduct):
    said: list[str] = []
    conduct.side_effect = [ClusterDied("slurmdbd ended"), conducted(None, submissions(run, workload, 2))]
    found = deploy(run, workload, None, "saf", 2, tmp_path / "saf-2.log", said.append).facts
    assert (found["scheduler"], found["repetition"], found["speed"]) == ("saf", 2, 100.0)
    assert (found["tries"], found["retries"]) == (2, ["slurmdbd ended"])
    first, second = (call.args[4] for call in conduct.call_args_list)
    assert len(said) == 1 and "the run is repeated" in said[0] and str(first) in said[0] and first != second


@pytest.mark.parametrize(
    ("error", "tries"),
    [(ClusterDied("slurmctld ended"), 2), (SlurmError("the controller ended by itself"), 1), (KeyboardInterrupt(), 1)],
)
def test_a_run_is_repeated_once_and_after_no_other_error(run, workload, tmp_path, conduct, error, tries):
    conduct.side_effect = error
    with pytest.raises(type(error)):
        deploy(run, workload, None, "saf", 2, tmp_path / "saf-2.log", lambda line: None)
    assert conduct.call_count == tries


def test_finished_runs_of_a_repetition_outlive_one_that_fails(run, workload, tmp_path, conduct):
    made_of = {"cell": CELL, "code": "c0de", "policy": "weights"}

    def slurm_fails(cluster: object, jobs: list[Submission], policy: object, *rest: object) -> Conducted:
        if policy is None:
            raise SlurmError("slurmctld ended")
        return conducted(cluster, jobs)

    conduct.side_effect = slurm_fails
    with pytest.raises(SlurmError, match="slurmctld ended"):
        deploy_all(run, workload, agent(), 1, made_of, tmp_path / "runs", tmp_path)
    assert {path.parent.name for path in tmp_path.glob("runs/*/facts.json")} == {"rltune", "saf"}
    kept = {path: path.read_bytes() for path in tmp_path.glob("runs/*/*")}
    conduct.side_effect = conducted
    deploy_all(run, workload, agent(), 1, made_of, tmp_path / "runs", tmp_path)
    assert conduct.call_count == 3 + 1
    assert all(path.read_bytes() == content for path, content in kept.items())
    policies = {path.parent.name: read_json(path)["policy"] for path in tmp_path.glob("runs/*/facts.json")}
    assert policies == {"slurm": None, "rltune": "weights", "saf": None}
    jobs = pd.read_csv(tmp_path / "runs/slurm/jobs.csv")
    assert len(jobs) == 8 and set(jobs["scheduler"]) == {"slurm"} and set(jobs["repetition"]) == {1}


def test_the_simulator_runs_the_same_jobs(run, workload):
    found = simulated(run, workload, agent())
    assert set(zip(found["scheduler"], found["repetition"], strict=True)) == set(run.config.deployment.runs())
    assert set(found["backfill"]) == {"easy", "conservative"}
    for (_, _, repetition), frame in found.groupby(["backfill", "scheduler", "repetition"]):
        jobs = submissions(run, workload, int(repetition))
        assert list(frame["index"]) == list(range(8)) and list(frame["run_s"]) == [job.run_s for job in jobs]
        assert np.allclose(frame["submit_s"], [job.at_s for job in jobs])
        assert (frame["start_s"] >= frame["submit_s"]).all()


def test_any_run_of_jobs_has_its_share_of_each_qos_and_of_the_short(workload):
    of = classes(workload)
    for name, (_, share) in QOS.items():
        assert (of["qos"] == name).rolling(20).mean().dropna().between(share - 0.06, share + 0.06).all()
    assert set(of["short"]) == {True, False}


def test_the_simulator_has_slurms_factor_of_the_qos(run, workload):
    """All jobs need the whole cluster and come at once: the first in Slurm's own order have a high QOS."""
    at = np.arange(len(log()))
    limit_s = np.where(at % 3, SHORT_S, 2 * SHORT_S)
    rows = log().assign(submit_s=at * 0.01, run_s=3600.0, requested_s=limit_s, gpus=16, user="ben")
    alike = workload_of(run, "requested", rows)
    points = classes(alike)["qos"].map({name: factor for name, (factor, _) in QOS.items()}).to_numpy()
    found = simulated(run, alike, agent("fifo", scheduler={"policy": "multifactor"}))
    for (scheduler, _, repetition), frame in found.groupby(["scheduler", "backfill", "repetition"]):
        first = first_jobs(run.config.deployment, alike)[repetition - 1]
        order = points[first + frame.sort_values("start_s")["index"].to_numpy()][1:]  # but for the first to arrive
        assert (np.diff(order) <= 0).all() == (scheduler == "slurm")


def test_the_simulator_runs_an_agent_with_each_backfill(run, workload, monkeypatch):
    """What an agent may choose in training, Slurm decides where it is deployed; nor has it calibrated estimates there."""
    seen, simulate = [], deployment_simulated.simulate
    limit_s = classes(workload)["limit_s"].tolist()

    def spied(workload: Workload, contender: Contender, *where: Any) -> Any:
        if contender.policy is not None:
            scheduler, jobs = scheduler_used(workload, contender)
            seen.append((scheduler.policy, scheduler.backfill))
            assert jobs.estimate_s.tolist() == limit_s
            assert (scheduler.placement, scheduler.locality) == ("best_fit", "strict")
        return simulate(workload, contender, *where)

    scheduler = deployment_simulated.contender_of(run.config, run.config.deployed_cell()).scheduler
    chosen = AgentScheduler(scheduler, uses_calibrated=True).facts()
    chosen |= {"policy": "saf", "backfill": "greedy", "placement": "lookahead", "locality": "any"}
    monkeypatch.setattr(deployment_simulated, "simulate", spied)
    simulated(run, workload, agent("saf", scheduler=chosen))
    assert seen == [("saf", "easy"), ("saf", "conservative")]


TYPED = cluster([group(2, 8, kind) for kind in ("P100", "K80")], speeds={"P100": 4.0, "K80": 1.0}, gpu_types="match")


@pytest.fixture(scope="module")
def typed() -> tuple[Run, Workload]:
    """The same on two types, of which P100s are four times as fast as K80s."""
    kinds = ["slurm", "slurm_fastest", "rltune", "rltune_types"]
    run = replace(run_of(deployment=BLOCK | {"schedulers": kinds}), clusters={"small": TYPED})
    return run, workload_of(run)


def test_where_types_differ_jobs_sleep_as_long_as_on_theirs(typed):
    """Their limits are for the slowest; those of careful users allow the fastest alone."""
    anyone, careful = submissions(*typed, 1), submissions(*typed, 1, fastest=True)
    for job, other in zip(anyone, careful, strict=True):
        assert job.times_s == {"p100": job.run_s, "k80": 4 * job.run_s} and job.limit_s >= 4 * job.run_s
        assert (job.lasts_s("k80-2"), job.lasts_s("p100-1"), job.lasts_s("")) == (4 * job.run_s, job.run_s, job.run_s)
        assert (job.types, other.types) == ("", "p100") and replace(other, types="") == job


def test_a_job_that_takes_small_nodes_alone_asks_for_as_many_of_these_as_it_needs(typed):
    kinds = cluster([group(4, 2, "P100"), group(2, 8, "K80")], speeds={"P100": 4.0, "K80": 1.0}, gpu_types="match")
    run = replace(typed[0], clusters={"small": kinds})
    found = submissions(run, workload_of(run), 1, fastest=True)
    assert {job.types for job in found} == {"p100"} and max(job.gpus for job in found) > 2
    assert all(job.nodes == -(-job.gpus // 2) for job in found)


def test_the_simulator_decides_types_as_each_scheduler_does(typed):
    run, workload = typed
    held = run.config.simulation.model_copy(update={"sticky_head": True})  # which Slurm does not know, nor a plan
    run = replace(run, config=run.config.model_copy(update={"simulation": held}))
    found = simulated(run, workload, agent("saf"))
    lasts = ((found["end_s"] - found["start_s"]) / found["run_s"]).round(6)
    assert set(lasts) == {1.0, 4.0} and set(lasts[found["scheduler"] == "slurm_fastest"]) == {1.0}
    assert (lasts.groupby(found["scheduler"]).max()[["slurm", "rltune"]] == 4.0).all()
    wait = (found["end_s"] - found["submit_s"]).groupby(found["scheduler"]).mean()
    assert wait["rltune_types"] < wait["rltune"]


def test_only_the_scheduler_that_decides_types_knows_speeds(typed, monkeypatch):
    """The others expect a job to run on any type as long as on the slowest, as its user's limit says."""
    known, simulate = [], deployment_simulated.simulate
    monkeypatch.setattr(
        deployment_simulated, "simulate", lambda of, *rest: (known.append(of.jobs), simulate(of, *rest))[1]
    )
    simulated(*typed, agent("saf"))
    limits = classes(typed[1])["limit_s"]
    slurm, fastest, order, types = known[:4]
    for jobs in (slurm, fastest, order):
        assert np.allclose(jobs.estimate_s, 4 * limits) and (jobs.cut["slow"] == 1.0).all()
    assert (fastest.cut["full"][:, 1] == -1).all() and (slurm.cut["full"] == types.cut["full"]).all()
    assert np.allclose(types.estimate_s, limits) and set(np.unique(types.cut["slow"])) == {1.0, 4.0}


def test_who_decides_types(typed, tmp_path, conduct):
    for scheduler in ("slurm_fastest", "rltune", "rltune_types"):
        deploy(*typed, agent(), scheduler, 1, tmp_path / "log")
    runs = [call.args for call in conduct.call_args_list]
    assert [(args[2] is None, args[-1]) for args in runs] == [(True, False), (False, False), (False, True)]
    assert [args[1][0].types for args in runs] == ["p100", "", ""]
    assert all(args[5] == DEFAULT for args in runs)
    run, workload = typed
    simulation = run.config.simulation.model_copy(update={"max_wait_h": {8: 8.0}})
    bounded = replace(run, config=run.config.model_copy(update={"simulation": simulation}))
    deploy(bounded, workload, agent(), "rltune", 1, tmp_path / "log")
    assert conduct.call_args.args[5] == {8: 8.0}


def test_missing_packages_and_how_to_install_them(run, monkeypatch):
    settings = run.config.deployment
    assert missing_runs(settings, 6) == "" and missing_runs(settings, 1).startswith("5 of 6 runs")
    monkeypatch.setattr(packages, "missing", lambda **options: [packages.ACCOUNTING])
    said = missing_runs(settings, 0)
    assert "apt-get install --no-install-recommends slurmdbd mariadb-server" in said


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"jobs": 80}, ("2 repetitions of 80 jobs need 160", "found 24 in the test part of tiny")),
        ({"schedulers": ["slurm", "saf"]}, ("schedulers", "expected rltune too")),
        ({"schedulers": ["slurm", "rltune", "rltune"]}, ("schedulers", "found twice: rltune")),
        ({"cell": None}, ("found no experiment on cluster deployment", "finetuning-synthetic")),
        ({"cell": "nope"}, ("'nope'", "the run has")),
    ],
)
def test_mistakes_are_explained(workload, change, parts):
    with pytest.raises((ConfigError, ValueError)) as error:
        first_jobs(run_of(deployment=BLOCK | change).config.deployment, workload)
    assert all(part in str(error.value) for part in parts), error.value
