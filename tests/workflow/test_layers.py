"""Packages are layers: a module imports from those below it only, and no two import each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
LAYERS = (
    "errors",
    "files",
    "kernels",
    "registry",
    "policies",
    "metrics",
    "config",
    "traces",
    "cluster",
    "simulator",
    "reference",
    "placement",
    "environment",
    "agent",
    "evaluation",
    "slurm",
    "report",
    "pipeline",
    "cli",
)
"""From the bottom up; each may import from its own and from those before it."""
REPORT_MAY = (
    "rltune.errors",
    "rltune.files",
    "rltune.config",
    "rltune.policies",
    "rltune.metrics",
    "rltune.report",
    "rltune.traces.audit",
    "rltune.evaluation.compare",
    "rltune.evaluation.intervals",
    "rltune.evaluation.recorded",
)
"""The report reads results; it neither simulates nor trains."""
BARE = ("rltune.errors", "rltune.files", "rltune.kernels")


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted((SOURCE / "rltune").rglob("*.py"))}


def imports(module: str) -> set[str]:
    """Modules of the project that a module names in its imports, those inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] == "rltune"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import in line {node.lineno}"
            if (node.module or "").split(".")[0] == "rltune":
                # `from package import module` is the module, not the package
                found |= {full if (full := f"{node.module}.{a.name}") in MODULES else node.module for a in node.names}
    assert found <= set(MODULES), f"{module} imports what is not there: {found - set(MODULES)}"
    return found


GRAPH = {module: imports(module) for module in MODULES}


def layer(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_package_is_a_layer() -> None:
    assert {layer(m) for m in MODULES} - {""} == set(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_imports_go_down(name: str) -> None:
    allowed = ("", *LAYERS[: LAYERS.index(name) + 1])  # the package itself imports nothing
    upwards = {m: sorted(i for i in GRAPH[m] if layer(i) not in allowed) for m in MODULES if layer(m) == name}
    assert not {m: found for m, found in upwards.items() if found}


def test_errors_and_files_stand_alone() -> None:
    assert not [m for m in BARE if GRAPH[m]]


def test_the_report_reads_results_only() -> None:
    found = {i for m in MODULES if layer(m) == "report" for i in GRAPH[m]}
    assert not {i for i in found if not any(i == a or i.startswith(a + ".") for a in REPORT_MAY)}


def test_stages_do_not_know_the_report() -> None:
    assert not {m: GRAPH[m] for m in MODULES if layer(m) == "pipeline" and any(layer(i) == "report" for i in GRAPH[m])}


def test_no_cycles() -> None:
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, "import cycle: " + " → ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for other in sorted(GRAPH[module] - {module}):
                visit(other, (*trail, module))
            done.add(module)

    for module in sorted(MODULES):
        visit(module, ())


def loaded_by(*modules: str) -> set[str]:
    """Top-level packages that importing these loads in a new process."""
    code = f"import sys, {', '.join(modules)}; print(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_tensorflow_is_loaded_for_training_only() -> None:
    loaded = loaded_by(
        "rltune.pipeline.cells",
        "rltune.pipeline.prepare",
        "rltune.evaluation.evaluate",
        "rltune.evaluation.compare",
        "rltune.report.page",
        "rltune.report.tables",
        "rltune.report.figures",
    )
    assert not loaded & {"tensorflow", "keras"} and "numba" in loaded


def test_the_command_line_starts_without_the_heavy_packages() -> None:
    assert not loaded_by("rltune.cli") & {"tensorflow", "numba", "pandas", "matplotlib", "papermill"}
