"""Read configuration files; a mistake stops with file, line, key, what was found and what is allowed."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from rltune.config.cluster import ClusterConfig
from rltune.config.run import RunConfig
from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)


def project_root(start: Path | None = None) -> Path:
    """The project's root: the nearest folder upwards that holds ``workflow/Snakefile``.

    Raises ConfigError where there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, *Path(__file__).resolve().parents):
        if (folder / "workflow" / "Snakefile").is_file():
            return folder
    raise ConfigError(f"{here}: not inside the RLTune project (no workflow/Snakefile here or above)")


def load_run(path: Path | str, root: Path) -> RunConfig:
    """The run's configuration, with every trace and cluster it names checked to exist and be valid."""
    run = read_block(_resolve(root, path), RunConfig, root)
    for workload in run.all_workloads():
        load_trace(workload.trace, root, named_in=path)
        load_cluster(workload.cluster, root, named_in=path)
    return run


def load_trace(name: str, root: Path, named_in: Path | str = "") -> TraceConfig:
    """The trace ``config/traces/<name>.yaml``."""
    return read_block(_named(root, "traces", name, named_in), TraceConfig, root)


def load_cluster(name: str, root: Path, named_in: Path | str = "") -> ClusterConfig:
    """The cluster ``config/clusters/<name>.yaml``."""
    return read_block(_named(root, "clusters", name, named_in), ClusterConfig, root)


def read_block(path: Path, model: type[Model], root: Path | None = None) -> Model:
    """Parse and check one YAML file.

    Raises ConfigError naming the file, the line, the key, what was found and what is allowed,
    for every mistake in the file at once.
    """
    shown = path.relative_to(root) if root and path.is_relative_to(root) else path
    if not path.is_file():
        raise ConfigError(f"{shown}: no such file")
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{shown}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{shown}: found {type(value).__name__}, expected a mapping of keys to values")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        lines = [f"{shown}:{_line(node, e['loc'])}: {_explain(e, model)}" for e in error.errors()]
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None


def _resolve(root: Path, path: Path | str) -> Path:
    path = Path(path).expanduser()
    return path if path.is_absolute() else root / path


def _named(root: Path, kind: str, name: str, named_in: Path | str) -> Path:
    folder = root / "config" / kind
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = sorted(p.stem for p in folder.glob("*.yaml"))
        raise ConfigError(
            f"{named_in or folder.relative_to(root)}: {kind[:-1]} {name!r} has no file config/{kind}/{name}.yaml"
            f"{_nearest(name, known)}; there are {', '.join(known)}"
        )
    return path


def _nearest(found: str, known: list[str]) -> str:
    close = difflib.get_close_matches(found, known, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _explain(error: dict[str, Any], model: type[BaseModel]) -> str:
    loc, kind, context = error["loc"], error["type"], error.get("ctx", {})
    key = _dotted(loc)
    if kind == "extra_forbidden":
        known = list(_model_at(model, loc[:-1]).model_fields)
        return f"{key}: unknown key{_nearest(str(loc[-1]), known)}; allowed here: {', '.join(known)}"
    if kind == "missing":
        return f"{key}: missing; it is required"
    found = error["input"]
    if kind == "literal_error":
        # pydantic words the choices as 'a', 'b' or 'c'
        choices = [c for part in context["expected"].split(" or ") for c in part.replace("'", "").split(", ")]
        return f"{key}: found {found!r}{_nearest(str(found), choices)}; allowed: {', '.join(choices)}"
    if kind == "value_error":
        text = str(context["error"])
        return f"{key}: {text}" if key else text
    shown = repr(found) if not isinstance(found, (dict, list)) or not found else type(found).__name__
    return f"{key}: found {shown}; {error['msg'][0].lower()}{error['msg'][1:]}"


def _dotted(loc: tuple[str | int, ...]) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc).lstrip(".")


def _model_at(model: type[BaseModel], loc: tuple[str | int, ...]) -> type[BaseModel]:
    """The block that a location inside ``model`` is in."""
    here: Any = model
    for part in loc:
        if isinstance(here, type) and issubclass(here, BaseModel) and part in here.model_fields:
            here = here.model_fields[part].annotation
        candidates = [a for a in _flatten(here) if isinstance(a, type) and issubclass(a, BaseModel)]
        if candidates:
            here = candidates[0]
    return here


def _flatten(annotation: Any) -> list[Any]:
    inner = get_args(annotation)
    return [annotation] if not inner else [leaf for a in inner for leaf in _flatten(a)]


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
