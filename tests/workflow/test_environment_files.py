"""environment.yml, pyproject.toml, requirements.lock and workflow/setup.py say the same."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import venv
from itertools import chain
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = ("3.11", "3.12", "3.13")
Bounds = dict[str, SpecifierSet]


SETUP = runpy.run_path(str(ROOT / "workflow" / "setup.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAMED = [*PROJECT["project"]["dependencies"], *chain(*PROJECT["project"]["optional-dependencies"].values())]
DIRECT: Bounds = {canonicalize_name(r.name): r.specifier for r in map(Requirement, NAMED) if r.name != "rltune"}
"""Every package pyproject.toml names, those of the extras too."""
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


def conda_packages() -> Bounds:
    """Packages of environment.yml by the package index's names, those of its pip section too."""
    texts = [d for d in CONDA["dependencies"] if isinstance(d, str)]
    texts += [p for d in CONDA["dependencies"] if isinstance(d, dict) for p in d["pip"] if not p.startswith("-")]
    return {canonicalize_name(requirement.name): requirement.specifier for requirement in map(Requirement, texts)}


def pins() -> list[tuple[Requirement, list[str]]]:
    """(requirement, hashes) of each entry of the lock."""
    joined = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    entries = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        requirement, *hashes = re.split(r"\s+--hash=", line)
        entries.append((Requirement(requirement.strip()), [h.strip() for h in hashes]))
    return entries


def test_conda_has_the_same_packages_with_the_same_bounds():
    ours = {name: bounds for name, bounds in conda_packages().items() if name not in ("python", "pip")}
    assert ours == DIRECT


def test_python_bounds_agree():
    bounds = SpecifierSet(PROJECT["project"]["requires-python"])
    assert conda_packages()["python"] == bounds
    oldest, too_new = (".".join(map(str, SETUP[name])) for name in ("OLDEST", "TOO_NEW"))
    assert SpecifierSet(f">={oldest},<{too_new}") == bounds


def test_conda_installs_the_project_itself_from_one_channel():
    assert CONDA["name"] == "rltune"
    assert [c for c in CONDA["channels"] if c != "nodefaults"] == ["conda-forge"]
    assert "-e ." in next(d["pip"] for d in CONDA["dependencies"] if isinstance(d, dict))


def test_every_direct_dependency_is_locked_within_its_bounds():
    """And what the project's own build needs, so that setting it up asks for nothing more."""
    build = map(Requirement, PROJECT["build-system"]["requires"])
    direct = DIRECT | {canonicalize_name(r.name): r.specifier for r in build}
    locked: dict[str, list[Requirement]] = {}
    for requirement, _ in pins():
        locked.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    for name, bounds in direct.items():
        for python in SUPPORTED:
            environment = {"python_version": python, "python_full_version": f"{python}.5"}
            versions = [
                next(iter(r.specifier)).version
                for r in locked.get(name, [])
                if r.marker is None or r.marker.evaluate(environment)
            ]
            assert len(versions) == 1, f"{name} on Python {python}: locked at {versions or 'nothing'}"
            assert Version(versions[0]) in bounds, f"{name}: locked at {versions[0]}, asked for {bounds}"


def test_every_lock_entry_is_one_version_with_hashes():
    entries = pins()
    assert len(entries) > 50
    for requirement, hashes in entries:
        assert [s.operator for s in requirement.specifier] == ["=="], requirement
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", h) for h in hashes), requirement


def test_every_file_next_to_the_code_is_in_the_package():
    """An installed package is a copy: what the list leaves out, only a checkout has."""
    tools = PROJECT["tool"]["setuptools"]
    package = ROOT / "src" / "rltune"
    listed = {path for pattern in tools["package-data"]["rltune"] for path in package.glob(pattern)}
    there = {path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert there == listed


def test_set_up_takes_the_whole_entry_of_a_package_from_the_lock():
    lock = "uvicorn==1 \\\n    --hash=sha256:a\nuv==2 ; python_version > '3' \\\n    --hash=sha256:b \\\n    --hash=sha256:c\nvine==3 \\\n    --hash=sha256:d\n"
    entry = "uv==2 ; python_version > '3' \\\n    --hash=sha256:b \\\n    --hash=sha256:c\n"
    assert SETUP["locked"]("uv", lock) == entry


def test_set_up_leaves_the_work_to_pip_where_pip_has_an_index_of_its_own(monkeypatch):
    pip = (sys.executable, "-m", "pip")
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://more.example/simple")
    assert not SETUP["has_own_index"](*pip)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    assert SETUP["has_own_index"](*pip)


def test_a_project_that_was_moved_is_set_up_again(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    venv.create(here / ".venv")
    for file in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / file, here / file)
    (here / ".venv" / ".ready").touch()

    def sets_up(root: Path) -> bool:
        planned = subprocess.run(("make", "--dry-run", "report"), cwd=root, capture_output=True, text=True, check=True)
        return "workflow/setup.py" in planned.stdout

    assert not sets_up(here) and SETUP["made_here"](here / ".venv")
    here.rename(there)
    assert sets_up(there) and not SETUP["made_here"](there / ".venv")
