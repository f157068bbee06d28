"""Find things that have a file each in a package."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any


def discover(package: str, attribute: str, *unique: str) -> list[Any]:
    """The ``attribute`` of every module of a package that assigns one, by the modules' names.

    Raises ValueError where two have the same value of one of the fields ``unique``.
    """
    (folder,) = import_module(package).__path__
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.py"))}
    # a module without it, such as one of compiled code, is not even loaded
    names = [name for name, text in texts.items() if re.search(rf"^{attribute}\b[^=\n]*=", text, re.MULTILINE)]
    found = [getattr(import_module(f"{package}.{name}"), attribute) for name in names]
    for field in unique:
        files: dict[Any, str] = {}
        for name, one in zip(names, found):
            value = getattr(one, field)
            if (other := files.setdefault(value, name)) != name:
                raise ValueError(f"{folder}: {other}.py and {name}.py: found {field} {value!r} in both, expected two")
    return found
