"""What MkDocs makes besides the pages in docs/: the API reference, and the project's own CHANGELOG and CONTRIBUTING."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from sources import ROOT, first_sentence, layers, modules, path_of  # noqa: E402

FROM_ROOT = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


def api_pages() -> dict[str, str]:
    """Path → text of the API reference: an index by layer, and a page a layer."""
    top_down = layers()[::-1]
    index = [
        "# API reference",
        "",
        "The library's layers, from the top down; each imports from those below it only "
        "([architecture](../architecture.md)). Names that begin with an underscore are not listed.",
        "",
        "| layer | what |",
        "|---|---|",
    ]
    index += [f"| [`rltune.{layer}`]({layer}.md) | {first_sentence(f'rltune.{layer}')} |" for layer in top_down]
    pages = {"api/index.md": "\n".join(index) + "\n"}
    for layer in top_down:
        text = [f"# rltune.{layer}", "", first_sentence(f"rltune.{layer}"), ""]
        text += [f"::: {module}\n" for module in modules(layer) if not _only_names(module)]
        pages[f"api/{layer}.md"] = "\n".join(text)
    return pages


def _only_names(module: str) -> bool:
    """Whether a package says no more than its first sentence, which the page has at its top."""
    path = path_of(module)
    return path.name == "__init__.py" and not re.search(
        r"^(def|class) ", path.read_text(encoding="utf-8"), re.MULTILINE
    )


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    code = next(part["Code"] for part in config.nav if "Code" in part)
    at = next(i for i, entry in enumerate(code) if "API" in entry)
    code[at] = {"API": ["api/index.md", *({f"rltune.{layer}": f"api/{layer}.md"} for layer in layers()[::-1])]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in api_pages().items():
        files.append(File.generated(config, path, content=text))
    for path, name in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for name_in_root, page in {v: k for k, v in FROM_ROOT.items()}.items():
            text = text.replace(f"]({name_in_root})", f"]({page})")
        files.append(File.generated(config, path, content=text.replace("](docs/", "](")))
    return files
