"""Read configuration files; a mistake stops with file, line, key, what was found and what is allowed."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rltune.config.cells import ANY_ESTIMATE
from rltune.config.cluster import ClusterConfig
from rltune.config.messages import explain, nearest
from rltune.config.preset import BUILT_IN
from rltune.config.run import RunConfig
from rltune.config.trace import TraceConfig
from rltune.config.trace_files import SHIPPED, local_file, manual_file
from rltune.errors import ConfigError, RLTuneError

Model = TypeVar("Model", bound=BaseModel)
CACHE = Path(".cache") / "traces"
"""Folder of raw traces, in the project's root."""
MOST_NAMED = 12
"""So many files of a folder are named."""


def project_root() -> Path:
    """The project's root: RLTUNE_ROOT if set, else the nearest folder upwards that holds ``workflow/Snakefile``.

    Raises ConfigError where there is none.
    """
    here, given = Path.cwd().resolve(), os.environ.get("RLTUNE_ROOT")
    for folder in (Path(given),) if given else (here, *here.parents, *Path(__file__).resolve().parents):
        if (folder / "workflow" / "Snakefile").is_file():
            return folder
    if given:
        raise ConfigError(f"RLTUNE_ROOT: found {given}, expected the project's root (it has no workflow/Snakefile)")
    raise ConfigError(f"{here}: not inside the RLTune project (no workflow/Snakefile here or above)")


def load_run(path: Path | str, root: Path) -> RunConfig:
    """The run's configuration, with every trace, cluster and preset it names checked to exist.

    Raises ConfigError with every mistake of the file.
    """
    return read_block(_resolve(root, path), RunConfig, root)


def load_trace(name: str, root: Path) -> TraceConfig:
    """The trace ``config/traces/<name>.yaml``."""
    return _load("trace", name, TraceConfig, root)


def load_cluster(name: str, root: Path) -> ClusterConfig:
    """The cluster ``config/clusters/<name>.yaml``; the path of its ``speeds`` is absolute."""
    cluster = _load("cluster", name, ClusterConfig, root)
    if not isinstance(cluster.speeds, str) or cluster.speeds == "gavel":
        return cluster
    return cluster.model_copy(update={"speeds": str(root / cluster.speeds)})


def _load(kind: str, name: str, model: type[Model], root: Path) -> Model:
    if mistake := _no_file(root, kind, name):
        raise ConfigError(mistake)
    return read_block(root / "config" / f"{kind}s" / f"{name}.yaml", model, root)


def read_block(path: Path, model: type[Model], root: Path | None = None) -> Model:
    """Parse and check one YAML file.

    Raises ConfigError naming the file, the line, the key, what was found and what is allowed,
    for every mistake in the file at once.
    """
    shown = _shown(path, root)
    if not path.is_file():
        if path.is_dir():
            raise ConfigError(f"{shown}: a folder, expected a YAML file{_there(path)}")
        meant = nearest(path.stem, [Path(file).stem for file in _yaml_files(path.parent)])
        raise ConfigError(f"{shown}: no such file{meant}{_there(path.parent)}")
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        hint = " (a text with a colon in it has to be in quotes)" if "mapping values" in str(error.problem) else ""
        raise ConfigError(f"{shown}:{line}: not valid YAML: {error.problem}{hint}") from None
    except (yaml.YAMLError, ValueError) as error:  # the latter: an impossible date
        raise ConfigError(f"{shown}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{shown}: found {type(value).__name__}, expected a mapping of keys to values (title: …, …)")
    lines = [f"{shown}:{line}: {key}: found twice; give it once" for line, key in _repeated(node)]
    try:
        checked = model.model_validate(value, context=_context(value, root) if root and model is RunConfig else None)
    except ValidationError as error:
        plugins = model is RunConfig and bool(value.get("plugins"))
        lines += [f"{shown}:{_line(node, loc)}: {text}" for loc, text in explain(error.errors(), model, plugins)]
    if lines:
        raise ConfigError("\n".join(dict.fromkeys(lines)))
    return checked


def _yaml_files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("*.yaml")) if folder.is_dir() else []


def _there(folder: Path) -> str:
    """The YAML files of a folder, in words."""
    names = _yaml_files(folder)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"; there are: {', '.join(names[:MOST_NAMED])}{more}" if names else f"; there is none in {folder}"


def _shown(path: Path, root: Path | None) -> Path:
    return path.relative_to(root) if root and path.is_relative_to(root) else path


def _repeated(node: yaml.Node) -> list[tuple[int, str]]:
    """Keys that stand twice in one mapping, of which YAML would silently keep the last: (line, key)."""
    found = []
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        found += [(k.start_mark.line + 1, k.value) for i, (k, _) in enumerate(node.value) if k.value in keys[:i]]
        children = [child for _, child in node.value]
    else:
        children = node.value if isinstance(node, yaml.SequenceNode) else []
    return found + [pair for child in children for pair in _repeated(child)]


def _context(value: dict[str, Any], root: Path) -> dict[str, Callable[[str], str | None]]:
    """What is wrong with a name in a run's file, by the kind of the name. Policies from plugins are not loaded, so with
    plugins any policy may be named."""
    own = value.get("presets")
    presets = [*BUILT_IN, *map(str, own if isinstance(own, dict) else ())]

    def plugin(name: str) -> str | None:
        path = _resolve(root, name)
        found = "a folder" if path.is_dir() else "no such file"
        return None if path.is_file() else f"found {name!r}: {path} is {found}, expected a Python file"

    def policy(name: str) -> str | None:
        mistake = None if value.get("plugins") else _unknown(name, ANY_ESTIMATE)
        return mistake and f"{mistake}, and policies of your own from files under `plugins`"

    return {
        "trace": partial(_no_file, root, "trace"),
        "first trace": partial(_first_trace, root),
        "cluster": partial(_no_file, root, "cluster"),
        "preset": partial(_unknown, known=presets),
        "plugin": plugin,
        "policy": policy,
    }


def _unknown(name: str, known: Sequence[str]) -> str | None:
    return None if name in known else f"found {name!r}{nearest(name, known)}; allowed: {', '.join(known)}"


def _no_file(root: Path, kind: str, name: str) -> str | None:
    """What is wrong with the name of a trace or cluster; None where it has a file."""
    known = sorted(path.stem for path in (root / "config" / f"{kind}s").glob("*.yaml"))
    if name in known:
        return None
    missing = f"which has no file config/{kind}s/{name}.yaml{nearest(name, known)}"
    return f"found {name!r}, {missing}; allowed: {', '.join(known)}"


def _first_trace(root: Path, names: list[str]) -> str:
    """The first of these traces whose files are here; the last if none's are. Raises ValueError for one without a file."""
    for name in names:
        if mistake := _no_file(root, "trace", name):
            raise ValueError(mistake)

    def is_here(name: str) -> bool:
        trace, folder = load_trace(name, root), root / CACHE / "raw" / name
        if trace.path is None:
            return all(
                d.url.startswith(SHIPPED) or (folder / d.file).exists() or manual_file(name, d.file)
                for d in trace.downloads or []
            )
        try:
            return local_file(name, trace.path, root).exists()
        except RLTuneError:
            return False

    return next(filter(is_here, names), names[-1])


def _resolve(root: Path, path: Path | str) -> Path:
    return root / os.path.expanduser(path)


def _line(node: yaml.Node | None, loc: tuple[str | int, ...]) -> int:
    """The line in the file of the deepest part of ``loc`` that the file has."""
    line = 1 if node is None else node.start_mark.line + 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next((p for p in node.value if p[0].value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
