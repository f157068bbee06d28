"""Executed notebooks as pages: the report's look, loading folded, links back and to their neighbours, words for figures."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import nbformat
import pandas as pd
import pytest
from IPython.core.formatters import format_display_data
from IPython.display import Image
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from rltune.notebook import show
from rltune.report.page.notebooks import render_all

NAMES = ["train-a__b__fifo", "train-c__d__fifo", "evaluate-a__b__fifo", "clean-a", "compare-a", "figures"]


@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> Image:
    """What a notebook displays of a figure."""
    shown: list[Image] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    show(Figure(), 'Bars "A" & B')
    return shown[0]


@pytest.fixture
def page(tmp_path: Path, figure: Image) -> str:
    data, metadata = format_display_data(figure)
    cells = [
        new_markdown_cell("# Training <b>an</b> agent\n\nWhy?"),
        new_code_cell("x = 1  # default", metadata={"tags": ["parameters"]}),
        new_code_cell("x = 2", metadata={"tags": ["injected-parameters"]}),
        new_code_cell("import os", metadata={"tags": ["plumbing"]}),
        new_code_cell(
            "calls", metadata={"tags": ["folded"]}, outputs=[new_output("stream", name="stdout", text="28 calls\n")]
        ),
        new_code_cell(
            "show(figure)",
            outputs=[
                new_output("stream", name="stdout", text="one <script>\n"),
                new_output("stream", name="stdout", text="two\n"),
                new_output("stream", name="stderr", text="oneDNN"),
                new_output("display_data", data=data, metadata=metadata),
                new_output("display_data", data={"text/html": "<table><tr><td>1</td></tr></table>"}),
            ],
        ),
    ]
    for name in NAMES:
        nbformat.write(new_notebook(cells=cells), tmp_path / f"{name}.ipynb")
    assert render_all([tmp_path / f"{name}.ipynb" for name in NAMES], tmp_path / "pages") == NAMES
    return (tmp_path / "pages" / "train-a__b__fifo.html").read_text(encoding="utf-8")


def folded(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", text) for text in re.findall(r"<details.*?</details>", page, re.DOTALL))


def test_loading_defaults_and_messages_are_folded_and_the_rest_is_not(page):
    assert all(text in folded(page) for text in ("import os", "# default", "x = 2", "oneDNN", "28 calls"))
    assert not any(text in folded(page) for text in ("show(figure)", "two"))


def test_it_leads_to_the_report_and_to_its_neighbours(page):
    related = [f"{name}.html" for name in ("train-a__b__fifo", "evaluate-a__b__fifo", "clean-a", "compare-a")]
    links = re.findall(r'<a [^>]*href="([^"]+)"', page)
    assert links == ["../index.html", *related, "../index.html#rows"]


def test_it_escapes_what_it_shows_and_needs_no_network(page):
    assert "<title>Training &lt;b&gt;an&lt;/b&gt; agent</title>" in page and "one &lt;script&gt;\ntwo" in page
    assert not re.search(r"https?:", re.sub(r'data:[^"]+', "", page)) and page.count("<script") == 1


def test_figures_have_words_and_tables_scroll(page, figure):
    assert figure.alt == 'Bars "A" & B' and figure.data.startswith(b"\x89PNG")
    assert re.search(r"""<img alt='Bars "A" &amp; B'""", page)
    assert re.search(r'<div [^>]*class="scroll"[^>]*>\s*<div[^>]*>\s*<table>', page)
    assert matplotlib.rcParams["font.size"] == matplotlib.rcParamsDefault["font.size"]


@pytest.mark.parametrize("name", ["scheduling_rules", "gpu_types"])
def test_titles_of_a_user_are_escaped_in_the_answer(name):
    path = Path(__file__).resolve().parents[2] / "notebooks" / f"{name}.ipynb"
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    (loading,) = (cell for cell in cells if "plumbing" in cell.metadata.get("tags", []))
    imports = [line for line in ast.parse(loading.source).body if isinstance(line, ast.Import | ast.ImportFrom)]
    title = "Our <b>cluster"
    row = {"what": "agent", "workload": title, "less": 0.2, "low": 0.1, "high": 0.3, "windows": 40, "over_bound": 2.0}
    there = {"frame": pd.DataFrame([row]), "artefact": SimpleNamespace(notes=[f"{title}: a note"]), "workloads": [1]}
    exec(compile(ast.Module(imports, []), name, "exec"), there)
    *before, answer = ast.parse(cells[-1].source).body
    exec(compile(ast.Module(before, []), name, "exec"), there)
    assert isinstance(answer, ast.Expr)
    text = eval(compile(ast.Expression(answer.value), name, "eval"), there).data
    assert "Our &lt;b&gt;cluster: " in text and "<b>" not in text
