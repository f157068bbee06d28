"""Notebooks in git are stories without outputs, parametrised by plain literals."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rltune.config import load_run
from rltune.report.page.contents import CHAPTERS

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAY_IMPORT = {"rltune", "pandas", "matplotlib", "seaborn", "IPython"} | set(sys.stdlib_module_names)
MOST_LINES = 250


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> dict[str, Any]:
    return json.loads(request.param.read_text(encoding="utf-8"))


def cells(notebook: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [c for c in notebook["cells"] if c["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def tree(notebook: dict[str, Any]) -> ast.Module:
    return ast.parse("\n".join(map(source, cells(notebook, "code"))))


def parameters(notebook: dict[str, Any]) -> dict[str, Any]:
    """Values of the parameters cell; it holds assignments of literals and nothing else."""
    (cell,) = [c for c in notebook["cells"] if "parameters" in c["metadata"].get("tags", [])]
    values = {}
    for statement in ast.parse(source(cell)).body:
        assert isinstance(statement, ast.Assign) and len(statement.targets) == 1, ast.unparse(statement)
        assert isinstance(statement.targets[0], ast.Name)
        values[statement.targets[0].id] = ast.literal_eval(statement.value)
    return values


def test_there_is_one_for_every_stage() -> None:
    assert {p.stem for p in NOTEBOOKS} == {"clean", "train", "evaluate", "compare", *CHAPTERS}


def test_no_outputs(notebook: dict[str, Any]) -> None:
    for cell in cells(notebook, "code"):
        assert not cell["outputs"] and cell["execution_count"] is None
    assert not notebook["metadata"].get("widgets")


def test_kernel(notebook: dict[str, Any]) -> None:
    assert notebook["metadata"]["kernelspec"]["name"] == "rltune"
    assert notebook["nbformat"] == 4


def test_parameters_are_literals_that_suit_the_smoke_run(notebook: dict[str, Any]) -> None:
    values = parameters(notebook)
    assert values["config"] == "config/smoke.yaml" and values["base"] == ""
    assert all(isinstance(v, str) for v in values.values())
    assert load_run(values["config"], ROOT)


def test_parameters_come_before_any_other_code(notebook: dict[str, Any]) -> None:
    assert "parameters" in cells(notebook, "code")[0]["metadata"].get("tags", [])


def test_prose(notebook: dict[str, Any]) -> None:
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown" and source(first).startswith("# ")
    assert len(cells(notebook, "markdown")) >= 3
    kinds = [c["cell_type"] for c in notebook["cells"]]
    assert all(kinds[i : i + 4] != ["code"] * 4 for i in range(len(kinds))), "four code cells in a row"


def test_length(notebook: dict[str, Any]) -> None:
    lines = [line for cell in cells(notebook, "code") for line in source(cell).splitlines() if line.strip()]
    assert len(lines) < MOST_LINES


def test_imports(notebook: dict[str, Any]) -> None:
    names = set()
    for node in ast.walk(tree(notebook)):
        if isinstance(node, ast.Import):
            names |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert names <= MAY_IMPORT


def test_no_paths_and_no_magic(notebook: dict[str, Any]) -> None:
    for cell in cells(notebook, "code"):
        text = source(cell)
        assert not text.lstrip().startswith(("%", "!")) and "/home/" not in text and "sys.path" not in text
        assert "http" not in text
