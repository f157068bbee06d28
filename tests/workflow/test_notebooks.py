"""Notebooks in git are stories without outputs, functions of the files that their parameters name."""

from __future__ import annotations

import ast
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

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


def test_form(notebook: dict[str, Any]) -> None:
    assert notebook["metadata"]["kernelspec"]["name"] == "rltune" and notebook["nbformat"] == 4
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown" and source(first).startswith("# ")
    assert len(cells(notebook, "markdown")) >= 3
    for cell in cells(notebook, "code"):
        assert not cell["outputs"] and cell["execution_count"] is None
        assert not source(cell).lstrip().startswith(("%", "!")) and "sys.path" not in source(cell)
    assert sum(len(source(cell).splitlines()) for cell in cells(notebook, "code")) < 200


def test_parameters_are_literals_of_the_smoke_run(notebook: dict[str, Any]) -> None:
    assert parameters(notebook)["config"] == "config/smoke.yaml"


def test_the_smoke_run_leaves_every_file_that_a_notebook_names(notebook: dict[str, Any], smoke_run: Any) -> None:
    named = {name: paths(value) for name, value in parameters(notebook).items()}
    missing = [path for name, some in named.items() for path in some if not (smoke_run.root / path).exists()]
    assert [path for path in missing if not path.endswith("/training")] == []


@pytest.mark.parametrize("name", ["evaluate", "explore", "figures"])
def test_it_runs_alone_from_its_own_folder(
    name: str, smoke_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JupyterLab runs it: the kernel starts in the notebook's folder, the parameters are those that stand there."""
    import papermill

    root = shutil.copytree(smoke_run.root, tmp_path / "run", symlinks=True)  # it writes what the parameters name
    monkeypatch.chdir(root / "notebooks")
    monkeypatch.delenv("RLTUNE_ROOT", raising=False)
    papermill.execute_notebook(f"{name}.ipynb", tmp_path / "out.ipynb", progress_bar=False, cwd=os.getcwd())
    executed = json.loads((tmp_path / "out.ipynb").read_text(encoding="utf-8"))
    assert all(c["execution_count"] for c in executed["cells"] if c["cell_type"] == "code")
