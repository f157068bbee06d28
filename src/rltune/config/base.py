"""What every block of the configuration shares: unknown keys are refused, values are frozen and finite."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9.]+([-_][A-Za-z0-9.]+)*$")]
"""Name of a file or preset; it becomes part of file names, so: letters, digits, dots, single - or _."""


class Block(BaseModel):
    """A block of configuration: no unknown keys, immutable once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)
