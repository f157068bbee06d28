"""Progress of a download: a line every few seconds, fit for a terminal, a log and a notebook alike."""

from __future__ import annotations

import sys
import time

EVERY_S = 5.0
"""Time between two lines."""


def say(line: str) -> None:
    """Print a line in one write: stages that run at the same time share the terminal."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def size_text(size: float) -> str:
    """A number of bytes in words: 36.4 MB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def time_text(seconds: float) -> str:
    """A duration in words, to the minute once it has hours: 1 h 05 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class Progress:
    """Prints how far a download is: bytes, share, rate since it started or continued, time left."""

    def __init__(self, name: str, done: int, total: int | None) -> None:
        self.name, self.done, self.total, self.before = name, done, total, done
        self.started = self.said = time.monotonic()

    def add(self, size: int) -> None:
        """Count bytes that came."""
        self.done += size
        now = time.monotonic()
        if now - self.said >= EVERY_S:
            self.said = now
            say(f"downloading {self.name}: {self.line(now - self.started)}")

    def line(self, seconds: float) -> str:
        """The state after so many seconds."""
        rate = (self.done - self.before) / max(seconds, 1e-9)
        if not self.total:
            return f"{size_text(self.done)}, {size_text(rate)}/s"
        left = time_text((self.total - self.done) / max(rate, 1e-9))
        share = f"{size_text(self.done)} of {size_text(self.total)} ({self.done / self.total:.0%})"
        return f"{share}, {size_text(rate)}/s, {left} left"
