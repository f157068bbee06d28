"""Things that have a file each: found in their package, not listed anywhere."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any


def found(package: str, file: str, attribute: str) -> list[Any]:
    """The ``attribute`` of every module of a package that assigns one, by the modules' names; ``file``: its __init__."""
    names = sorted(m.name for m in pkgutil.iter_modules([str(Path(file).parent)]))
    sources = {name: (Path(file).parent / f"{name}.py").read_text(encoding="utf-8") for name in names}
    # a module without it, such as one of compiled code, is not even loaded
    wanted = [name for name in names if f"\n{attribute} = " in sources[name]]
    return [getattr(import_module(f"{package}.{name}"), attribute) for name in wanted]
