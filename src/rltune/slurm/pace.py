"""How fast this process's own clock runs: inside an emulated cluster with compressed time, faster than the true one."""

from __future__ import annotations

import os
from collections.abc import Mapping

SPEED = "RLTUNE_CLOCK_SPEED"
"""Environment variable that an emulated cluster sets for programs on its fast clock."""


def own_speed(env: Mapping[str, str] = os.environ) -> float:
    """Seconds of this process's clock in one true second; 1 outside an emulated cluster."""
    return float(env[SPEED]) if env.get("FAKETIME_SHARED") and env.get(SPEED) else 1.0
