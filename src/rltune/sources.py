"""What a result depends on besides its data: the source files that a notebook or script imports, and the libraries."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
SHOWS = ("notebook", "report")
"""Parts of the package that show results, and change none."""
LIBRARIES = ("cvxpy", "highspy", "lightgbm", "numba", "numpy", "pandas", "pyarrow", "scipy", "swiglpk", "tensorflow")
"""Libraries that compute."""
IMPORT = re.compile(r"^[ \t]*(?:from rltune((?:\.\w+)*) import (\([^)]*\)|.*)|import rltune((?:\.\w+)*))", re.MULTILINE)
TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
NAMED = re.compile(r"""["']rltune((?:\.\w+)+)(\.\{)?""")
"""A module, or with a brace every module of a package, that is imported by a name in a string."""
REGISTRY = re.compile(r"\bfound\(\"rltune")
"""How a package imports all of its modules."""


def digest(*starts: str | Path, shown: bool = False) -> str:
    """Twelve hexadecimal digits that change with a module of this package that notebooks or scripts import, directly or
    through others, or with the version of a library that computes.

    ``shown``: with what only shows results, and the templates and lists that it reads.
    """
    files = {file for start in starts for file in closure(Path(start), shown)}
    if shown:
        files |= {
            path for path in (HERE / "report").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
        }
    files |= {path for file in files for path in file.parent.glob("*.conf")}
    found = hashlib.sha256(repr(_versions()).encode())
    for file in sorted(files):
        found.update(str(file.relative_to(HERE)).encode() + _bytes(file))
    return found.hexdigest()[:12]


def closure(start: Path, shown: bool = False) -> set[Path]:
    """The package's files that a notebook or script imports, directly or through others."""
    found: set[Path] = set()
    new: set[Path] = set(_imports(start))
    while new := {file for file in new if shown or file.relative_to(HERE).parts[0].removesuffix(".py") not in SHOWS}:
        found |= new
        new = {file for one in new for file in _imports(one)} - found
    return found


@cache
def _versions() -> list[tuple[str, str]]:
    return [(name, version(name)) for name in LIBRARIES]


@cache
def _bytes(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _code(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")


@cache
def _imports(path: Path) -> frozenset[Path]:
    """The package's files that one file imports itself."""
    code, found = TYPES_ONLY.sub("", _code(path)), {HERE / "__init__.py"}
    for package, names, module in IMPORT.findall(code):
        found |= _files(package or module)
        for name in re.findall(r"(\w+)(?: as \w+)?", names.partition("#")[0]):
            found |= _files(f"{package}.{name}")
    for name, whole in NAMED.findall(code):
        found |= set((HERE / Path(*name.split("."))).glob("*.py")) if whole else _files(name)
    if REGISTRY.search(code):
        found |= set(path.parent.glob("*.py"))
    return frozenset(found)


def _files(name: str) -> set[Path]:
    """The file of a module such as ``.traces.clean``, and those of the packages that it is in; none for another name."""
    parts = name.strip(".").split(".") if name else []
    at = HERE.joinpath(*parts)
    if not (at.with_suffix(".py").is_file() or (at / "__init__.py").is_file()):
        return _files("." + ".".join(parts[:-1])) if len(parts) > 1 else set()
    inits = {HERE.joinpath(*parts[:k], "__init__.py") for k in range(len(parts) + 1)}
    return {file for file in inits | {at.with_suffix(".py")} if file.is_file()}
