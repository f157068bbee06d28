"""Mistakes of a configuration file in words: what was found, what is expected, what the key means."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

Location = tuple[str | int, ...]


def explain(errors: Sequence[dict[str, Any]], model: type[BaseModel], plugins: bool) -> list[tuple[Location, str]]:
    """Each mistake that pydantic found: where, and what it is in words; a value that suits none of several types once.

    ``plugins``: the run has policies from files of the user.
    """
    found: dict[Location, list[str]] = {}
    within = {error["loc"][:i] for error in errors for i, part in enumerate(error["loc"][:-1]) if _is_type_name(part)}
    for error in errors:
        loc = error["loc"]
        if _is_type_name(loc[-1] if loc else ""):  # pydantic adds the name of each type that was tried
            loc = loc[:-1]
            if loc in within:
                continue  # it is of another type, in which something is wrong
        loc = tuple(part for i, part in enumerate(loc) if loc[:i] not in within or not _is_type_name(part))
        if error["type"] == "invalid_key":
            loc = (*loc[:-1], str(error["input"]).lower())
        found.setdefault(loc, []).append(_explain(error, loc, model, plugins))
    lines = {loc: texts if len(texts) == 1 else [_either(texts)] for loc, texts in found.items()}
    return [(loc, f"{dotted(loc)}: {text}" if loc else text) for loc, texts in lines.items() for text in texts]


def first_error(error: ValidationError) -> str:
    """`field: what is wrong with it`."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def dotted(loc: Location) -> str:
    """A location as a user writes it: ``experiments[0].policy``."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc if p != "[key]").lstrip(".")


def nearest(found: str, known: Iterable[str]) -> str:
    """A remark that names the most similar of the known names, where one is similar."""
    close = difflib.get_close_matches(found, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _explain(error: dict[str, Any], loc: Location, model: type[BaseModel], plugins: bool) -> str:
    kind, value = error["type"], _shown(error["input"])
    if kind == "extra_forbidden":
        known = list(_block(model, loc[:-1]).model_fields)
        return f"unknown key{nearest(str(loc[-1]), known)}; allowed here: {', '.join(known)}"
    if kind == "missing":
        return f"missing; it is required{_meaning(model, loc)}"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind == "invalid_key":
        return f'found a key that is no text; in quotes it is one: "{value.lower()}"'
    if kind == "literal_error":  # pydantic words the choices as 'a', 'b' or 'c'
        choices = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        text = f"found {value}{nearest(str(error['input']), choices)}; allowed: {', '.join(choices)}"
        if plugins and loc[-2:-1] == ("policy",):
            text += "; agents cannot train against a policy from `plugins`: name it in evaluation.baseline_policies"
        return text
    expected = error["msg"].removeprefix("Input should be ").removeprefix("Value should ")
    return f"found {value}, expected {expected}{_meaning(model, loc)}"


def _either(texts: list[str]) -> str:
    """One text of those for several types: they differ in what they expect."""
    first, *others = (text.partition(", expected ") for text in texts)
    expected = dict.fromkeys(part[2].partition("; ")[0] for part in (first, *others))
    meaning = "".join(first[2].partition("; ")[1:])
    return f"{first[0]}, expected {' or '.join(expected)}{meaning}"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return str(value).lower() if isinstance(value, bool) else repr(value) if len(repr(value)) <= 60 else "a long value"


def _is_type_name(part: str | int) -> bool:
    return isinstance(part, str) and (part in ("str", "int", "float", "bool") or part.startswith(("list[", "dict[")))


def _meaning(model: type[BaseModel], loc: Location) -> str:
    """The first sentence of what a key means, unit and all."""
    names = [part for part in loc if isinstance(part, str)]
    if not names:
        return ""
    at = len(loc) - 1 - loc[::-1].index(names[-1])
    field = _block(model, loc[:at]).model_fields.get(names[-1])
    first = " ".join((field.description or "").split()).split("; ")[0].rstrip(".") if field else ""
    return f"; it is: {first if first[1:2].isupper() else first[0].lower() + first[1:]}" if first else ""


def _block(model: type[BaseModel], loc: Location) -> type[BaseModel]:
    """The block that a location inside ``model`` is in."""
    here: Any = model
    for part in loc:
        if isinstance(here, type) and issubclass(here, BaseModel) and part in here.model_fields:
            here = here.model_fields[part].annotation
        here = next((a for a in _leaves(here) if isinstance(a, type) and issubclass(a, BaseModel)), here)
    return here if isinstance(here, type) and issubclass(here, BaseModel) else model


def _leaves(annotation: Any) -> list[Any]:
    inner = get_args(annotation)
    return [annotation] if not inner else [leaf for a in inner for leaf in _leaves(a)]
