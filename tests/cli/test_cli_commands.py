"""The command line: help, wrong options, the configuration's commands, what `make` says."""

import errno
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from rltune.cli import app, steps
from rltune.config.cells import POLICIES
from rltune.config.context import Run

ROOT = Path(__file__).resolve().parents[2]
SIMULATE = ("simulate", "--trace", "tiny", "--cluster", "small", "--config", "config/tiny.yaml")
Cli = Callable[..., Any]


def commands(of: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and every group of commands."""
    yield before
    for name, inner in getattr(of, "commands", {}).items():
        yield from commands(inner, (*before, name))


@pytest.mark.parametrize("words", commands(typer.main.get_command(app)), ids=" ".join)
def test_help(words, cli):
    outcome = cli(*words, "--help")
    assert outcome.status == 0 and "Usage: " in outcome.out and not outcome.err


def test_the_installed_command_answers():
    command = Path(sys.executable).parent / "rltune"
    done = subprocess.run([command, "config", "check", "nope.yaml"], capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("rltune: nope.yaml: no such file")


def test_check_lists_the_cells_and_writes_nothing(project, cli, monkeypatch):
    also = "evaluation: {also: [{placement: spread}], "
    project.change(project.run, "[fifo]", "[fifo, saf]")
    project.change(project.run, "evaluation: {", f"simulation: {{overrun: now}}\n{also}")
    before = sorted(project.root.rglob("*"))
    outcome = cli("config", "check", "config/tiny.yaml")
    cells = Run.open("config/tiny.yaml").config.cells()
    assert outcome.status == 0 and "valid; cells: 2; results in results" in outcome.out
    assert all(f"{cell.hash}  {cell.name}" in outcome.out for cell in cells)
    assert "simulation: overrun now, sticky_head False" in outcome.out
    assert "evaluated also with: placement spread, locality strict" in outcome.out
    hours = sum(Run.open("config/tiny.yaml").config.preset(cell.preset).core_hours() for cell in cells)
    assert f"training: about {hours:.1g} core hours" in outcome.out
    assert sorted(project.root.rglob("*")) == before
    monkeypatch.chdir(project.root / "config" / "traces")
    assert cli("config", "check", "config/tiny.yaml").status == cli("config", "check", project.run).status == 0
    project.change(project.run, "preset: [tiny]", "estimate: [published]\n    preset: [tiny]")
    assert "config/traces/tiny.yaml: no `predictions`" in cli("config", "check", "config/tiny.yaml").err


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--policy", "sfj"], ["--policy: found 'sfj' (did you mean 'sjf'?)", *POLICIES]),
        (["--backfill", "eazy"], ["--backfill: found 'eazy' (did you mean 'easy'?)", "conservative"]),
        (["--estimate", "lognormal"], ["--estimate: found 'lognormal', expected lognormal-SIGMA"]),
        (["--policy", "qssf"], ["policy qssf needs one of the estimates history-lightgbm", "found lognormal-1"]),
        (["--multi-node-slowdown", "0.5"], ["--multi-node-slowdown: found 0.5, expected 1 to 100"]),
        (["--warm-up", "0.5"], ["--warm-up: goes with --replay"]),
        (["--replay", "--warm-up", "50"], ["--warm-up: found 50, expected a share"]),
        (["--replay", "--warm-up", "0.5", "--bound"], ["--bound: does not go with --warm-up", "of all jobs"]),
        (["--gpu-price", "2"], ["--gpu-price: goes with --types least, allox, joint; here --types auto is any"]),
        (["--gpu-price", "2", "--types", "any"], ["--gpu-price: goes with --types least, allox, joint; found any"]),
        (["--replay", "--windows", "9"], ["--windows: does not go with --replay"]),
        (["--from", "-3"], ["--from: found -3, expected 0 or more"]),
        (["--jobs", "0"], ["--jobs: found 0, expected 1 or more"]),
        (["--from", "3", "--part", "test"], ["--from: does not go with --part"]),
        (["--placement", "algorithm1", "--locality", "any"], ["--placement algorithm1", "'any'", "strict"]),
        (["--from", "1200"], ["--from: found 1200", "0 to 1199"]),
        (["--jobs", "5000"], ["--jobs: found 5000", "1 to 1200"]),
        (["--windows", "20", "--jobs", "10"], ["--windows: found 20", "1 to 10"]),
        (["--warm-up", "0.95", "--replay", "--jobs", "10"], ["--warm-up: found 0.95", "none of 10 jobs"]),
        (["--csv", "/nowhere/x.csv"], ["--csv: found /nowhere/x.csv", "mkdir -p /nowhere"]),
        (["--csv", "config"], ["--csv: found config, but it is a folder"]),
        (["--csv", "/dev/null"], ["--csv: found /dev/null, which is no regular file"]),
        (["--gantt", "a.pdf"], ["--gantt: found a.pdf, expected a name that ends in .svg or .png"]),
        (["--trace", "tinny"], ["--trace: found 'tinny'", "did you mean 'tiny'", "config/traces/tinny.yaml"]),
        (["--cluster", "smal"], ["--cluster: found 'smal'", "did you mean 'small'"]),
        (["--policy", "sfj", "--part", "tests"], ["--policy: found 'sfj'", "--part: found 'tests'"]),
    ],
)
def test_an_option_of_simulate_is_refused_with_what_it_takes(options, parts, project, cli):
    cli(*SIMULATE, *options).explains(*parts)


def test_a_folder_that_may_not_be_written_is_named_before_anything_is_simulated(project, cli, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write where the mode forbids it
    monkeypatch.setattr(Run, "open", lambda *args: pytest.fail("looked at the output only later"))
    cli(*SIMULATE, "--csv", "x.csv").explains("--csv: found x.csv", "may not write to the folder .")


def test_the_version_says_which_sources(cli):
    outcome = cli("--version")
    assert outcome.status == 0 and outcome.out.startswith("rltune 0.1.0, Python 3.") and "sources " in outcome.out


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free some space"), (errno.EACCES, "may not write"), (errno.EROFS, "read-only")],
)
def test_an_error_of_the_system_says_what_to_do(number, advice, project, cli, monkeypatch):
    def fail(*arguments: object) -> None:
        raise OSError(number, "as the system says", "/data/x.parquet")

    monkeypatch.setattr(Run, "open", fail)
    cli("config", "check", "config/tiny.yaml").explains("/data/x.parquet: as the system says", advice)


def test_output_that_nobody_reads_to_its_end_is_no_error(project):
    command = f"{Path(sys.executable).parent / 'rltune'} trace list | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.stdout.startswith("name ") and not done.stderr


def test_steps_are_shown_on_a_terminal_alone(capsys, monkeypatch):
    with steps.step("thinking"):
        pass
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with steps.step("thinking"):
        assert capsys.readouterr().err == "\r\x1b[2Kthinking …"
    assert capsys.readouterr().err == "\r\x1b[2K", "the line is gone again"


def test_set_up_is_quiet_and_shows_what_failed(capfd):
    setup = runpy.run_path(str(ROOT / "workflow" / "setup.py"))
    setup["run"](sys.executable, "-c", "import sys; print('WARNING: noise'); print('noise', file=sys.stderr)")
    assert capfd.readouterr() == ("", "")
    with pytest.raises(SystemExit, match=r"(?s)set-up failed \(exit status 3\) at: .*PIP_INDEX_URL"):
        setup["run"](sys.executable, "-c", "import sys; print('no such package'); sys.exit(3)")
    assert "no such package" in capfd.readouterr().err
