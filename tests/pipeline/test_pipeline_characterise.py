"""Characterisation of a small project: where waits are from, and that test parts stay unread where it matters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune.cluster.load import offered_load
from rltune.config import Workspace
from rltune.errors import ConfigError
from rltune.pipeline.characterise import COPES, RECORDED, before_test, characterise, known_wait, simulated_wait
from rltune.pipeline.prepare import ensure_clean, ensure_fitted, ensure_workload, make_workload
from rltune.pipeline.simulate import Request, make_scheduler, run

FULL = """\
title: Larger
gpu_types: ignore
pools: [{name: all, groups: [{gpu_type: P100, nodes: 9, gpus: 8, cpus: 64, mem_gb: 512}]}]
"""


def add_cluster(project: Any, name: str, text: str) -> None:
    (project.root / "config" / "clusters" / f"{name}.yaml").write_text(text)


def add_recorded(project: Any, name: str = "waited") -> None:
    """A second trace, with waits, users and limits."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {
            "t": np.arange(300) * 60,
            "g": 1,
            "r": rng.integers(10, 5000, 300),
            "w": np.arange(300),
            "u": rng.integers(0, 5, 300),
            "q": 6000,
        }
    )
    rows.to_csv(project.root / f"{name}.csv", index=False)
    (project.root / "config" / "traces" / f"{name}.yaml").write_text(
        f"title: Waited\ndata: own\nformat: csv\npath: {name}.csv\n"
        "columns: {submit_s: {column: t, unit: s}, gpus: g, run_s: {column: r, unit: s}, wait_s: {column: w, unit: s}, "
        "user: u, requested_s: {column: q, unit: s}}\n"
    )
    project.change(project.run, "experiments:\n", f"characterise: [{name}]\nexperiments:\n")


def test_every_frame_says_which_trace_and_which_data(project: Any) -> None:
    add_recorded(project)
    found = characterise(Workspace.open("config/tiny.yaml"))
    for name, frame in vars(found).items():
        expected = {"Tiny"} if name == "loads" else {"Tiny", "Waited"}
        assert set(frame["trace"]) == expected and set(frame["data"]) == {"own"} and set(frame["type"]) == {"GPU"}, name
    waits = dict(zip(found.workloads["trace"], found.workloads["wait_is"]))
    assert waits["Tiny"].startswith("simulated: FIFO + EASY on Small with ") and waits["Waited"] == RECORDED
    assert found.workloads.set_index("trace").loc["Waited", "avg_wait_s"] == np.arange(300).mean()
    kinds = {trace: set(rows["estimate"]) for trace, rows in found.estimates.groupby("trace")}
    assert kinds["Tiny"] == {"lognormal-1", "history-rolling", "history-lightgbm"}
    assert kinds["Waited"] == kinds["Tiny"] | {"requested"}
    assert len(found.batches[found.batches["trace"] == "Tiny"]) == 1200 // 256


def test_a_scaled_clock_has_no_hours(project: Any) -> None:
    add_recorded(project)
    text = (project.root / "config/traces/waited.yaml").read_text()
    (project.root / "config/traces/waited.yaml").write_text(
        text.replace("column: t, unit: s", "column: t, unit: s, factor: 2")
    )
    found = characterise(Workspace.open("config/tiny.yaml"))
    assert set(found.arrivals["trace"]) == {"Tiny"} and set(found.workloads["trace"]) == {"Tiny", "Waited"}


def test_a_simulated_wait_is_that_of_simulate_on_a_cluster_that_copes(project: Any) -> None:
    workspace = Workspace.open("config/tiny.yaml")
    jobs, _ = ensure_clean(workspace, "tiny")
    small = workspace.cluster("small")
    load = offered_load(ensure_fitted(workspace, "tiny", "small")[0], small.gpus)
    waits, times = simulated_wait(workspace, "tiny", "small", jobs)
    assert load > COPES and times == -(-load // COPES), "else the test shows less than it says"
    nodes = re.search(r"nodes: (\d+)", project.cluster.read_text())
    project.change(project.cluster, nodes[0], f"nodes: {times * int(nodes[1])}")
    workspace = Workspace.open("config/tiny.yaml")
    result = run(
        workspace,
        Request("tiny", "small", "exact", replay=True),
        make_scheduler(workspace, policy="fifo", backfill="easy"),
    )
    assert waits.tolist() == result.jobs()["wait_s"].tolist()
    assert known_wait(workspace, "tiny", jobs)[1] == "simulated: FIFO + EASY on Small", "large enough now"


def test_jobs_the_cluster_cannot_hold_have_no_wait(project: Any) -> None:
    project.change(project.cluster, "gpu_types: ignore\n", "gpu_types: ignore\nmax_job_gpus: 4\n")
    workspace = Workspace.open("config/tiny.yaml")
    jobs, _ = ensure_clean(workspace, "tiny")
    waits, _ = simulated_wait(workspace, "tiny", "small", jobs)
    assert (waits.isna() == (jobs["gpus"] > 4)).all() and waits.isna().any()


def test_the_largest_cluster_that_gets_all_arrivals_is_simulated(project: Any) -> None:
    add_cluster(project, "larger", FULL)
    add_cluster(project, "thinned", FULL.replace("nodes: 9", "nodes: 99") + "balance: {load: 0.001}\n")
    project.change(
        project.run,
        "experiments:\n",
        "workloads: [{trace: tiny, cluster: larger}, {trace: tiny, cluster: thinned}]\nexperiments:\n",
    )
    workspace = Workspace.open("config/tiny.yaml")
    jobs, _ = ensure_clean(workspace, "tiny")
    assert known_wait(workspace, "tiny", jobs)[1].startswith("simulated: FIFO + EASY on Larger")


def test_without_a_cluster_or_a_record_there_is_no_wait(project: Any) -> None:
    add_recorded(project)
    workspace = Workspace.open("config/tiny.yaml")
    jobs, _ = ensure_clean(workspace, "waited")
    waits, where = known_wait(workspace, "waited", jobs.assign(wait_s=np.nan))
    assert waits.isna().all() and where == ""


def test_accuracy_is_blind_to_every_test_part(project: Any) -> None:
    """A cluster that cannot hold the late jobs has an earlier test part, which counts as well."""
    lines = project.jobs.read_text().splitlines()
    late = [",".join([*line.split(",")[:2], "16", line.split(",")[3]]) for line in lines[901:]]
    project.jobs.write_text("\n".join([*lines[:901], *late]) + "\n")
    project.change(project.cluster, "gpu_types: ignore\n", "gpu_types: ignore\nmax_job_gpus: 8\n")
    workspace = Workspace.open("config/tiny.yaml")
    jobs, _ = ensure_clean(workspace, "tiny")
    count = before_test(workspace, "tiny", jobs)
    assert count == 810 < 0.9 * len(jobs)
    plain = characterise(workspace).estimates
    poison = [",".join([*line.split(",")[:3], "99999"]) for line in project.jobs.read_text().splitlines()[811:901]]
    project.jobs.write_text("\n".join([*lines[:811], *poison, *late]) + "\n")
    for path in (workspace.jobs("tiny"), workspace.fitted("tiny", "small")):
        path.unlink()
    assert len(ensure_fitted(workspace, "tiny", "small")[0]) == 900
    pd.testing.assert_frame_equal(characterise(workspace).estimates, plain)


@pytest.mark.parametrize("estimate", ["history-rolling", "history-lightgbm", "requested"])
def test_a_workload_gets_its_history_estimates_and_their_sources(estimate: str, project: Any) -> None:
    add_recorded(project)
    project.change(project.run, "characterise: [waited]", "workloads: [{trace: waited, cluster: small}]")
    workspace = Workspace.open("config/tiny.yaml")
    written = ensure_workload(workspace, "waited", "small", estimate)
    table = pd.read_parquet(workspace.estimates("waited", "small", estimate))
    assert list(table) == ["job_id", "estimate_s", "source", "calibrated_s"] and table["source"].notna().all()
    assert written.jobs.estimate_s.tolist() == table["estimate_s"].tolist()
    in_memory = make_workload(workspace, "waited", "small", estimate)
    assert in_memory.jobs.estimate_s.tolist() == table["estimate_s"].tolist() and in_memory.calibrated is None


def test_a_workload_has_its_jobs_as_they_are_calibrated_to_be(project: Any) -> None:
    """Also where a table of estimates was written before there were beliefs; the jobs themselves stay as they are."""
    workspace = Workspace.open("config/tiny.yaml")
    path = workspace.estimates("tiny", "small", "lognormal-1")
    ensure_workload(workspace, "tiny", "small", "lognormal-1")
    made = pd.read_parquet(path)
    made.drop(columns="calibrated_s").to_parquet(path, index=False)
    ensure_workload(workspace, "tiny", "small", "lognormal-1")
    pd.testing.assert_frame_equal(pd.read_parquet(path), made)
    made.assign(calibrated_s=2 * made["estimate_s"]).to_parquet(path, index=False)
    workload = ensure_workload(workspace, "tiny", "small", "lognormal-1")
    jobs, calibrated = workload.jobs, workload.calibrated
    assert calibrated is not None and calibrated.estimate_s.tolist() == (2 * made["estimate_s"]).tolist()
    assert jobs.estimate_s.tolist() == made["estimate_s"].tolist()
    for name in set(jobs.row.dtype.names) - {"estimate_s"}:
        assert np.array_equal(jobs.row[name], calibrated.row[name])
    assert np.array_equal(jobs.cut, calibrated.cut)


def test_a_cell_may_have_a_history_estimate(project: Any) -> None:
    project.change(project.run, "preset: [tiny]", "preset: [tiny]\n    estimate: [history-rolling]")
    workspace = Workspace.open("config/tiny.yaml")
    assert [cell.estimate for cell in workspace.config.cells()] == ["history-rolling"]
    table = characterise(workspace).estimates
    assert table["estimate"].tolist() == ["history-rolling", "history-lightgbm"]


def test_requested_times_that_nobody_gave_are_refused(cli: Any, project: Any) -> None:
    cli("stage", "estimate", "tiny", "small", "requested", "--config", "config/tiny.yaml").explains(
        "trace tiny", "no job names a requested time", "history-rolling"
    )


def test_a_characterised_trace_that_is_not_there(project: Any) -> None:
    project.change(project.run, "experiments:\n", "characterise: [tinny]\nexperiments:\n")
    with pytest.raises(ConfigError, match=r"tiny\.yaml:2: characterise\[0\]: found 'tinny'.*mean 'tiny'"):
        Workspace.open("config/tiny.yaml")


def test_the_workflow_cleans_what_is_only_characterised(shell: Any, project: Any) -> None:
    add_recorded(project)
    outcome = shell.rltune("run", "--config", "config/tiny.yaml", "--cores", 1, "--", "--dry-run", cwd=project.root)
    assert outcome.status == 0, outcome
    text = outcome.out + outcome.err
    assert "clean waited" in text and "clean tiny" in text and "fit waited" not in text
