"""environment.yml, pyproject.toml, requirements.lock and workflow/setup.py say the same."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]


SUPPORTED = ("3.11", "3.12", "3.13")

Bounds = dict[str, SpecifierSet]


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def direct(project: dict) -> Bounds:
    """Every package pyproject.toml names, those of the extras too."""
    texts = project["dependencies"] + [t for extra in project["optional-dependencies"].values() for t in extra]
    return {canonicalize_name(r.name): r.specifier for r in map(Requirement, texts) if r.name != "rltune"}


@pytest.fixture(scope="module")
def conda() -> dict:
    return yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def lock() -> str:
    return (ROOT / "requirements.lock").read_text(encoding="utf-8")


def conda_packages(conda: dict) -> Bounds:
    """Packages of environment.yml by the package index's names, those of its pip section too."""
    texts = [d for d in conda["dependencies"] if isinstance(d, str)]
    texts += [p for d in conda["dependencies"] if isinstance(d, dict) for p in d["pip"] if not p.startswith("-")]
    return {canonicalize_name(requirement.name): requirement.specifier for requirement in map(Requirement, texts)}


def pins(lock: str) -> list[tuple[Requirement, list[str]]]:
    """(requirement, hashes) of each entry of the lock."""
    joined = lock.replace("\\\n", " ")
    entries = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        requirement, *hashes = re.split(r"\s+--hash=", line)
        entries.append((Requirement(requirement.strip()), [h.strip() for h in hashes]))
    return entries


def test_conda_has_the_same_packages_with_the_same_bounds(conda: dict, direct: Bounds) -> None:
    ours = {name: bounds for name, bounds in conda_packages(conda).items() if name not in ("python", "pip")}
    assert ours == direct


def test_python_bounds_agree(conda: dict, project: dict) -> None:
    bounds = SpecifierSet(project["requires-python"])
    assert conda_packages(conda)["python"] == bounds
    setup = runpy.run_path(str(ROOT / "workflow" / "setup.py"))
    oldest, too_new = (".".join(map(str, setup[name])) for name in ("OLDEST", "TOO_NEW"))
    assert SpecifierSet(f">={oldest},<{too_new}") == bounds


def test_conda_installs_the_project_itself_from_one_channel(conda: dict) -> None:
    assert conda["name"] == "rltune"
    assert [c for c in conda["channels"] if c != "nodefaults"] == ["conda-forge"]
    assert "-e ." in next(d["pip"] for d in conda["dependencies"] if isinstance(d, dict))


def test_every_direct_dependency_is_locked_within_its_bounds(lock: str, direct: Bounds) -> None:
    """And what the project's own build needs, so that setting it up asks for nothing more."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    direct = direct | {canonicalize_name(r.name): r.specifier for r in map(Requirement, build)}
    locked: dict[str, list[Requirement]] = {}
    for requirement, _ in pins(lock):
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


def test_every_lock_entry_is_one_version_with_hashes(lock: str) -> None:
    entries = pins(lock)
    assert len(entries) > 50
    for requirement, hashes in entries:
        assert [s.operator for s in requirement.specifier] == ["=="], requirement
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", h) for h in hashes), requirement


def test_every_file_beside_the_code_is_in_the_package() -> None:
    """An installed package is a copy: what the list leaves out, only a checkout has."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    package = ROOT / "src" / "rltune"
    listed = {path for pattern in tools["package-data"]["rltune"] for path in package.glob(pattern)}
    there = {path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert there == listed
