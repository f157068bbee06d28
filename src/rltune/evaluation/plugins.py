"""Custom policies and placements: load the files that define them, and name the line where one of them fails."""

import hashlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rltune.config.cells import ANY_ESTIMATE
from rltune.config.context import Run
from rltune.errors import ConfigError, RLTuneError
from rltune.placement.placers import CUSTOM as PLACEMENTS
from rltune.policies import CUSTOM

REGISTRIES: dict[str, dict[str, Any]] = {"policy": CUSTOM, "placement": PLACEMENTS}


def load_plugins(run: Run) -> dict[str, Path]:
    """Load a run's plugin files: name → file of every custom policy.

    Raises ConfigError for a file that is not there, does not run, registers nothing or what another one registers, and
    for a baseline that is then neither built in nor one of these.
    """
    found: dict[str, dict[str, Path]] = {what: {} for what in REGISTRIES}
    for path in files_of(run):
        for what, name in load_plugin(path):
            if other := found[what].get(name):
                raise ConfigError(f"{path}: {what} {name!r} is registered by {other} too; rename one of them")
            found[what][name] = path
    allowed = [*ANY_ESTIMATE, *found["policy"]]
    if unknown := [name for name in run.config.evaluation.baseline_policies if name not in allowed]:
        raise ConfigError(
            f"{run.path}: evaluation.baseline_policies: found {', '.join(unknown)}; allowed: {', '.join(allowed)}"
        )
    return found["policy"]


@contextmanager
def naming_plugins(paths: Sequence[Path]) -> Iterator[None]:
    """While a run uses what these files define: an error that came through one of them is a ConfigError with file and line."""
    try:
        yield
    except RLTuneError:
        raise
    except (Exception, SystemExit) as error:
        places = [f"{path}:{line}" for path in paths if (line := _line(error, path))]
        if not places:
            raise
        raise ConfigError(f"plugins: {places[0]}: {_what(error)}") from error


def files_of(run: Run) -> list[Path]:
    """The files that the run names."""
    return [run.root / os.path.expanduser(name) for name in run.config.plugins]


def load_plugin(path: Path) -> list[tuple[str, str]]:
    """Run one file; what it registers, (`policy` or `placement`, name) each, policies with ``rltune.policies.policy``.

    It may register placements (``rltune.placement.placers.placement``) as well, or instead. Raises ConfigError with file
    and line where it fails, or when it registers neither.
    """
    if not path.is_file():
        raise ConfigError(f"plugins: {path}: {'a folder' if path.is_dir() else 'no such file'}, expected a Python file")
    before = {what: dict(known) for what, known in REGISTRIES.items()}
    name = f"rltune_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"plugins: {path}: not a Python file; its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles of the file look for it there
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # no cache folder next to the user's file
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"plugins: {_where(error, path)}: {_what(error)}") from None
    finally:
        sys.dont_write_bytecode = kept
    made = [(what, key) for what, of in REGISTRIES.items() for key in of if before[what].get(key) is not of[key]]
    if not made:
        raise ConfigError(
            f'plugins: {path}: registers no policy; put @rltune.policies.policy("name") before a function of '
            "(queue, now) that returns a score per job (or @rltune.placement.placers.placement before a class of placers)"
        )
    return made


def _where(error: BaseException, path: Path) -> str:
    """``file:line`` of the deepest place in the file that the error came through; the file alone for none."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}"
    line = _line(error, path)
    return f"{path}:{line}" if line else str(path)


def _line(error: BaseException, path: Path) -> int | None:
    """The deepest line of the file that the error came through; None for none."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _what(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
