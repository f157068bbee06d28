"""CITATION.cff and CHANGELOG.md say what the project says elsewhere."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_is_of_this_software_and_of_the_paper_it_is_compared_with():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    paper = yaml.safe_load((ROOT / "config" / "paper_results.yaml").read_text(encoding="utf-8"))
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software") and citation["message"]
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    cited = citation["preferred-citation"]
    assert cited["title"] in " ".join(paper["source"].split()) and cited["year"] == 2025
    assert re.fullmatch(r"10\.\d{4,}/\S+", cited["doi"]) and citation["authors"] and cited["authors"]


def test_the_changelog_has_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert headings[0] == "Unreleased" and all(re.fullmatch(r"\d+\.\d+\.\d+", h) for h in headings[1:])
    assert PROJECT["version"] in text
