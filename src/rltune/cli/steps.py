"""Progress of a command: on a terminal a line that vanishes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(text: str) -> Iterator[None]:
    """Show what is being done, on a terminal in a line that is removed at the end."""
    shown = sys.stderr.isatty()
    if shown:  # at once: compiled code lets no other thread say it later
        print(f"\r\x1b[2K{text} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
