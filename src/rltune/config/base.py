"""Base of every block of the configuration: unknown keys are refused, values are frozen and finite."""

from collections.abc import Callable, Hashable, Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

NAME = r"^[A-Za-z0-9.]+([-_][A-Za-z0-9.]+)*$"
Name = Annotated[str, Field(pattern=NAME)]
"""Name of a file or preset; it becomes part of file names, so: letters, digits, dots, single - or _."""


def parsed_by(parse: Callable[[str], object]) -> AfterValidator:
    """Accepts the names that ``parse`` takes; its ConfigError says what is wrong with others."""

    def check(name: str) -> str:
        parse(name)
        return name

    return AfterValidator(check)


def checked_by_context(kind: str) -> AfterValidator:
    """Checks names of this kind by pydantic's context, where there is one: a function for each kind that returns what is
    wrong with a name, or None (rltune.config.load)."""

    def check(name: str, info: ValidationInfo) -> str:
        if info.context is not None and (mistake := info.context[kind](name)):
            raise ValueError(mistake)
        return name

    return AfterValidator(check)


def repeated(values: Sequence[Hashable]) -> list[str]:
    """The values that occur twice or more, as text."""
    return sorted({str(v) for v in values if list(values).count(v) > 1})


def _each_once(values: Sequence[Hashable]) -> Sequence[Hashable]:
    if twice := repeated(values):
        raise ValueError(f"found twice: {', '.join(twice)}")
    return values


EachOnce = AfterValidator(_each_once)


def _distinct(speeds: str | dict[str, float]) -> str | dict[str, float]:
    if isinstance(speeds, dict) and (twice := repeated([kind.lower() for kind in speeds])):
        raise ValueError(f"found {', '.join(twice)} twice; upper and lower case are the same type")
    return speeds


Speeds = Annotated[str | dict[str, Annotated[float, Field(gt=0)]], AfterValidator(_distinct)]
"""`gavel`, a file, or the speed of each GPU type in any unit."""


class Block(BaseModel):
    """A block of configuration: no unknown keys, immutable once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)
