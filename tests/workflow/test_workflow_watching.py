"""What a run says of itself: its record, how long jobs take, the line that is rewritten, why a stage failed."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from workflow_fakes import cell_job, clean_job, record_of, told

from rltune.agent.checkpoint import NAME as CHECKPOINT
from rltune.config import Workspace
from rltune.config.preset import BUILT_IN
from rltune.pipeline.workflow.costs import Costs
from rltune.pipeline.workflow.jobs import Job, Record, last_record
from rltune.pipeline.workflow.live import Live, failure, progress
from snakemake_logger_plugin_rltune import LogHandler, LogHandlerSettings

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "config/smoke.yaml"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(ROOT)
    return Workspace.open(CONFIG, tmp_path)


def benchmark(workspace: Workspace, name: str, text: str) -> None:
    path = workspace.results / "benchmarks" / f"{name}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_plugin_writes_what_the_record_reads(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    handler = LogHandler(None, LogHandlerSettings(file=str(path)))
    train = cell_job("train", workspace)

    def emit(**fields: Any) -> None:
        handler.emit(logging.makeLogRecord(fields))

    emit(
        event="job_info",
        jobid=3,
        rule_name="train",
        wildcards=train.wildcards,
        output=train.output,
        log=train.log,
        reason="Forced execution",
        benchmark="b.tsv",
    )
    emit(event="progress", done=0, total=1)
    emit(msg="nothing of a job")
    record = Record(path)
    assert record.read() == [] and list(record.running) == [train.key]
    planned = Job(train.rule, train.wildcards, train.output, train.log, forced=True, benchmark="b.tsv")
    assert record.planned[train.key] == planned
    emit(event="job_finished", job_id=3)
    assert [event for event, _ in record.read()] == ["finished"] and not record.running and not record.left


def test_a_record_tells_running_from_finished_and_failed(workspace: Workspace, tmp_path: Path) -> None:
    one, two, three = (cell_job("train", workspace, i) for i in range(3))
    four = clean_job("philly-smoke")
    record = record_of(
        tmp_path / "a.jsonl",
        told(one, 1),
        told(two, 2),
        told(three, 3),
        {"event": "finished", "id": 1},
        {"event": "failed", "id": 2},
        told(four, 4),
    )
    assert [(event, job.key) for event, job in record.read()] == [("finished", one.key), ("failed", two.key)]
    assert record.finished == {one.key: 3.0} and record.failed == {two.key: 1002.0}
    assert set(record.running) == {three.key, four.key} and record.ended is None
    assert {job.key for job in record.left} == {two.key, three.key, four.key}
    record.add("ended", status=1)
    assert record.read() == [] and record.status == 1 and record.ended


def test_a_line_that_is_being_written_is_read_when_it_is_whole(workspace: Workspace, tmp_path: Path) -> None:
    job = clean_job("philly-smoke")
    record = record_of(tmp_path / "a.jsonl", told(job, 1))
    record.read()
    line = json.dumps({"time": 1010.0, "event": "finished", "id": 1}) + "\n"
    with open(record.path, "a") as file:
        file.write(line[:20])
    assert record.read() == []
    with open(record.path, "a") as file:
        file.write(line[20:])
    assert [event for event, _ in record.read()] == ["finished"]


def test_the_last_record_is_that_of_the_last_run(workspace: Workspace) -> None:
    assert last_record(workspace) is None
    for name in ("20250101-000000", "20250102-000000"):
        record_of(workspace.results / "logs" / "runs" / f"{name}.jsonl")
    assert last_record(workspace).path.stem == "20250102-000000"


def test_costs_come_from_the_table_where_nothing_is_measured(workspace: Workspace) -> None:
    costs, table = Costs(workspace), Costs(workspace).table
    assert costs.seconds(clean_job("philly-smoke")) == table["stages_s"]["clean"]
    assert costs.seconds(Job("unheard_of", {}, ("x",))) == table["stages_s"]["other"]
    smoke = workspace.config.preset("smoke")
    share = smoke.epochs * smoke.trajectories * smoke.sequence_jobs / (100 * 100 * 256)
    scaled = table["start_s"] + table["training_s"]["paper"] * share
    assert costs.seconds(cell_job("train", workspace)) == pytest.approx(scaled)
    assert set(table["training_s"]) <= set(BUILT_IN) and costs.measured(cell_job("train", workspace)) == 0


def test_a_whole_downloaded_trace_takes_longer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    costs = Costs(Workspace.open("config/paper.yaml", tmp_path))
    assert costs.seconds(clean_job("philly")) == costs.table["stages_s"]["clean"] * costs.table["full_trace"]
    paper = cell_job("train", costs.workspace)
    assert costs.seconds(paper) == costs.table["training_s"]["paper"]


def test_what_this_run_measured_comes_first(workspace: Workspace) -> None:
    """Of the same trace, then of the same preset; files that are cut off or of former cells do not count."""
    first, second = workspace.config.cells()[:2]
    assert first.trace != second.trace and first.preset == second.preset
    benchmark(workspace, f"train/{first.name}", "s\th:m:s\n50.0\t0:00:50\n")
    benchmark(workspace, f"train/{second.name}", "s\th:m:s\n")
    benchmark(workspace, "train/gone__cell", "s\th:m:s\n9999\t-\n")
    benchmark(workspace, "characterise", "s\th:m:s\n12.5\t0:00:12\n")
    benchmark(workspace, "clean/philly-smoke", "s\th:m:s\n3\t0:00:03\n")
    costs = Costs(workspace)
    assert costs.seconds(cell_job("train", workspace, 0)) == costs.seconds(cell_job("train", workspace, 1)) == 50
    assert costs.seconds(Job("characterise", {}, ("x",))) == 12.5 and costs.seconds(clean_job("other")) == 3
    costs.learn(cell_job("train", workspace, 1), 70)
    assert costs.seconds(cell_job("train", workspace, 0)) == 50
    assert costs.seconds(cell_job("train", workspace, 1)) == 70
    assert costs.measured(cell_job("train", workspace, 1)) == 1


def test_time_is_bound_by_the_cores_and_by_the_longest_jobs(workspace: Workspace) -> None:
    costs = Costs(workspace)
    trains = [cell_job("train", workspace, i) for i in range(3)]
    for job in trains:
        costs.learn(job, 100)
    costs.learn(cell_job("evaluate", workspace), 10)
    assert costs.time(trains, 1) == 300 and costs.time(trains, 2) == 150 and costs.time(trains, 8) == 100
    assert costs.time([*trains, cell_job("evaluate", workspace)], 8) == 110
    assert costs.time(trains[:1], 1, {trains[0].key: 30.0}) == 70
    assert costs.time(trains[:1], 1, {trains[0].key: 130.0}) == 65, "it should have ended: half as long again"


def test_a_training_that_was_begun_has_its_other_epochs_left(workspace: Workspace) -> None:
    costs, job, cell = Costs(workspace), cell_job("train", workspace), workspace.config.cells()[0]
    costs.learn(job, 90)
    folder = workspace.training(cell)
    folder.mkdir(parents=True)
    (folder / "progress.csv").write_text("epoch,reward\n0,0\n1,0.1\n2,0.2\n")
    assert costs.epochs(job) is None, "of a training that ended, there is no state to go on from"
    (folder / CHECKPOINT).write_bytes(b"")
    assert costs.epochs(job) == (2, 3) and costs.left(job) == pytest.approx(30)
    assert costs.epochs(cell_job("evaluate", workspace)) is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_is_rewritten(workspace: Workspace) -> None:
    train, clean = cell_job("train", workspace), clean_job("philly-smoke")
    record = record_of(workspace.base / "a.jsonl", told(train, 1), told(clean, 2))
    out = Terminal()
    live = Live(workspace, record, out)
    with open(record.path, "a") as file:
        file.write(json.dumps({"time": 1065.0, "event": "finished", "id": 2}) + "\n")
    live.tick()
    live.close(0)
    lines = out.getvalue().split("\n")
    assert lines[0].endswith("done: clean philly-smoke, 1 min 03 s") and len(lines) == 2
    rewritten = lines[1].split("\r\x1b[2K")
    assert rewritten[1].startswith("0 of 3 cells done; 1 of 2 stages; train philly-smoke") and rewritten[-1] == ""
    assert "left" in progress(workspace, record, live.costs)


def test_elsewhere_lines_come_at_growing_intervals(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(workspace.base / "a.jsonl", told(clean_job("philly-smoke"), 1))
    now = [0.0]
    monkeypatch.setattr("rltune.pipeline.workflow.live.time.monotonic", lambda: now[0])
    out = io.StringIO()
    live = Live(workspace, record, out)
    said = []
    for second in range(0, 3600, 5):
        now[0], before = float(second), len(out.getvalue())
        live.tick()
        said += [second] * (len(out.getvalue()) > before)
    assert said[:4] == [15, 45, 105, 225] and said[-1] - said[-2] == 600 and "\r" not in out.getvalue()


def executed(path: Path, *outputs: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cell = {"cell_type": "code", "execution_count": 4, "outputs": list(outputs)}
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown"}, cell]}))


def test_a_failure_is_told_from_the_stages_own_log(workspace: Workspace) -> None:
    job = clean_job("philly-smoke")
    record = record_of(workspace.base / "a.jsonl", told(job, 1), {"event": "failed", "id": 1})
    record.read()
    record.log.write_text("Snakemake says a lot\nrltune: clean.ipynb: no such notebook\nand more\n")
    path = workspace.base / job.log[0]
    assert failure(workspace, record, job) == f"  rltune: clean.ipynb: no such notebook\n  {record.log}"
    executed(path, {"output_type": "stream"}, {"output_type": "error", "ename": "DataError", "evalue": "no column"})
    where = "clean-philly-smoke.ipynb stopped in cell 4"
    assert failure(workspace, record, job) == f"  {where}: DataError: no column\n  {path}"
    record.log.write_text("Error in rule clean\n")
    path.write_text('{"cells": [')
    assert "it was killed, or stopped" in failure(workspace, record, job)
    text = Job("fit", {}, ("y",), ("fit.log",))
    (workspace.base / "fit.log").write_text("".join(f"line {i}\n\n" for i in range(30)))
    shown = failure(workspace, record, text).splitlines()
    assert shown[0] == "  line 15" and shown[-2:] == ["  line 29", f"  {workspace.base / 'fit.log'}"]
