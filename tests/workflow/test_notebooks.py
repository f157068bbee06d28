"""Notebooks in git are stories without outputs, functions of the files that their parameters name."""

import ast
import json
import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import ipywidgets as widgets
import numpy as np
import pandas as pd
import pytest
from IPython.display import HTML, Image
from matplotlib.figure import Figure
from traitlets.config import Config

from rltune.config.cells import ANY_ESTIMATE, BACKFILLS, PLACEMENTS
from rltune.errors import DataError
from rltune.evaluation.simulation import Request
from rltune.notebook import follow, outcome, start
from rltune.policies import TITLES

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> dict[str, Any]:
    return json.loads(request.param.read_text(encoding="utf-8"))


def cells(notebook: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [c for c in notebook["cells"] if c["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def parameters(notebook: dict[str, Any]) -> dict[str, Any]:
    """Values of the first code cell; it holds assignments of literals, each with a comment, and nothing else."""
    cell = cells(notebook, "code")[0]
    assert "parameters" in cell["metadata"]["tags"]
    values = {}
    for statement in ast.parse(source(cell)).body:
        assert isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name), ast.unparse(statement)
        values[statement.targets[0].id] = ast.literal_eval(statement.value)
        last = source(cell).splitlines()[statement.end_lineno - 1]
        first = source(cell).splitlines()[statement.lineno - 1]
        assert "  # " in last or "  # " in first, f"no comment: {first}"
    return values


def paths(value: Any) -> list[str]:
    """The files and folders that a parameter names."""
    texts = value if isinstance(value, list) else [value]
    return [text for text in texts if isinstance(text, str) and text.startswith(("results/", "config/"))]


def test_form(notebook):
    assert notebook["metadata"]["kernelspec"]["name"] == "rltune" and notebook["nbformat"] == 4
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown" and source(first).startswith("# ")
    assert len(cells(notebook, "markdown")) >= 3
    for cell in cells(notebook, "code"):
        assert not cell["outputs"] and cell["execution_count"] is None
        assert not source(cell).lstrip().startswith(("%", "!")) and "sys.path" not in source(cell)
        lines = source(cell).splitlines()
        assert len(lines) <= 20 or {"parameters", "plumbing"} & {*cell["metadata"].get("tags", [])}, lines[0]
    assert len(cells(notebook, "code")) <= 12
    assert sum(len(source(cell).splitlines()) for cell in cells(notebook, "code")) <= 150


def test_parameters_are_literals_of_the_smoke_run(notebook):
    assert parameters(notebook)["config"] == "config/smoke.yaml"


def test_the_smoke_run_leaves_every_file_that_a_notebook_names(notebook, smoke_run):
    named = [path for value in parameters(notebook).values() for path in paths(value)]
    read = [path for path in named if not path.startswith("results/lab/")]
    assert [path for path in read if not (smoke_run.root / path).exists()] == []


def test_trying_something_does_not_overwrite_a_run(notebook):
    first = cells(notebook, "code")[0]
    written = [line for line in source(first).splitlines() if "written" in line.partition("  # ")[2]]
    assert [line for line in written if "results/lab/" not in line] == []


def test_the_index_has_every_notebook():
    index = json.loads((ROOT / "notebooks" / "index.ipynb").read_text(encoding="utf-8"))
    linked = {name for cell in cells(index, "markdown") for name in re.findall(r"\]\((\w+)\.ipynb\)", source(cell))}
    assert linked >= {path.stem for path in NOTEBOOKS} - {"index"}


def test_a_missing_input_names_its_stage_and_command(monkeypatch):
    monkeypatch.chdir(ROOT / "notebooks")
    path = "results/none/cells/a/policy.npz"
    with pytest.raises(DataError) as caught:
        start("config/smoke.yaml", ["config/smoke.yaml"], path)
    sentence = f"{path}: no such file; make it: make report CONFIG=config/smoke.yaml ARGS={path}"
    assert str(caught.value) == sentence
    assert caught.value._render_traceback_() == [f"DataError: {sentence}"]


FACTS = {"cell": {"metric": "wait", "policy": "fifo"}, "learned": True}
SCORES = ("validation_metric", "validation_base", "validation_random")


@pytest.mark.parametrize(
    ("metric", "scores", "sentence"),
    [
        ("wait", (812, 2104, 0), "mean wait 812 s against 2,104 s under FIFO (−61.4 %) and 0 s in random order"),
        ("utilisation", (-0.5, -0.4, -0.5), "GPU utilisation 50.0 % against 40.0 % under FIFO (25.0 %) and 50.0 %"),
        ("0.7*wait+0.3*utilisation", (-0.3, 0, 0.1), "reward 0.300 against 0 under FIFO and −0.100 in random order"),
    ],
)
def test_the_outcome_is_one_sentence(metric, scores, sentence):
    facts = FACTS | {"cell": {"metric": metric, "policy": "fifo"}} | dict(zip(SCORES, scores))
    assert outcome(facts).replace("\u00a0", " ").startswith(sentence) and outcome(facts).endswith("; it learned")
    assert "; it did not learn" in outcome(facts | {"learned": False})


@pytest.mark.parametrize("lab", [True, False])
def test_progress_is_a_bar_in_jupyterlab_and_lines_elsewhere(lab, monkeypatch, capsys):
    shown: list[Any] = []
    handle = SimpleNamespace(update=shown.append)
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: handle)
    monkeypatch.setenv("JPY_SESSION_NAME", "train.ipynb") if lab else monkeypatch.delenv("JPY_SESSION_NAME", False)
    preset, history = SimpleNamespace(epochs=2), pd.DataFrame()
    trainer = SimpleNamespace(preset=preset, epoch=1, validation_due=False, history=history)
    tell = follow(trainer, lambda history: Figure())
    tell({"epoch": 1, "reward": 0.5, "validation_rl": np.nan})
    trainer.epoch, trainer.validation_due = 2, True
    tell({"epoch": 2, "reward": 0.5, "validation_rl": 1.0, "validation_base": 2.0})
    bars = [one.data for one in shown if isinstance(one, HTML)]
    assert [text.split(">")[0] for text in bars] == [f'<progress max="2" value="{n}"' for n in (1, 2) if lab]
    assert [one.alt for one in shown if isinstance(one, Image)] == ["Training curves so far"] * lab
    assert capsys.readouterr().out.count("epoch ") == 2 * (not lab)


def test_the_menus_of_explore_offer_the_clusters_of_a_trace_and_can_be_made_again():
    explore = json.loads((ROOT / "notebooks" / "explore.ipynb").read_text(encoding="utf-8"))
    first, (static, menus) = parameters(explore), cells(explore, "code")[-2:]
    asked: list[dict[str, Any]] = []
    names = dict(widgets=widgets, TITLES=TITLES, ANY_ESTIMATE=ANY_ESTIMATE, BACKFILLS=BACKFILLS, PLACEMENTS=PLACEMENTS)
    scope = {**first, **names, "explore": lambda **choice: asked.append(choice), "in_lab": lambda: True}
    for cell in (static, menus, menus):
        exec(source(cell), scope)
    scope["traces"].value = "venus-rows"
    assert scope["clusters"].options == tuple(first["workloads"]["venus-rows"])
    assert asked[0]["trace"] == "philly-rows" and asked[-1]["cluster"] == first["workloads"]["venus-rows"][0]


def test_explore_simulates_as_many_jobs_as_are_chosen_in_one_window():
    explore = json.loads((ROOT / "notebooks" / "explore.ipynb").read_text(encoding="utf-8"))
    code = next(source(cell) for cell in cells(explore, "code") if "def schedule(" in source(cell))
    workload, run = SimpleNamespace(table=range(1000)), SimpleNamespace(config=None)
    scope = {"read": lambda *_: workload, "run": run, "Request": Request, "make_scheduler": lambda *_, **__: None}
    scope["simulate"] = lambda config, workload, request, scheduler: request
    exec(code, scope)
    asked = scope["schedule"]("t", "c", "fifo", "easy", "best_fit", position=50, jobs=512)
    assert (asked.begin, asked.jobs, asked.window) == (244, 512, 512)


def test_a_training_can_go_on_until_its_notebook_has_ended():
    """What Snakemake deletes of a stage that did not end is then made again from the last epoch's state."""
    train = json.loads((ROOT / "notebooks" / "train.ipynb").read_text(encoding="utf-8"))
    discards = ["discard_checkpoint" in source(cell) for cell in cells(train, "code")]
    assert discards == [False] * (len(discards) - 1) + [True]


def test_it_runs_alone_from_its_own_folder(smoke_run, tmp_path, monkeypatch):
    """As JupyterLab runs it: the kernel starts in the notebook's folder, the parameters are those that stand there."""
    import papermill

    root = shutil.copytree(smoke_run.root, tmp_path / "run", symlinks=True)  # it writes what the parameters name
    monkeypatch.chdir(root / "notebooks")
    monkeypatch.delenv("RLTUNE_ROOT", raising=False)
    with TemporaryDirectory(dir="/tmp") as sockets:  # tests beside this one use ports
        ipc = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
        papermill.execute_notebook(
            "evaluate.ipynb", tmp_path / "out.ipynb", progress_bar=False, cwd=os.getcwd(), config=ipc
        )
    executed = json.loads((tmp_path / "out.ipynb").read_text(encoding="utf-8"))
    assert all(c["execution_count"] for c in executed["cells"] if c["cell_type"] == "code")
