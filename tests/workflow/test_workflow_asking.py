"""Before a run: what it costs, whether to go on, which stage is meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from workflow_fakes import cell_job, clean_job

from rltune.config import Workspace
from rltune.pipeline.workflow.estimate import agreed, estimate
from rltune.pipeline.workflow.jobs import Job
from rltune.pipeline.workflow.rerun import ChoiceError, choose
from rltune.pipeline.workflow.snakemake import only_asks

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["config/paper.yaml"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("RLTUNE_TRACE_FILES", raising=False)
    return Workspace.open(request.param, tmp_path / "base")


def whole(workspace: Workspace) -> list[Job]:
    cells = range(len(workspace.config.cells()))
    return [*map(clean_job, workspace.config.traces()), *(cell_job("train", workspace, i) for i in cells)]


smoke = pytest.mark.parametrize("workspace", ["config/smoke.yaml"], indirect=True)


def test_the_papers_matrix_is_told_before_it_starts(workspace: Workspace) -> None:
    found = estimate(workspace, whole(workspace), 2)
    assert "0 of 155 cells done" in found.text and "train 83 × paper" in found.text and "train 72 × tuned" in found.text
    table = yaml.safe_load((ROOT / "workflow" / "costs.yaml").read_text())["training_s"]
    training = 83 * table["paper"] + 72 * table["tuned"]
    assert training < 2 * found.seconds < 1.05 * training
    assert "philly 1.06 GB" in found.text and "helios 36.4 MB" in found.text
    assert "alibaba 2 files of unknown size" in found.text and found.bytes == 1055988361 + 36.4e6 + 3e6
    assert "disk: about" in found.text and "free in" in found.text and found.large
    assert estimate(workspace, whole(workspace), 8).seconds == pytest.approx(found.seconds / 4)


@pytest.mark.parametrize(("load", "busy"), [(0.1, False), (5.0, True)])
def test_times_are_those_of_an_idle_machine(
    load: float, busy: bool, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    text = estimate(workspace, whole(workspace), 2).text
    assert "on 2 idle cores" in text and ("where the load is 5.0 on 2 cores" in text) == busy
    assert "idle" not in estimate(workspace, whole(workspace), 2, "slurm").text


def test_a_file_that_is_there_is_not_downloaded(workspace: Workspace) -> None:
    folder = workspace.cache / "raw" / "philly"
    folder.mkdir(parents=True)
    (folder / "trace-data.tar.gz").touch()
    found = estimate(workspace, whole(workspace), 2)
    assert "philly 1.06 GB" not in found.text and found.bytes == pytest.approx(39.4e6)


@smoke
def test_a_small_run_does_not_ask(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    found = estimate(workspace, whole(workspace), 2)
    assert not found.large and "downloads" not in found.text and agreed(found, yes=False)
    assert capsys.readouterr().out == found.text + "\n"


@pytest.mark.parametrize(("answer", "wanted"), [("y", True), ("Yes ", True), ("", False), ("n", False), (None, False)])
def test_on_a_terminal_it_asks(
    answer: str | None, wanted: bool, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def reply(question: str) -> str:
        asked.append(question)
        if answer is None:
            raise EOFError
        return answer

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", reply)
    found = estimate(workspace, whole(workspace), 2)
    assert agreed(found, yes=False) is wanted and asked == ["Go on? [y/N] "]
    assert agreed(found, yes=True) and len(asked) == 1


def test_without_a_terminal_it_explains(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    assert not agreed(estimate(workspace, whole(workspace), 2), yes=False)
    assert "--yes" in capsys.readouterr().err


@smoke
def test_a_stage_is_found_by_the_axes_that_tell_it_apart(workspace: Workspace) -> None:
    jobs = [*whole(workspace), Job("figures", {}, ("figures",))]
    raw = choose(workspace, jobs, "train", {"trace": "philly-smoke", "features": "raw"})
    cell = raw.cell(workspace.config)
    assert (cell.trace, cell.features) == ("philly-smoke", "raw")
    for name in (cell.hash, cell.name):
        assert choose(workspace, jobs, "train", {"cell": name}) == raw
    assert choose(workspace, jobs, "clean", {"trace": "alibaba-smoke"}) == clean_job("alibaba-smoke")
    assert choose(workspace, jobs, "figures", {}).rule == "figures"


@smoke
@pytest.mark.parametrize(
    ("stage", "wanted", "parts"),
    [
        (
            "train",
            {"trace": "philly-smoke"},
            ["2 jobs match", "trace philly-smoke given", "features=raw", "features=engineered"],
        ),
        ("train", {"policy": "sjf"}, ["policy: found 'sjf'; stage train has: fifo"]),
        (
            "train",
            {"trace": "phily-smoke"},
            ["trace: found 'phily-smoke' (did you mean 'philly-smoke'?)", "alibaba-smoke"],
        ),
        (
            "train",
            {"trace": "alibaba-smoke", "features": "raw"},
            ["no job matches", "features raw", "trace=alibaba-smoke"],
        ),
        ("clean", {"policy": "fifo"}, ["policy: not of stage clean", "trace"]),
        ("figures", {"trace": "philly-smoke"}, ["trace: not of stage figures", "asks for nothing"]),
        ("clean", {}, ["2 jobs match", "trace=philly-smoke", "trace=alibaba-smoke"]),
        ("trane", {}, ["found 'trane' (did you mean 'train'?)", "figures, train, clean"]),
    ],
)
def test_what_is_ambiguous_or_unknown_is_explained(
    stage: str, wanted: dict[str, str], parts: list[str], workspace: Workspace
) -> None:
    with pytest.raises(ChoiceError) as error:
        choose(workspace, [*whole(workspace), Job("figures", {}, ("figures",))], stage, wanted)
    assert not [part for part in parts if part not in str(error.value)], error.value


def test_questions_to_snakemake_are_told_from_runs() -> None:
    for arguments in (["-n"], ["-np"], ["--dry-run"], ["--unlock"], ["--forcerun", "figures", "-n"]):
        assert only_asks(arguments), arguments
    for arguments in ([], ["--until", "train"], ["-f", "results/x.csv"], ["--forcerun", "figures"], ["-k"]):
        assert not only_asks(arguments), arguments


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["paper"], 'rltune run --config "config/paper.yaml" --cores 3  -- '),
        (["paper", "YES=1"], 'rltune run --config "config/paper.yaml" --cores 3 --yes -- '),
        (["report"], 'rltune run --config "config/default.yaml" --cores 3  -- '),
        (["status", "CONFIG=config/x.yaml"], 'rltune status --config "config/x.yaml" --cores 3'),
        (
            ["notebook", "STAGE=train", "POLICY=sjf", "SEED=2", "ONLY=1"],
            'rltune notebook "train" --policy "sjf" --seed "2" --only --config "config/default.yaml" --cores 3',
        ),
    ],
)
def test_make_passes_on_what_it_is_told(asked: list[str], told: str) -> None:
    """And nothing that the environment happens to hold."""
    command = ["make", "--dry-run", "--old-file", ".venv/.ready", "CORES=3", *asked]
    unasked = dict.fromkeys(("TRACE", "POLICY", "ONLY", "YES", "VERBOSE"), "unasked")
    environment = {"PATH": "/usr/bin:/bin", **unasked}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == told.split()
