"""What every block of the configuration shares: unknown keys are refused, values are frozen."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Block(BaseModel):
    """A block of configuration: no unknown keys, immutable once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
