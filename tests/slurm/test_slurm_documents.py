"""The table of faults in docs/reference/controller.md names the test of each row, and which tests use real daemons."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEXT = (HERE.parents[1] / "docs" / "reference" / "controller.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| (.+) \|[^|\n]+\| (● )?(`test_\w+`(?:, `test_\w+`)*) \|$",
    TEXT.split("## Faults")[1].split("\n## ")[0],
    re.MULTILINE,
)
"""(Fault, mark of the first test, tests), a row each."""
DAEMONS = {"slurm", "waiting", "idle", "users_jobs"}
"""Fixtures with an emulated cluster."""


@cache
def by_name() -> dict[str, bool]:
    """Test → whether it is on real daemons."""
    found = {}
    for path in HERE.glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marked = any("daemons" in ast.unparse(decorator) for decorator in node.decorator_list)
                found[node.name] = marked or bool(DAEMONS & {argument.arg for argument in node.args.args})
    return found


@pytest.mark.parametrize(("fault", "mark", "names"), ROWS, ids=[names.strip("`").split("`")[0] for _, _, names in ROWS])
def test_each_fault_has_its_tests(fault, mark, names):
    first, *more = re.findall(r"\w+", names)
    assert by_name().get(first) == bool(mark), fault
    assert {by_name().get(name) for name in more} <= {False}, f"{fault}: only the first test is on daemons"


def test_most_faults_are_tested_on_daemons():
    assert len(ROWS) == TEXT.split("## Faults")[1].split("\n## ")[0].count("\n| ") - 1, "a row without its test"
    assert sum(bool(mark) for _, mark, _ in ROWS) >= 25
