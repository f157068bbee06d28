"""Progress of a download or of reading: a line every few seconds, fit for a terminal, a log and a notebook alike."""

import time

EVERY_S = 5.0
"""Time between two lines."""


def say(line: str) -> None:
    """Print a line in one write: stages that run at the same time share the terminal."""
    print(f"{line}\n", end="", flush=True)


def size_text(size: float) -> str:
    """A number of bytes in words: 36.4 MB."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * factor:  # what has three digits of the unit below rounds to 1 of this one
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
    """Prints how far something is with a file: bytes, share, rate since it started or continued, time left."""

    def __init__(self, what: str, total: int | None, done: int = 0) -> None:
        self.what, self.total, self.before = what, total, done
        self.started = self.said = time.monotonic()

    def reached(self, done: int) -> None:
        """Note how many bytes are done."""
        now = time.monotonic()
        if now - self.said < EVERY_S:
            return
        self.said = now
        rate = (done - self.before) / max(now - self.started, 1e-9)
        text = f"{size_text(done)}, {size_text(rate)}/s"
        if self.total:
            left = time_text((self.total - done) / max(rate, 1.0))
            text = f"{size_text(done)} of {size_text(self.total)} ({done / self.total:.0%}), {size_text(rate)}/s, {left} left"
        say(f"{self.what}: {text}")
