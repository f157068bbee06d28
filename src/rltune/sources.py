"""What a result depends on, apart from its data: the source files that a notebook or script imports, and the libraries."""

import hashlib
import json
import os
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
SHOWS = ("notebook", "report")
"""Parts of the package that show results, and change none."""
LIBRARIES = ("cvxpy", "highspy", "lightgbm", "numba", "numpy", "pandas", "pyarrow", "scipy", "swiglpk", "tensorflow")
"""Libraries that compute."""
PACKAGES = ("rltune", *LIBRARIES, "keras", "ijson", "matplotlib", "seaborn", "snakemake", "papermill")
"""Those whose versions are recorded with a result."""
IMPORT = re.compile(r"^[ \t]*(?:from rltune((?:\.\w+)*) import (\([^)]*\)|.*)|import rltune((?:\.\w+)*))", re.MULTILINE)
TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
NAMED = re.compile(r"""["']rltune((?:\.\w+)+)(\.\{)?""")
"""A module, or with a brace every module of a package, that is imported by a name in a string."""
REGISTRY = re.compile(r"\bdiscover\(\"rltune")
"""How a package imports all of its modules."""


def digest(*starts: str | Path, shown: bool = False) -> str:
    """Twelve hexadecimal digits that change with a script (notebooks are inputs of their rules), with a module of this
    package that notebooks or scripts import, directly or through others, or with the version of a library that computes.

    ``shown``: with what only shows results, and the templates and lists that it reads.
    """
    files = {file for start in starts for file in closure(Path(start), shown)}
    files |= {Path(start) for start in starts if Path(start).suffix == ".py"}
    if shown:
        read = (path for path in (HERE / "report").rglob("[!.]*") if path.is_file())  # an editor's own files are hidden
        files |= {path for path in read if path.suffix not in (".py", ".pyc")}
    files |= {path for file in files for path in (*file.parent.glob("*.conf"), *file.parent.glob(f"{file.stem}.csv"))}
    found = hashlib.sha256(repr(_versions()).encode())
    for file in sorted(files):
        found.update(str(file.relative_to(HERE) if file.is_relative_to(HERE) else file.name).encode() + _bytes(file))
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


def made(root: Path) -> dict[str, str]:
    """What a result is made with: commit, machine, Python and the packages that could change a number."""
    return {
        "Commit": commit(root),
        **machine(),
        "Python": platform.python_version(),
        **{name: _installed(name) for name in PACKAGES},
    }


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def commit(root: Path) -> str:
    """The commit, and whether the files differ from it; in words where there is no git."""

    def git(*arguments: str) -> str:
        quiet, command = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}, ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=20, check=True)
        return done.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return "unknown (the project is not itself a git repository)"
        changed = len(git("status", "--porcelain").splitlines())
        return git("rev-parse", "HEAD") + (f", with {changed} changed or new files" if changed else ", no file changed")
    except (OSError, subprocess.SubprocessError):
        return "unknown (no git here)"


def machine() -> dict[str, str]:
    """Cores, memory and system of this machine."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    return {
        "Processor": model,
        "Cores": str(os.cpu_count() or "unknown"),
        "Memory": memory,
        "System": f"{platform.system()} {platform.release()}",
    }
