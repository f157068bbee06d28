"""CITATION.cff has what the format asks for, and says what the project says elsewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TYPES = {"article", "book", "conference-paper", "data", "generic", "manual", "report", "software", "thesis"}


@pytest.fixture(scope="module")
def citation() -> dict:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_required_keys_of_the_format(citation: dict) -> None:
    assert citation["cff-version"] == "1.2.0" and citation["type"] in ("software", "dataset")
    for entry in (citation, citation["preferred-citation"]):
        assert entry["title"] and entry["authors"]
        assert all(
            set(a) <= {"family-names", "given-names", "affiliation", "name", "orcid"}
            and ("name" in a) != ("family-names" in a)
            for a in entry["authors"]
        )
    assert citation["message"] and citation["preferred-citation"]["type"] in TYPES


def test_the_software_is_this_one(citation: dict) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])


def test_the_paper_is_the_one_that_is_compared_with(citation: dict) -> None:
    paper = yaml.safe_load((ROOT / "config" / "paper_results.yaml").read_text(encoding="utf-8"))
    cited = citation["preferred-citation"]
    assert cited["title"] in " ".join(paper["source"].split()) and cited["year"] == 2025
    assert re.fullmatch(r"10\.\d{4,}/\S+", cited["doi"])


def test_the_changelog_has_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert headings[0] == "Unreleased" and all(re.fullmatch(r"\d+\.\d+\.\d+", h) for h in headings[1:])
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert version in text
