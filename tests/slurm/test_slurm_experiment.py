"""The experiment on real daemons: what was submitted is in the accounts, in the order that was written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from slurm_workload import need, wait_for

from rltune.config.load import load_cluster, project_root
from rltune.errors import SlurmError
from rltune.slurm.accounting import FIELDS
from rltune.slurm.emulate import Emulation, configure
from rltune.slurm.experiment import conduct as conducting
from rltune.slurm.experiment.accounts import read
from rltune.slurm.experiment.conduct import Order, conduct
from rltune.slurm.experiment.rules import in_the_order_of
from rltune.slurm.experiment.submission import Submission, account_of

SPEED = 100.0
FULL_S = 600.0
"""How long all GPUs are taken at first."""


def job(name: str, at_s: float, gpus: int, run_s: float, limit_s: float, account: str = "ann") -> Submission:
    return Submission(name, at_s, account, "all", gpus, -(-gpus // 4), 4 * gpus, limit_s, run_s)


SMALL = [job(f"small{k}", 0, gpus, FULL_S, 1800, "ben") for k, gpus in enumerate((2, 2, 1))]
FULL = [job("both", 0, 8, FULL_S, 1800), *SMALL]
LIMITS_S = (5400.0, 1200.0, 7200.0, 2400.0, 600.0, 3600.0)
QUEUE = [job(f"queued{k}", 60.0 + k, 4, 200.0 if limit > 1000 else 190.0, limit) for k, limit in enumerate(LIMITS_S)]


@pytest.fixture(scope="module")
def packages_there() -> None:
    need(accounting=True, speed=SPEED)


@pytest.mark.parametrize("rule", [None, "saf", "fifo"])
def test_a_dozen_jobs_run_in_the_order_that_was_written(packages_there: None, rule: str | None, tmp_path: Path) -> None:
    order = None if rule is None else Order(in_the_order_of(rule), rule, interval_s=60.0)
    said: list[str] = []
    done = conduct(load_cluster("deployment", project_root()), [*FULL, *QUEUE], order, SPEED, tmp_path / "log", said.append)
    jobs = done.jobs.set_index("job")
    assert list(jobs.index) == [job.name for job in (*FULL, *QUEUE)] and set(jobs["state"]) == {"COMPLETED"}
    assert list(jobs["gpus"]) == [8, 2, 2, 1, *[4] * 6] and list(jobs["nodes"]) == [2, *[1] * 9]
    assert set(jobs["account"]) == {"ann", "ben"}
    late = jobs["submit_s"] - jobs["at_s"]
    assert late.between(-1.5, 60).all() and (jobs["start_s"] >= jobs["submit_s"]).all()
    assert (jobs["end_s"] - jobs["start_s"] >= jobs["run_s"] - 2).all()
    queued = jobs.loc[[job.name for job in QUEUE]]
    assert (queued["start_s"] >= FULL_S - 60).all(), "no node of four GPUs was free before"
    assert done.facts["simulated_s"] == jobs["end_s"].max() and abs(done.facts["drift_s"]) < 10
    if rule is None:
        assert not len(done.cycles)
        return
    assert done.cycles["ok"].all() and done.cycles["changed"].sum() >= 6 and not done.cycles["refused"].sum()
    assert (done.cycles["took_s"] > 0).all() and "handed back" in (tmp_path / "log").read_text()
    wanted = np.argsort(LIMITS_S) if rule == "saf" else np.arange(6)  # of one size: the shortest limit, the smallest area
    start_s = queued["start_s"].to_numpy()[wanted]  # two at a time, on two nodes; backfilling may change the middle
    assert start_s[:2].max() < start_s[4:].min()


def test_a_cluster_that_dies_is_an_error_that_names_the_log(
    packages_there: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(slurm: Emulation, *_: object) -> None:
        slurm._processes.kill("slurmctld", 9)
        wait_for(lambda: bool(slurm.ended()))
        raise SlurmError("sbatch: Unable to contact slurm controller")

    monkeypatch.setattr(conducting, "submit_all", dies)
    with pytest.raises(SlurmError, match="Unable to contact"):
        conduct(load_cluster("deployment", project_root()), QUEUE, None, SPEED, tmp_path / "run.log")
    assert (tmp_path / "run.daemons" / "slurmctld.log").read_text()


def sacct(**changes: str) -> str:
    row = {"JobIDRaw": "7", "JobName": "queued0", "Account": "ann", "Submit": "1060", "Eligible": "1060", "Start": "1100",
           "End": "1300", "State": "COMPLETED", "AllocTRES": "billing=16,cpu=16,gres/gpu:p100=4,gres/gpu=4,node=1",
           "ReqTRES": "billing=16,cpu=16,gres/gpu=4,node=1", "NodeList": "p100-1"} | changes  # fmt: skip
    return "|".join(row[name] for name in FIELDS) + "\n"


def test_accounts_are_read() -> None:
    frame = read(sacct(), QUEUE[:1], 1000.0)
    (row,) = frame.to_dict("records")
    assert (row["submit_s"], row["start_s"], row["end_s"], row["gpus"], row["limit_s"]) == (60.0, 100.0, 300.0, 4, 5400.0)
    cancelled = read(sacct(State="CANCELLED by 0", Start="None", AllocTRES="", NodeList="None assigned"), QUEUE[:1], 1000.0).iloc[0]
    assert cancelled["state"] == "CANCELLED" and pd.isna(cancelled["start_s"])
    assert (cancelled["gpus"], cancelled["nodes"]) == (0, 0)


@pytest.mark.parametrize(("text", "what"), [
    ("", "no job queued0"), (sacct(State="RUNNING", End="Unknown"), "is RUNNING"), ("1|2\n", "found 2 fields"),
])  # fmt: skip
def test_accounts_that_are_not_complete_are_an_error(text: str, what: str) -> None:
    with pytest.raises(SlurmError, match=what):
        read(text, QUEUE[:1], 1000.0)


def test_what_sbatch_is_asked_for() -> None:
    options = job("x", 0, 8, 10, 61.0).options()
    assert {"--nodes=2", "--gres=gpu:4", "--time=2", "--cpus-per-task=16"} <= set(options)
    assert {"--account=ann", "--partition=all"} <= set(options)
    assert "--gpus=5" in Submission("x", 0, "ann", "all", 5, 2, 5, 60, 10).options()
    assert account_of("User 07@Lab") == "user_07_lab" and account_of("") == "nobody"


def test_small_nodes_are_taken_first() -> None:
    cluster, folders = load_cluster("deployment", project_root()), configure.Folders(Path("/x"), Path("/x"))
    nodes = configure.nodes_of(cluster, list(range(10)))
    plain, small = (configure.slurm_conf(cluster, nodes, folders, "root", 1, small_first=told) for told in (False, True))
    assert " Weight=" not in plain
    weights = dict(re.findall(r"^NodeName=(\S+) .* Weight=(\d+)$", small, re.MULTILINE))
    assert sorted(weights, key=lambda name: int(weights[name])) == ["m40-1", "k80-1", "k80-2", "p100-1", "p100-2"]
