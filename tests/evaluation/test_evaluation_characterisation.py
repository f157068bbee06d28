"""Characterisation of a small project: where waits come from, and that test parts stay unread where it matters."""

import re
from typing import Any

import numpy as np
import pandas as pd

from rltune.cluster.fit import fit
from rltune.cluster.load import offered_load
from rltune.cluster.workload import build_workload
from rltune.config.context import Run
from rltune.evaluation.simulation import Request, make_scheduler, run
from rltune.evaluation.studies.characterisation import (
    RECORDED,
    TARGET_LOAD,
    Characterisation,
    Fitted,
    Tables,
    before_test,
    characterise,
    known_wait,
    simulated_wait,
)
from rltune.traces.clean import clean_trace
from rltune.traces.fetch import obtain

FULL = """\
title: Larger
gpu_types: ignore
pools: [{name: all, groups: [{gpu_type: P100, nodes: 9, gpus: 8, cpus: 64, mem_gb: 512}]}]
"""


def add_recorded(project: Any, factor: str = "") -> None:
    """A second trace, with waits, users and limits."""
    rng = np.random.default_rng(3)
    columns = {"t": np.arange(300) * 60, "g": 1, "r": rng.integers(10, 5000, 300), "w": np.arange(300)}
    rows = pd.DataFrame({**columns, "u": rng.integers(0, 5, 300), "q": 6000})
    rows.to_csv(project.root / "waited.csv", index=False)
    (project.root / "config" / "traces" / "waited.yaml").write_text(
        "title: Waited\ndata: own\nformat: csv\npath: waited.csv\n"
        f"columns: {{submit_s: {{column: t, unit: s{factor}}}, gpus: g, run_s: {{column: r, unit: s}}, "
        "wait_s: {column: w, unit: s}, user: u, requested_s: {column: q, unit: s}}\n"
    )
    project.change(project.run, "experiments:\n", "characterise: [waited]\nexperiments:\n")


def read(project: Any) -> tuple[Run, Tables, Fitted]:
    """The run with its traces cleaned and fitted."""
    opened = Run.open("config/tiny.yaml")
    tables = {}
    for name, trace in opened.traces.items():
        cleaned = clean_trace(name, trace, obtain(name, trace, project.root / ".cache", project.root))
        tables[name] = cleaned.jobs, cleaned.meta
    workloads = [(w.trace, w.cluster) for w in opened.config.all_workloads()]
    train = opened.config.train_share
    return (
        opened,
        tables,
        {(trace, name): fit(tables[trace][0], opened.clusters[name], "", train)[0] for trace, name in workloads},
    )


def characterised(project: Any) -> Characterisation:
    return characterise(*read(project))


def wait_is(project: Any) -> str:
    """Where the waits of tiny come from."""
    opened, tables, fitted = read(project)
    return known_wait(opened, "tiny", tables["tiny"][0], {cluster: frame for (_, cluster), frame in fitted.items()})[1]


def test_every_frame_names_the_trace_and_the_kind_of_its_data(project):
    add_recorded(project)
    found = characterised(project)
    for name, frame in vars(found).items():
        expected = {"Tiny"} if name in ("loads", "estimates") else {"Tiny", "Waited"}
        assert set(frame["trace"]) == expected and set(frame["data"]) == {"own"} and set(frame["type"]) == {"GPU"}, name
    waits = dict(zip(found.workloads["trace"], found.workloads["wait_is"]))
    assert waits["Tiny"].startswith("simulated: FIFO + EASY on Small with ") and waits["Waited"] == RECORDED
    assert found.workloads.set_index("trace").loc["Waited", "avg_wait_s"] == np.arange(300).mean()
    kinds = {trace: set(rows["estimate"]) for trace, rows in found.estimates.groupby("trace")}
    assert kinds["Tiny"] == {"lognormal-1", "history-rolling", "history-lightgbm"}
    assert len(found.batches[found.batches["trace"] == "Tiny"]) == 1200 // 256


def test_a_run_of_cpu_traces_alone_has_every_frame(project):
    opened, tables, fitted = read(project)
    jobs, meta = tables["tiny"]
    found = characterise(opened, {"tiny": (jobs.assign(cpus=jobs["gpus"], gpus=0, resource="cpu"), meta)}, fitted)
    assert all(map(len, vars(found).values())), {name: len(frame) for name, frame in vars(found).items()}
    assert set(found.workloads["type"]) == {"CPU"} and len(found.batches) == 1200 // 256


def test_a_scaled_clock_has_no_hours(project):
    add_recorded(project, factor=", factor: 2")
    found = characterised(project)
    assert set(found.arrivals["trace"]) == {"Tiny"} and set(found.workloads["trace"]) == {"Tiny", "Waited"}


def test_a_simulated_wait_is_that_of_simulate_on_a_cluster_that_keeps_up(project):
    opened, tables, fitted = read(project)
    small = opened.clusters["small"]
    load = offered_load(fitted["tiny", "small"], small.gpus)
    waits, times = simulated_wait(tables["tiny"][0], fitted["tiny", "small"], small)
    assert load > TARGET_LOAD and times == -(-load // TARGET_LOAD), "else the test shows less than it says"
    nodes = re.search(r"nodes: (\d+)", project.cluster.read_text())
    project.change(project.cluster, nodes[0], f"nodes: {times * int(nodes[1])}")
    opened = Run.open("config/tiny.yaml")
    work = build_workload(opened, "tiny", "small", "exact")
    easy = make_scheduler(opened.config, policy="fifo", backfill="easy")
    assert waits.tolist() == run(opened.config, work, Request(replay=True), easy).jobs()["wait_s"].tolist()
    assert wait_is(project) == "simulated: FIFO + EASY on Small", "large enough now"


def test_jobs_the_cluster_cannot_hold_have_no_wait(project):
    project.change(project.cluster, "gpu_types: ignore\n", "gpu_types: ignore\nmax_job_gpus: 4\n")
    opened, tables, fitted = read(project)
    jobs = tables["tiny"][0]
    waits, _ = simulated_wait(jobs, fitted["tiny", "small"], opened.clusters["small"])
    assert (waits.isna() == (jobs["gpus"] > 4)).all() and waits.isna().any()


def test_the_largest_cluster_that_gets_all_arrivals_is_simulated(project):
    folder = project.root / "config" / "clusters"
    (folder / "larger.yaml").write_text(FULL)
    (folder / "thinned.yaml").write_text(FULL.replace("nodes: 9", "nodes: 99") + "balance: 0.001\n")
    more = "workloads: [{trace: tiny, cluster: larger}, {trace: tiny, cluster: thinned}]\n"
    project.change(project.run, "experiments:\n", f"{more}experiments:\n")
    assert wait_is(project).startswith("simulated: FIFO + EASY on Larger")


def test_without_a_cluster_or_a_record_there_is_no_wait(project):
    add_recorded(project)
    opened, tables, _ = read(project)
    waits, where = known_wait(opened, "waited", tables["waited"][0].assign(wait_s=np.nan), {})
    assert waits.isna().all() and where == ""


def test_accuracy_is_blind_to_every_test_part(project):
    """A cluster that cannot hold the late jobs has an earlier test part, which counts as well."""
    lines = project.jobs.read_text().splitlines()
    late = [",".join([*line.split(",")[:2], "16", line.split(",")[3]]) for line in lines[901:]]
    project.jobs.write_text("\n".join([*lines[:901], *late]) + "\n")
    project.change(project.cluster, "gpu_types: ignore\n", "gpu_types: ignore\nmax_job_gpus: 8\n")
    opened, tables, fitted = read(project)
    jobs = tables["tiny"][0]
    assert before_test(opened, jobs, {"small": fitted["tiny", "small"]}) == 810 < 0.9 * len(jobs)
    plain = characterise(opened, tables, fitted).estimates
    poison = [",".join([*line.split(",")[:3], "99999"]) for line in lines[811:901]]
    project.jobs.write_text("\n".join([*lines[:811], *poison, *late]) + "\n")
    opened, tables, fitted = read(project)
    assert len(fitted["tiny", "small"]) == 900
    pd.testing.assert_frame_equal(characterise(opened, tables, fitted).estimates, plain)


def test_estimates_that_cells_use_are_characterised_once(project):
    project.change(project.run, "preset: [tiny]", "preset: [tiny]\n    estimate: [history-rolling]")
    assert characterised(project).estimates["estimate"].tolist() == ["history-rolling", "history-lightgbm"]
