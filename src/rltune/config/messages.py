"""Mistakes of a configuration file in words: what was found, what is expected, how it is written."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel

Location = tuple[str | int, ...]

KINDS = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false"}
"""What a value of a plain type is called."""
TYPES = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number that is finite",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "date_type": "a date such as 2020-03-31",
    "date_parsing": "a date such as 2020-03-31",
    "date_from_datetime_parsing": "a date such as 2020-03-31",
    "date_from_datetime_inexact": "a date such as 2020-03-31",
}
"""Pydantic's kind of mistake → what is expected."""
BOUNDS = {
    "greater_than_equal": "{ge:g} or more",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "{le:g} or less",
    "less_than": "less than {lt:g}",
}


def explain(errors: Sequence[dict[str, Any]], model: type[BaseModel], own: bool) -> list[tuple[Location, str]]:
    """Each mistake that pydantic found: where, and what it is in words.

    ``own``: the run has policies of the user's own. A value that fits none of several types is one mistake.
    """
    told: dict[Location, list[str]] = {}
    for error in errors:
        loc, union = _without_type(error["loc"], model)
        if error["type"] == "invalid_key":
            loc = (*loc[:-1], str(error["input"]).lower())
        if union:
            said = f"found {shown(error['input'])}, expected {_union(model, loc)}"
            told.setdefault(loc, [said])
        else:
            told.setdefault(loc, []).append(_explain(error, loc, model, own))
    return [(loc, f"{dotted(loc)}: {text}" if dotted(loc) else text) for loc, texts in told.items() for text in texts]


def dotted(loc: Location) -> str:
    """A location as a user writes it: ``experiments[0].policy``."""
    loc = tuple(part for part in loc if part != "[key]")
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc).lstrip(".")


def nearest(found: str, known: Iterable[str]) -> str:
    """A remark that names the most similar of the known names, where one is similar."""
    known = list(known)
    # of units and signs the beginning tells more than the letters they share: seconds is s, = is ==
    starts = [k for k in known if (len(k) <= 3 and found.startswith(k)) or (len(found) <= 2 and k.startswith(found))]
    close = sorted(starts, key=len, reverse=True)[:1] or difflib.get_close_matches(found, known, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def shown(value: Any) -> str:
    """A value as it was found: short ones themselves, others by their kind."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
        kind = "a list" if isinstance(value, list) else "a block of keys"
        return f"{value} ({kind})" if len(str(value)) <= 40 else kind
    return str(value) if isinstance(value, date) else repr(value)


def _explain(error: dict[str, Any], loc: Location, model: type[BaseModel], own: bool) -> str:
    kind, context, found = error["type"], error.get("ctx", {}), error["input"]
    if kind == "extra_forbidden":
        known = list(_model_at(model, loc[:-1]).model_fields)
        return f"unknown key{nearest(str(loc[-1]), known)}; allowed here: {', '.join(known)}"
    if kind == "missing":
        return f"missing; it is required{_meaning(model, loc)}"
    if kind == "literal_error":
        return _not_among(error, loc, own)
    if kind == "string_pattern_mismatch":
        return f"found {found!r}; allowed: letters, digits, dots, and single - or _ between them"
    if kind == "value_error":
        return str(context["error"])
    if kind in ("model_type", "model_attributes_type"):
        short = getattr(_model_at(model, loc), "SHORT", "")
        return f"found {shown(found)}, expected {short}a block of keys: {_example(model, loc)}"
    if kind == "dict_type":
        return f"found {shown(found)}, expected a block of names with a value each: {loc[-1]}: {{NAME: …}}"
    if kind == "list_type":
        block = _model_at(model, loc)
        of_blocks = hasattr(block, "model_fields") and block is not _model_at(model, loc[:-1])
        inside = f"{{{_keys(block)}}}" if of_blocks else _inside(found)
        return f"found {shown(found)}, expected a list, such as {loc[-1]}: [{inside}]"
    if kind == "too_short":
        return f"found {shown(found)}, expected at least {context['min_length']} of them{_meaning(model, loc)}"
    if kind == "invalid_key":
        return f'found a key that is no text; in quotes it is one: "{str(found).lower()}"'
    if kind in BOUNDS:
        return f"found {shown(found)}, expected {BOUNDS[kind].format(**context)}{_meaning(model, loc)}"
    if kind in TYPES:
        bounds = _bounds(model, loc) if kind.startswith(("int", "float")) else ""
        return f"found {shown(found)}, expected {TYPES[kind]}{bounds}{_hint(kind, found)}{_meaning(model, loc)}"
    return f"found {shown(found)}; {error['msg'][0].lower()}{error['msg'][1:]}"


def _not_among(error: dict[str, Any], loc: Location, own: bool) -> str:
    # pydantic words the choices as 'a', 'b' or 'c'
    choices = [c for part in error["ctx"]["expected"].split(" or ") for c in part.replace("'", "").split(", ")]
    found = error["input"]
    named = next(iter(found)) if isinstance(found, dict) and len(found) == 1 else found
    text = f"found {shown(found)}{nearest(str(named), choices)}; allowed: {', '.join(choices)}"
    if own and loc[-2:-1] == ("policy",):
        text += "; a policy of your own cannot be trained against, name it in evaluation.baseline_policies"
    return text


def _hint(kind: str, found: Any) -> str:
    """How a value of the wrong type is likely to be meant."""
    if kind == "string_type" and isinstance(found, (int, float, bool, date)):
        return f': put it in quotes, "{str(found).lower() if isinstance(found, bool) else found}"'
    if isinstance(found, str) and found.rstrip().endswith("%") and kind.startswith("float"):
        return ", such as 0.9 for 90%"
    if isinstance(found, str) and found[:1].isdigit() and kind.startswith(("float", "int")):
        return " alone, without a unit"
    return ""


def _example(model: type[BaseModel], loc: Location) -> str:
    """How a block is written: its required keys, or else its first ones."""
    block = _model_at(model, loc)
    written = f"{{{_keys(block)}}}" if isinstance(loc[-1], int) else f"{loc[-1]}: {{{_keys(block)}}}"
    return f"{written}; its keys are {', '.join(block.model_fields)}"


def _keys(block: type[BaseModel]) -> str:
    required = [name for name, field in block.model_fields.items() if field.is_required()]
    return ", ".join(f"{name}: …" for name in required or list(block.model_fields)[:3])


def _inside(found: Any) -> str:
    return str(found) if isinstance(found, (str, int, float)) and len(str(found)) <= 40 else "…"


def _bounds(model: type[BaseModel], loc: Location) -> str:
    """The range of a number, in words."""
    words = []
    for bound in _metadata(_field(model, loc)):
        match bound:
            case Ge():
                words.append(f"{bound.ge:g} or more")
            case Gt():
                words.append(f"more than {bound.gt:g}")
            case Le():
                words.append(f"at most {bound.le:g}")
            case Lt():
                words.append(f"less than {bound.lt:g}")
    return f" ({', '.join(words)})" if words else ""


def _meaning(model: type[BaseModel], loc: Location) -> str:
    """The first sentence of what a key means, unit and all."""
    field = _field(model, loc)
    text = (field.description or "") if field is not None else ""
    first = " ".join(text.split()).split("; ")[0].split(": ")[0].rstrip(".… ")
    return f"; it is: {first if first[1:2].isupper() else first[0].lower() + first[1:]}" if first else ""


def _field(model: type[BaseModel], loc: Location) -> Any:
    """The field that a location ends in, or the list's that it is an entry of; None where it is no field."""
    named = tuple(loc[: max((i for i, part in enumerate(loc) if isinstance(part, str)), default=-1) + 1])
    if not named:
        return None
    block = _model_at(model, named[:-1])
    return block.model_fields.get(str(named[-1])) if hasattr(block, "model_fields") else None


def _metadata(field: Any) -> list[Any]:
    """The bounds of a field, or of what its list holds."""
    if field is None:
        return []
    inner = [m for leaf in get_args(field.annotation) for m in getattr(leaf, "__metadata__", ())]
    found = []
    for one in [*field.metadata, *inner]:
        found += [m for m in (getattr(one, "metadata", None) or [one])]
    return found


def _without_type(loc: Location, model: type[BaseModel]) -> tuple[Location, bool]:
    """A location without the name of a type that pydantic adds where several are allowed, and whether it had one."""
    if loc and isinstance(loc[-1], str) and (loc[-1] in KINDS or loc[-1].startswith("list[")):
        field = _field(model, loc[:-1])
        if field is not None and len(get_args(field.annotation)) > 1:
            return loc[:-1], True
    return loc, False


def _union(model: type[BaseModel], loc: Location) -> str:
    """What is allowed where several types are."""
    kinds = [a for a in get_args(_field(model, loc).annotation) if a is not type(None)]
    words = [KINDS.get(getattr(a, "__name__", ""), "") for a in kinds if get_origin(a) is None]
    words += ["a list of such"] if any(get_origin(a) is list for a in kinds) else []
    words = [w for w in words if w and not (w == "a whole number" and "a number" in words)]
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _model_at(model: type[BaseModel], loc: Location) -> type[BaseModel]:
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
