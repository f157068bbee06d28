"""What the documents are generated from: the layers of the library and its modules, as they are in the sources."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
LAYERS_TEST = ROOT / "tests" / "workflow" / "test_layers.py"


def layers() -> tuple[str, ...]:
    """Names of the layers from the bottom up, as the test that holds them has them."""
    for node in ast.parse(LAYERS_TEST.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            return ast.literal_eval(node.value)
    raise LookupError(f"{LAYERS_TEST}: no LAYERS in it; the documents read the layers from there")


def first_sentence(module: str) -> str:
    """What a module's docstring says in its first paragraph, in one line."""
    text = ast.get_docstring(ast.parse(path_of(module).read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


def path_of(module: str) -> Path:
    """The file of a module or package."""
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules(layer: str) -> list[str]:
    """Names of the public modules of a layer: its package first, then those inside."""
    path = SOURCE / "rltune" / layer
    if not path.is_dir():
        return [f"rltune.{layer}"]
    found = [p.relative_to(SOURCE).with_suffix("").parts for p in sorted(path.rglob("*.py"))]
    names = [".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in found]
    return sorted(n for n in names if not any(part.startswith("_") for part in n.split(".")))


def layer_imports() -> dict[str, set[str]]:
    """Layer → the other layers it imports from."""
    found: dict[str, set[str]] = {}
    for layer in layers():
        found[layer] = set()
        for module in modules(layer):
            for node in ast.walk(ast.parse(path_of(module).read_text(encoding="utf-8"))):
                names = (
                    [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else ([a.name for a in node.names] if isinstance(node, ast.Import) else [])
                )
                if isinstance(node, ast.ImportFrom) and node.module == "rltune":
                    names = [f"rltune.{a.name}" for a in node.names]
                found[layer] |= {n.split(".")[1] for n in names if n.startswith("rltune.")} - {layer}
        found[layer] &= set(layers())
    return found
