"""What imports what: layers (import-linter), and the packages that each part of the project needs."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULE_OF = {"pyyaml": "yaml"}


def modules_of(requirements: list[str]) -> set[str]:
    names = [Requirement(text).name for text in requirements]
    return {MODULE_OF.get(name, name.replace("-", "_")) for name in names}


EXTRAS = {name: modules_of(texts) for name, texts in PROJECT["optional-dependencies"].items()}
ALL = set().union(*EXTRAS.values()) - modules_of(PROJECT["dependencies"]) - {"rltune"}


def loaded_by(*modules: str, blocked: set[str] = frozenset()) -> set[str]:
    """Top-level packages that importing these loads in a new process; ``blocked`` packages cannot be imported there."""
    code = (
        "import importlib, sys\n"
        f"sys.modules |= dict.fromkeys({sorted(blocked)})\n"
        f"for name in {modules}: importlib.import_module(name)\n"
        "print(*{name.split('.')[0] for name, module in sys.modules.items() if module})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_imports_keep_the_contracts_of_pyproject():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    linter = str(Path(sys.executable).with_name("lint-imports"))
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("modules", "extras"),
    [
        ("cli environment.gym_env agent.policy_file placement.placers slurm.service", ""),
        ("slurm.emulate.emulation", "slurm"),
        ("traces.clean evaluation.evaluate", "traces"),
        ("report.page", "traces report"),
    ],
)
def test_modules_need_no_more_than_their_extras(modules, extras):
    allowed = set().union(*(EXTRAS[name] for name in extras.split()))
    loaded_by(*(f"rltune.{name}" for name in modules.split()), blocked=ALL - allowed)


def test_the_command_line_starts_without_the_heavy_packages():
    assert not loaded_by("rltune.cli") & {"numba", "pandas", "gymnasium", "swiglpk"}
