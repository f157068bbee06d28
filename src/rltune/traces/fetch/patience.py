"""How long a download insists."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How long to insist; times in seconds. Our choice: a dead address costs about 15 s, a cut line of minutes is sat
    out, and no attempt hangs."""

    tries: int = 5
    """Attempts in a row that bring less than ``gain_bytes``, before an address is given up."""
    gain_bytes: int = 1_000_000
    wait_s: float = 1.0
    """Wait before the second attempt; doubles each time, times a random 0.5 to 1.5."""
    longest_s: float = 120.0
    """Longest wait, a server's Retry-After too: one that asks for more is given up."""
    connect_s: float = 20.0
    stall_s: float = 60.0
    """Time without a byte after which the connection counts as dead."""
    redirects: int = 10
    every_s: float = 5.0
    """Time between two lines of progress."""
    chunk_bytes: int = 65_536
