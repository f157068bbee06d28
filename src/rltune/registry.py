"""Find things that have a file each in a package."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any


def discover(package: str, attribute: str) -> list[Any]:
    """The ``attribute`` of every module of a package that assigns one, by the modules' names."""
    (folder,) = import_module(package).__path__
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.py"))}
    # a module without it, such as one of compiled code, is not even loaded
    names = [name for name, text in texts.items() if re.search(rf"^{attribute}\b[^=\n]*=", text, re.MULTILINE)]
    return [getattr(import_module(f"{package}.{name}"), attribute) for name in names]
