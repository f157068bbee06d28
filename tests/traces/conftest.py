"""Trace configurations to read small raw files with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from raw_cases import trace_config

from rltune.config.trace import TraceConfig


@pytest.fixture
def trace() -> Callable[..., TraceConfig]:
    """A trace configuration of a format, with any field replaced."""
    return trace_config
