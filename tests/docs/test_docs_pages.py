"""What the documents name is there: pages, headings, files, commands; and what is generated is up to date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
import yaml
from markdown.extensions.toc import slugify

from rltune.cli import app
from rltune.slurm.emulate.packages import ACCOUNTING, CLOCK, SLURM

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"```.*?```", re.DOTALL)
ONLY_ON_THE_SITE = ("api/index.md",)
MADE = ("results/", ".venv/", ".cache/")
IN_WORDS = (
    "config/mine.yaml",
    "config/traces/mine.yaml",
    "config/traces/NAME.yaml",
    "src/rltune/traces/readers/jsonlines.py",
    "config/ourcluster.yaml",
    "config/traces/ourcluster.yaml",
    "config/clusters/ourcluster.yaml",
    "config/slurm/mine.yaml",
)
"""Files that a reader makes in an example."""
TOP = ("benchmarks", "config", "docs", "notebooks", "src", "tests", "workflow")


def text_of(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as the site makes them."""
    return {slugify(re.sub(r"[`*]", "", h), "-") for h in re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(text_of(page)):
        path, _, anchor = target.partition("#")
        if target.startswith(("http://", "https://")) or path in ONLY_ON_THE_SITE:
            continue
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or anchor and anchor not in anchors(found):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_named_are_there(page: Path) -> None:
    named = set(re.findall(rf"`((?:{'|'.join(TOP)})/[\w./*…-]*)`", text_of(page)))
    missing = {
        n
        for n in named
        if "*" not in n and "…" not in n and n not in IN_WORDS and not n.startswith(MADE) and not (ROOT / n).exists()
    }
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_modules_named_are_there(page: Path) -> None:
    missing = []
    for name in set(re.findall(r"`(rltune(?:\.\w+)+)`", text_of(page))):
        parts = name.split(".")
        inside = [
            i
            for i in range(len(parts), 0, -1)
            if (base := ROOT / "src" / Path(*parts[:i])).is_dir() or base.with_suffix(".py").is_file()
        ]
        module = ROOT / "src" / Path(*parts[: inside[0]])
        source = (module / "__init__.py" if module.is_dir() else module.with_suffix(".py")).read_text(encoding="utf-8")
        if any(not re.search(rf"\b{part}\b", source) for part in parts[inside[0] :]):
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_named_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    made = {t for t in re.findall(r"(?:^ {4}|`)make ([a-z-]+)\b", text, re.MULTILINE)}
    assert made <= targets
    command = typer.main.get_command(app)
    for line in re.findall(r"(?:^ {4}(?:\.venv/bin/)?|`(?:\.venv/bin/)?)rltune ([^`\n]+)", text, re.MULTILINE):
        words, at = line.split(), command
        while words and hasattr(at, "commands") and not words[0].startswith("--"):
            assert words[0] in at.commands, f"rltune {line}: no command {words[0]}"
            at = at.commands[words.pop(0)]
        words = words[: words.index("--")] if "--" in words else words  # behind it stands another program's command
        options = {o for p in at.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        unknown = {w.partition("=")[0].rstrip(",.") for w in words if w.startswith("--")} - options
        assert not unknown, f"rltune {line}"


def test_every_page_is_listed_and_in_the_navigation() -> None:
    names = {p.name for p in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert names == set(re.findall(r"^- \[([\w-]+\.md)\]\(\1\)", text_of(ROOT / "docs" / "README.md"), re.MULTILINE))
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = {
        path
        for part in site["nav"]
        for entry in (next(iter(part.values())),)
        if isinstance(entry, list)
        for one in entry
        for path in one.values()
    }
    assert names == listed - {"api/index.md", "changelog.md", "contributing.md"}


def test_what_is_generated_is_up_to_date() -> None:
    from generate import MEND, generated

    stale = [
        str(path.relative_to(ROOT)) for path, text in generated().items() if path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"{', '.join(stale)}: not what the sources say; {MEND} mends it"


def test_the_site_builds_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {p: p.read_text(encoding="utf-8") for p in tmp_path.rglob("*.html")}
    assert {"index.html", "reproduction.html", "changelog.html", "api/simulator.html"} <= {
        str(p.relative_to(tmp_path)) for p in pages
    }
    fetched = {
        found
        for text in pages.values()
        for found in re.findall(r'(?:src|<link[^>]*href)="((?:https?:)?//[^"]+)"', text)
    }
    assert not fetched
    assert 'id="rltune.simulator.batch.simulate"' in pages[tmp_path / "api" / "simulator.html"]


def test_the_readme_names_what_the_emulated_cluster_needs() -> None:
    needed = {name for group in (SLURM, ACCOUNTING, CLOCK) for name in group.packages}
    told = {word for quoted in re.findall(r"`([^`]+)`", text_of(ROOT / "README.md")) for word in quoted.split()}
    assert needed <= told
