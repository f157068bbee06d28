"""Files that the user provides, or that ship with the package: what a trace's ``path`` names, and the folder of files fetched by hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.traces.fetch.download import BY_HAND

DATA = Path(__file__).parents[2] / "data"
"""Rows that ship with the package; what ``${RLTUNE_DATA}`` stands for where it is not set."""
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def given_file(name: str, path: str, root: Path, key: str = "path") -> Path:
    """The file or folder that ``key`` of a trace's configuration, its ``path``, names.

    ``${VARIABLE}`` is replaced from the environment. Raises:
        ConfigError: a variable in ``path`` is not set.
        DataError: there is no such file or folder.
    """
    key = f"config/traces/{name}.yaml, {key}"
    known = {"RLTUNE_DATA": str(DATA)} | {variable: value for variable, value in os.environ.items() if value}
    if unset := set(_VARIABLE.findall(path)) - known.keys():
        variable = min(unset)
        needs = f"needs the environment variable {variable}, which is not set (export {variable}=…)"
        raise ConfigError(f"{key}: {path!r} {needs}.")
    found = root / Path(_VARIABLE.sub(lambda match: known[match[1]], path)).expanduser()
    if not found.exists():
        raise DataError(f"{key}: {path!r} is {found}, and there is no such file or folder.")
    return found


def check_given(name: str, trace: TraceConfig, root: Path, published: bool) -> None:
    """Check that the files which a trace's configuration names are there: its ``path``, and its predictions where the
    run uses them (``published``). Raises as :func:`given_file`."""
    if trace.path is not None:
        given_file(name, trace.path, root)
    if published and trace.predictions is not None:
        given_file(name, trace.predictions.path, root, "predictions.path")


def by_hand(name: str, file: str) -> Path | None:
    """A trace's file in the folder that ``RLTUNE_TRACE_FILES`` names, the trace's own sub-folder first; else None.

    Raises:
        ConfigError: the variable names no folder.
    """
    text = os.environ.get(BY_HAND)
    if not text:
        return None
    folder = Path(text).expanduser().resolve()
    if not folder.is_dir():
        raise ConfigError(f"{BY_HAND}: found {text!r}, expected a folder of trace files fetched by hand.")
    return next((path for path in (folder / name / file, folder / file) if path.is_file()), None)
