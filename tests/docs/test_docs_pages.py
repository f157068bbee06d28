"""What the documents name exists: pages, headings, files, modules, commands, options, keys; their snippets run."""

import json
import os
import re
import runpy
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
import typer.main
import yaml
from markdown.extensions.toc import slugify

from rltune.cli import app
from rltune.config.run import RunConfig
from rltune.slurm.emulate.packages import ACCOUNTING, CLOCK, SLURM

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")), *sorted(ROOT.glob("docs/**/*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"```.*?```", re.DOTALL)
INDENTED = re.compile(r"(?:^ {4}.*\n|^\n(?= {4}))+", re.MULTILINE)
ONLY_ON_THE_SITE = ("api/index.md",)
MADE = ("results/", ".venv/", ".cache/")
IN_WORDS = re.compile(
    r"config/(traces/|clusters/|slurm/)?(mine|ours|ourcluster|mylog|mycluster|NAME)\.yaml|.*/jsonlines\.py"
)
"""Files that a reader makes in an example."""
TOP = ("benchmarks", "config", "docs", "notebooks", "src", "tests", "workflow")
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def text_of(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as the site makes them."""
    return {slugify(re.sub(r"[`*]", "", h), "-") for h in re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)}


def snippets(page: Path) -> list[str]:
    """Indented blocks of code."""
    return [textwrap.dedent(block).strip("\n") for block in INDENTED.findall(text_of(page))]


def test_the_patterns_find_what_they_look_for():
    text, code = "".join(map(text_of, PAGES)), [snippet for page in PAGES for snippet in snippets(page)]
    assert len(LINK.findall(text)) > 100 and len(re.findall(r"`(?:evaluation|simulation|lookahead)\.\w+", text)) > 3
    for begin in ("experiments:", "import ", "from ", "make ", ".venv/bin/rltune "):
        assert any(snippet.startswith(begin) for snippet in code), begin


@each_page
def test_links_lead_somewhere(page):
    broken = []
    for target in LINK.findall(text_of(page)):
        path, _, anchor = target.partition("#")
        if target.startswith(("http://", "https://")) or path.endswith(ONLY_ON_THE_SITE):
            continue
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or anchor and anchor not in anchors(found):
            broken.append(target)
    assert not broken


@each_page
def test_files_named_are_there(page):
    top, text = "|".join(TOP), text_of(page)
    named = set(re.findall(rf"((?:{top})/[\w./-]*\w\.(?:py|ya?ml|json|ipynb|smk|csv|md|svg|png))\b", text))
    named |= set(re.findall(rf"`((?:{top})/[\w./-]*)`", text))
    assert not {name for name in named if not IN_WORDS.fullmatch(name) and not (ROOT / name).exists()}


@each_page
def test_modules_named_are_there(page):
    missing = []
    for name in set(re.findall(r"\b(rltune(?:\.[a-z]\w*)+)", text_of(page))):
        parts = name.split(".")
        if parts[-1] in ("py", "md"):
            continue
        folders = [ROOT / "src" / Path(*parts[:i]) for i in range(len(parts), 0, -1)]
        module = next(f for f in folders if f.is_dir() or f.with_suffix(".py").is_file())
        source = (module / "__init__.py" if module.is_dir() else module.with_suffix(".py")).read_text(encoding="utf-8")
        if any(not re.search(rf"\b{part}\b", source) for part in parts[len(module.relative_to(ROOT / "src").parts) :]):
            missing.append(name)
    assert not missing


@each_page
def test_keys_named_are_there(page):
    """`block.key` of a run's configuration, and the experiments of snippets."""
    schema = json.loads((ROOT / "config" / "schema.json").read_text(encoding="utf-8"))["run"]
    blocks = {}
    for name, field in schema["properties"].items():
        for found in re.findall(r"\$defs/(\w+)", json.dumps(field)):
            blocks.setdefault(name, set()).update(schema["$defs"][found].get("properties", {}))
    named = re.findall(rf"`({'|'.join(blocks)})\.(\w+)", text_of(page))
    assert not {f"{block}.{key}" for block, key in named if key not in blocks[block]} - {"config.example"}
    for snippet in snippets(page):
        if snippet.startswith("experiments:"):
            RunConfig.model_validate({"title": "a snippet", **yaml.safe_load(snippet)})


@each_page
def test_commands_named_are_there(page):
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    made = set(re.findall(r"(?:^ {4}|`)make ([a-z-]+)\b", text, re.MULTILINE))
    assert made <= targets
    stages = set(re.findall(r"STAGE=([a-z]+)", text))
    assert stages <= {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert set(re.findall(r"BENCH=([a-z]+)", text)) <= {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    command = typer.main.get_command(app)
    for line in re.findall(r"(?:^ {4,8}(?:\.venv/bin/)?|`(?:\.venv/bin/)?)rltune ([^`\n#]+)", text, re.MULTILINE):
        words, at = line.split(), command
        while words and hasattr(at, "commands") and not words[0].startswith("--"):
            assert words[0] in at.commands, f"rltune {line}: no command {words[0]}"
            at = at.commands[words.pop(0)]
        words = words[: words.index("--")] if "--" in words else words  # behind it stands another program's command
        options = {o for p in at.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        unknown = {w.partition("=")[0].rstrip(",.") for w in words if w.startswith("--")} - options
        assert not unknown, f"rltune {line}"


@each_page
def test_python_snippets_run(page, tmp_path):
    """In order, as a reader would type them; of those on a Slurm cluster the imports alone."""
    code = [snippet for snippet in snippets(page) if snippet.startswith(("import ", "from "))]
    if page.name == "emulated-slurm.md":
        code = [line for snippet in code for line in snippet.splitlines() if line.startswith(("import ", "from "))]
    (tmp_path / "snippets.py").write_text("\n".join(code), encoding="utf-8")
    runpy.run_path(str(tmp_path / "snippets.py"))


def test_every_page_is_listed_and_in_the_navigation():
    names = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert names == set(re.findall(r"^- \[([\w/-]+\.md)\]\(\1\)", text_of(ROOT / "docs" / "README.md"), re.MULTILINE))
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    others = {"README.md", "changelog.md", "contributing.md"}
    assert names == set(re.findall(r": ([\w/-]+\.md)$", site, re.MULTILINE)) - others


def test_the_picture_has_the_layers_that_are_checked():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(c["layers"] for c in tools["importlinter"]["contracts"] if c["type"] == "layers")
    picture = (ROOT / "docs" / "assets" / "layers.svg").read_text(encoding="utf-8")
    drawn = re.findall(r"font-size='13'[^>]*>([^<]+)<", picture)
    assert drawn == [layer.replace(" | ", ", ") for layer in layers]


def test_documents_are_short():
    words = {page: len(text_of(page).replace("|", " ").split()) for page in PAGES}
    assert words[ROOT / "README.md"] <= 900 and sum(words.values()) <= 28_000


def test_the_site_builds_strictly_and_fetches_nothing(tmp_path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {str(p.relative_to(tmp_path)): p.read_text(encoding="utf-8") for p in tmp_path.rglob("*.html")}
    assert not re.findall(r'(?:src|<link[^>]*href)="((?:https?:)?//[^"]+)"', "".join(pages.values()))
    generated = {
        "api/simulator": 'id="rltune.simulator.batch.simulate"',
        "reference/configuration": "baseline_policies",
    }
    generated |= {"reference/features": "can_schedule_now", "how-to/reproduce": "Table 9"}
    for page, text in generated.items():
        assert text in pages[f"{page}.html"]
    assert not [page for page, text in pages.items() if "<!-- generated:" in text]


def test_its_document_names_what_the_emulated_cluster_needs():
    needed = {name for group in (SLURM, ACCOUNTING, CLOCK) for name in group.packages}
    named = {
        word
        for quoted in re.findall(r"`([^`]+)`", text_of(ROOT / "docs/how-to/emulated-slurm.md"))
        for word in quoted.split()
    }
    assert needed <= named
