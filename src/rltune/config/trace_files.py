"""Where a trace's files are before anything is obtained: at the configuration's path, in the user's folder, in the package."""

import os
import re
from pathlib import Path

from rltune.errors import ConfigError, DataError

SHIPPED = "shipped://"
"""Begins the address of a file that ships with the package."""
MANUAL_FILES = "RLTUNE_TRACE_FILES"
"""Names a folder of files that the user has downloaded."""
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def local_file(name: str, path: str, root: Path, key: str = "path") -> Path:
    """The file or folder that a trace's configuration names under ``key``.

    ``${VARIABLE}`` is replaced from the environment. Raises:
        ConfigError: a variable in ``path`` is not set.
        DataError: there is no such file or folder.
    """
    file = f"config/traces/{name}.yaml"
    key = f"{file}, {key}"
    known = {variable: value for variable, value in os.environ.items() if value}
    if unset := set(_VARIABLE.findall(path)) - known.keys():
        variable = min(unset)
        needs = f"needs the environment variable {variable}, which is not set (export {variable}=…)"
        raise ConfigError(f"{key}: {path!r} {needs}; the head of {file} says what for.")
    found = root / os.path.expanduser(_VARIABLE.sub(lambda match: known[match[1]], path))
    if not found.exists():
        raise DataError(f"{key}: {path!r} is {found}, and there is no such file or folder.")
    return found


def manual_file(name: str, file: str) -> Path | None:
    """A trace's file in the folder that ``RLTUNE_TRACE_FILES`` names, first in its sub-folder ``name``; else None.

    Raises:
        ConfigError: the variable names no folder.
    """
    text = os.environ.get(MANUAL_FILES)
    if not text:
        return None
    folder = Path(os.path.expanduser(text)).resolve()
    if not folder.is_dir():
        raise ConfigError(f"{MANUAL_FILES}: found {text!r}, expected a folder of trace files downloaded manually.")
    return next((path for path in (folder / name / file, folder / file) if path.is_file()), None)
