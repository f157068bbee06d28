"""Runs that are killed, that fail, that are wrongly configured, and that meet each other in one folder."""

import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

RUN = ("report", "CONFIG=config/tiny.yaml", "CORES=1", "ARGS=--until train")
WAIT_S = 600.0


@dataclass
class Story:
    """One run that is disturbed, killed while it trains, and started again."""

    root: Path
    second: Any = None
    """Another run, started while the first one was at work."""
    kept: dict[Path, int] = field(default_factory=dict)
    """What the killed run had finished, with its time."""
    resumed: Any = None


def finished(root: Path) -> dict[Path, int]:
    """Results under their final names, with their times."""
    folders = ("traces", "workloads", "cells")
    files = [p for f in folders for p in (root / "results" / f).rglob("[!.]*") if p.is_file()]
    return {p: p.stat().st_mtime_ns for p in files if p.parent.name != "training"}  # which is a training's state


def wait_for(condition: Callable[[], Any], run: Any, output: Path) -> None:
    """Wait for something that a run at work does."""
    began = time.monotonic()
    while not condition():
        assert run.poll() is None and time.monotonic() - began < WAIT_S, output.read_text()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def story(make_project: Callable[[], Any], shell: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    disturbed = Story(make_project().root)
    output = tmp_path_factory.mktemp("output") / "first.txt"
    first = shell.start_make(*RUN, cwd=disturbed.root, output=output)
    try:
        wait_for((disturbed.root / ".snakemake").is_dir, first, output)
        disturbed.second = shell.make(*RUN, cwd=disturbed.root)
        wait_for(lambda: any((disturbed.root / "results" / "logs").glob("train-*.ipynb")), first, output)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    disturbed.kept = finished(disturbed.root)
    began = time.monotonic()
    disturbed.resumed = shell.make(*RUN, cwd=disturbed.root)
    while "another run is at work" in disturbed.resumed.err and time.monotonic() - began < WAIT_S:
        time.sleep(1)  # kernels of the killed run hold the lock until they see that nobody is there
        disturbed.resumed = shell.make(*RUN, cwd=disturbed.root)
    yield disturbed


def test_a_second_run_in_the_folder_is_refused(story):
    assert story.second.status and "another run is at work in" in story.second.err, story.second


def test_what_is_there_after_a_kill_is_whole(story):
    assert story.kept
    for path in story.kept:
        if path.suffix == ".parquet":
            assert len(pd.read_parquet(path)) == 1200
        elif path.suffix == ".json":
            assert json.loads(path.read_text())["rows_kept"] == 1200


def test_it_resumes_by_itself_and_makes_nothing_again(story):
    assert story.resumed.status == 0, story.resumed
    now = finished(story.root)
    assert {p: now.get(p) for p in story.kept} == story.kept and [p for p in now if p.name == "policy.npz"]
    assert "done: train" in story.resumed.err and "done: clean" not in story.resumed.err


def test_the_same_configuration_under_another_name_makes_nothing_again(story, shell):
    config = story.root / "config" / "tiny.yaml"
    shutil.copy(config, config.with_name("renamed.yaml"))
    run = ("report", "CONFIG=config/renamed.yaml", "ARGS=--until train -n")
    outcome = shell.make(*run, cwd=story.root)
    assert outcome.status == 0 and "would run" not in outcome.err, outcome


def test_one_stage_again_is_really_done_again(story, shell):
    before = finished(story.root)
    outcome = shell.make("notebook", "STAGE=train", "ONLY=1", "CONFIG=config/tiny.yaml", "CORES=1", cwd=story.root)
    assert outcome.status == 0 and "done: train" in outcome.err, outcome
    after = finished(story.root)
    assert {p.name for p in after if after[p] != before.get(p)} >= {"policy.npz", "history.csv"}


def test_another_cluster_counts_where_a_run_stopped_once_its_jobs_were_fitted(story, shell):
    """The jobs fit as before, so the same bytes are written; what was trained had other nodes."""
    cluster = story.root / "config" / "clusters" / "small.yaml"
    cluster.write_text(cluster.read_text().replace("nodes: 2, gpus: 2", "nodes: 3, gpus: 2"))
    stopped = shell.make(*RUN[:-1], "ARGS=--until fit", cwd=story.root)
    assert stopped.status == 0 and "done: fit" in stopped.err, stopped
    text = shell.make(*RUN[:-1], "ARGS=--until train -n", cwd=story.root).err
    assert "would run: fit" not in text and "would run: train tiny" in text


def test_a_corrected_trace_file_is_read_again(story, shell):
    dry = (*RUN[:-1], "ARGS=--until train -n")
    assert "would run: clean" not in shell.make(*dry, cwd=story.root).err
    with open(story.root / "jobs.csv", "a", encoding="utf-8") as file:
        file.write("more,99999999,1,60\n")
    text = shell.make(*dry, cwd=story.root).err
    assert "would run: clean tiny: Updated input files: jobs.csv" in text and "would run: train tiny" in text


@pytest.mark.parametrize(
    ("sent", "words"), [(signal.SIGINT, "Ctrl-C again does not wait"), (signal.SIGTERM, "no other is started")]
)
def test_a_stopped_run_says_what_it_waits_for(sent, words, project, shell, tmp_path):
    def children(word: str) -> list[psutil.Process]:
        found = []
        for process in psutil.Process(run.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                found += [process] if word in " ".join(process.cmdline()) else []
        return found

    output = tmp_path / "output.txt"
    run = shell.start_make(*RUN, cwd=project.root, output=output)
    try:
        wait_for(
            lambda: (project.results / "logs" / "clean-tiny.ipynb").is_file() and children("ipykernel"), run, output
        )
        [kernel] = children("ipykernel")
        kernel.suspend()  # so that the stage cannot end before the run is stopped
        [connection] = [json.loads(Path(part).read_text()) for part in kernel.cmdline() if part.endswith(".json")]
        assert connection["transport"] == "ipc"  # no ports, which another kernel could take
        if sent is signal.SIGINT:
            os.killpg(run.pid, sent)  # as a terminal does
        else:
            [process] = children("bin/snakemake")
            process.send_signal(sent)
        wait_for(lambda: "stopping" in output.read_text(), run, output)
        kernel.resume()
        assert run.wait(WAIT_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    text = output.read_text()
    assert f"stopping: waiting for 1 job to end, {words}" in re.sub("seconds here.*; ", "", text), text
    assert ("done: clean tiny" in text) == (sent is signal.SIGTERM) and "done: fit" not in text, text
    assert not re.search("Traceback|FAILED", text), text


def test_a_failing_stage_explains_itself(project, shell):
    project.change(project.jobs, "id,submitted,ngpu,secs", "id,submitted,gpus,secs")
    outcome = shell.make(*RUN, cwd=project.root)
    text = outcome.out + outcome.err
    assert outcome.status != 0 and "Traceback" not in text, text
    for part in ("FAILED: clean tiny", "jobs.csv", "'ngpu'", "results/logs/clean-tiny.ipynb"):
        assert part in text, text
    executed = json.loads((project.results / "logs" / "clean-tiny.ipynb").read_text())
    errors = [o for c in executed["cells"] for o in c.get("outputs", []) if o["output_type"] == "error"]
    assert [e["ename"] for e in errors] == ["DataError"] and errors[0]["traceback"]
    assert not finished(project.root)


def test_a_kernel_that_does_not_start_says_what_it_printed(project, shell, tmp_path, monkeypatch):
    argv = [sys.executable, "-c", "raise SystemExit('no room for it')", "{connection_file}"]
    (tmp_path / "kernels" / "rltune").mkdir(parents=True)
    spec = {"argv": argv, "display_name": "RLTune", "language": "python"}
    (tmp_path / "kernels" / "rltune" / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    text = shell.make(*RUN, cwd=project.root).err
    assert "clean.ipynb: Kernel died before replying to kernel_info\nno room for it" in text, text
    assert "Traceback" not in text, text


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("epochs: 2", "epochs: 0", ["config/tiny.yaml:", "presets.tiny.epochs: found 0", "or equal to 1"]),
        ("trace: tiny", "trace: tinny", ["config/tiny.yaml:", "found 'tinny'", "did you mean 'tiny'"]),
        ("path: jobs.csv", "path: none.csv", ["config/traces/tiny.yaml, path", "no such file"]),
    ],
)
def test_a_mistake_in_the_configuration_stops_before_the_first_job(old, new, parts, project, shell):
    project.change(project.trace if old.startswith("path") else project.run, old, new)
    outcome = shell.make(*RUN, cwd=project.root)
    assert outcome.status and not re.search("Traceback|jobs, about", outcome.err), outcome
    assert not [part for part in parts if part not in outcome.err], outcome.err
    assert not project.results.exists()
