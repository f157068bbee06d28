"""Runs that are killed, that fail, and that meet each other in one folder."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from rltune.pipeline.prepare import MADE_OF

UNTIL_TRAINED = ("run", "--config", "config/tiny.yaml", "--cores", 1, "--", "--until", "train")
PATIENCE_S = 120


@dataclass
class Story:
    """One run that is disturbed, killed while it trains, and started again."""

    root: Path
    second: Any = None
    """Another run, started while the first one was at work."""
    kept: dict[Path, int] = field(default_factory=dict)
    """What the killed run had finished, with its time."""
    killed: Any = None
    """What `rltune status` said then."""
    stopped: str = ""
    """What a run said that was asked to stop, and asked again."""
    left: list[str] = field(default_factory=list)
    """Its processes that were still there a little later."""
    resumed: Any = None

    @property
    def results(self) -> Path:
        return self.root / "results"


def wait_for(condition: Callable[[], Any], process: Any, output: Path) -> None:
    """Wait until something is there; fail with what the process said if it ends before."""
    began = time.monotonic()
    while not condition():
        assert process.poll() is None and time.monotonic() - began < PATIENCE_S, output.read_text()
        time.sleep(0.05)


def finished(results: Path) -> dict[Path, int]:
    """Results under their final names, with their times."""
    folders = ("traces", "workloads", "cells")
    return {p: p.stat().st_mtime_ns for f in folders for p in (results / f).rglob("[!.]*") if p.is_file()}


@pytest.fixture(scope="module")
def story(make_project: Callable[[], Any], shell: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    root = make_project().root
    output = tmp_path_factory.mktemp("output") / "first.txt"
    tale = Story(root)
    first = shell.start(*UNTIL_TRAINED, cwd=root, output=output)
    try:
        locks = root / ".snakemake" / "locks"
        wait_for(lambda: locks.is_dir() and any(locks.iterdir()), first, output)
        tale.second = shell.rltune("run", "--config", "config/tiny.yaml", "--cores", 1, cwd=root)
        notebooks = tale.results / "notebooks"
        wait_for(lambda: any(notebooks.glob("train-*.ipynb")), first, output)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    tale.kept = finished(tale.results)
    tale.killed = shell.rltune("status", "--config", "config/tiny.yaml", cwd=root)
    tale.stopped, tale.left = stopped_twice(tale, shell, output)
    tale.resumed = shell.rltune(*UNTIL_TRAINED, cwd=root)
    yield tale


def stopped_twice(tale: Story, shell: Any, output: Path) -> tuple[str, list[str]]:
    """Go on, and ask twice to stop while it trains."""
    for old in (tale.results / "notebooks").glob("train-*.ipynb"):
        old.unlink()
    run = shell.start(*UNTIL_TRAINED, cwd=tale.root, output=output)
    family: list[psutil.Process] = []
    try:
        wait_for(lambda: any((tale.results / "notebooks").glob("train-*.ipynb")), run, output)
        family = psutil.Process(run.pid).children(recursive=True)
        run.terminate()
        wait_for(lambda: "once more" in output.read_text(), run, output)
        run.terminate()
        assert run.wait(30) != 0
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    _, left = psutil.wait_procs(family, timeout=20)
    return output.read_text(), [str(process) for process in left]


def test_a_second_run_in_the_folder_refuses(story: Story) -> None:
    story.second.explains(f"another run is at work in {story.root} (process ", "wait for it")
    assert not story.second.out


def test_the_killed_run_had_done_something_and_not_all(story: Story) -> None:
    names = {p.name for p in story.kept}
    assert {"jobs.parquet", "audit.json", "estimate-lognormal-1.parquet"} <= names and "policy.npz" not in names


def test_asked_twice_to_stop_it_stops_at_once_and_leaves_no_process(story: Story) -> None:
    assert "waiting for the stages that run to end" in story.stopped and "stopping at once" in story.stopped
    assert story.left == []


def test_no_half_written_file_had_a_final_name(story: Story) -> None:
    for path in story.kept:
        if path.suffix == ".parquet":
            assert len(pd.read_parquet(path)) == 1200
        elif path.suffix == ".json":
            whole = json.loads(path.read_text())
            assert path.name == MADE_OF or whole["rows_kept"] == 1200


def test_it_resumes_by_itself(story: Story) -> None:
    assert story.resumed.status == 0, story.resumed
    assert "killed" in story.resumed.out
    assert [p for p in finished(story.results) if p.name == "policy.npz"]


def test_what_was_finished_is_not_made_again(story: Story) -> None:
    now = finished(story.results)
    assert {p: now.get(p) for p in story.kept} == story.kept
    text = story.resumed.out + story.resumed.err
    assert "done: train tiny fifo" in text and "clean tiny" not in text and "fit tiny" not in text


def test_status_tells_what_the_killed_run_left(story: Story) -> None:
    text = story.killed.out
    assert story.killed.status == 0 and "the last run was killed" in text and "0 of 1 cells done" in text, story.killed
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith("  ")}
    assert rows["clean"] == rows["fit"] == ["1", "0", "0", "0"] and rows["train"] == ["0", "0", "0", "1"]


def test_no_lock_is_left(story: Story) -> None:
    state = story.root / ".snakemake"
    assert not [p for folder in ("locks", "incomplete") for p in (state / folder).glob("*")]


def test_a_failing_stage_explains_itself(project: Any, shell: Any) -> None:
    project.change(project.jobs, "id,submitted,ngpu,secs", "id,submitted,gpus,secs")
    outcome = shell.rltune("run", "--config", "config/tiny.yaml", "--cores", 1, cwd=project.root)
    text = outcome.out + outcome.err
    assert outcome.status != 0 and "Traceback" not in text
    for part in ("FAILED: clean tiny", "jobs.csv", "'ngpu'", "clean-tiny.ipynb stopped in cell", "all that was said"):
        assert part in text, text
    told = shell.rltune("status", "--config", "config/tiny.yaml", cwd=project.root).out
    assert "the last one failed at" in told and "FAILED: clean tiny" in told and "'ngpu'" in told, told
    executed = json.loads((project.root / "results" / "notebooks" / "clean-tiny.ipynb").read_text())
    errors = [o for c in executed["cells"] for o in c.get("outputs", []) if o["output_type"] == "error"]
    assert [e["ename"] for e in errors] == ["DataError"] and errors[0]["traceback"]
    assert not finished(project.root / "results")


def test_one_stage_again_is_really_done_again(story: Story, shell: Any) -> None:
    before = finished(story.results)
    outcome = shell.rltune(
        "notebook", "train", "--policy", "fifo", "--only", "--config", "config/tiny.yaml", "--cores", 1, cwd=story.root
    )
    assert outcome.status == 0 and "done: train tiny fifo" in outcome.out, outcome
    assert outcome.out.rstrip().endswith(".ipynb") and Path(outcome.out.splitlines()[-1]).is_file()
    after = finished(story.results)
    changed = {p.name for p in after if after[p] != before.get(p)}
    assert {"policy.npz", "history.csv"} <= changed and not changed & {"jobs.parquet", "audit.json"}


def test_a_corrected_trace_file_is_read_again(story: Story, shell: Any) -> None:
    def planned() -> str:
        outcome = shell.rltune(*UNTIL_TRAINED, "--dry-run", cwd=story.root)
        assert outcome.status == 0, outcome
        return outcome.out + outcome.err

    assert "clean tiny" not in planned()
    with open(story.root / "jobs.csv", "a", encoding="utf-8") as file:
        file.write("more,99999999,1,60\n")
    text = planned()
    assert "clean tiny" in text and "train tiny" in text
