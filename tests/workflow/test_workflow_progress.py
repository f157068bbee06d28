"""The line that says how far a run is: the logger given Snakemake's events, on a clock that the test sets."""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

import snakemake_logger_plugin_rltune as plugin


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """Its ``s`` is what time.monotonic says."""
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(plugin, "time", SimpleNamespace(monotonic=lambda: now.s))
    monkeypatch.chdir(tmp_path)
    return now


def event(handler: plugin.LogHandler, name: str, **given: object) -> None:
    handler.emit(logging.makeLogRecord({"event": name, **given}))


def test_the_time_left_grows_with_a_training_that_takes_longer_than_expected(clock, capsys):
    handler = plugin.LogHandler(SimpleNamespace(dryrun=False), None)
    event(handler, "resources_info", cores=2)
    event(handler, "run_info", stats={"train": 6, "total": 6})
    assert "6 jobs, about 2 min if an agent trains as long as in the default run" in capsys.readouterr().err
    for job in range(2):
        event(handler, "job_info", jobid=job, rule_name="train", rule_msg=f"train {job}", output=[])
    event(handler, "job_started", jobs=[0, 1])
    clock.s = 600.0
    assert handler._left_s() == 4 * 600 / 2, "two have run ten minutes, so the other four take ten minutes each"
    event(handler, "job_finished", job_id=0)
    clock.s = 900.0
    assert handler._left_s() == (5 * 600 - 600) / 2, "one has ended: the mean of those that have, from now on"
    handler.close()
    assert "done: train 0, 10 min" in capsys.readouterr().err


def test_jobs_on_many_nodes_run_side_by_side(clock):
    handler = plugin.LogHandler(SimpleNamespace(dryrun=False), None)
    event(handler, "resources_info", nodes=50)
    event(handler, "run_info", stats={"train": 100})
    assert handler._left_s() == 100 * plugin.TYPICAL_S["train"] / 50
    handler.close()


def test_files_that_a_full_disk_has_cut_off_do_not_stop_it(clock, capsys, tmp_path):
    (tmp_path / plugin.SECONDS).parent.mkdir(parents=True)
    (tmp_path / plugin.SECONDS).write_text("")
    log = tmp_path / "train.ipynb"
    log.write_text('{"cells": [{"outp')
    handler = plugin.LogHandler(SimpleNamespace(dryrun=False), None)
    event(handler, "job_info", jobid=1, rule_name="train", rule_msg="train a", output=[])
    event(handler, "job_error", jobid=1, rule_name="train", log=[str(log)])
    assert f"FAILED: train a\n  {log}\n" in capsys.readouterr().err
    handler.took = {"train": [1.0]}
    (tmp_path / plugin.SECONDS).unlink()
    (tmp_path / plugin.SECONDS.parent).rmdir()
    (tmp_path / plugin.SECONDS.parent).write_text("in the way: nothing can be written there")
    handler.close()
