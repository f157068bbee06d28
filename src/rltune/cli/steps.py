"""Progress of a command: on a terminal a line that vanishes, with --verbose lines with times."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

VerboseOption = Annotated[bool, typer.Option("--verbose", help="Print each step and its time on standard error.")]
_verbose = False


def make_verbose(verbose: bool) -> None:
    """Set whether the steps of this command are printed one by one."""
    global _verbose
    _verbose = verbose


@contextmanager
def step(text: str) -> Iterator[None]:
    """Show what is being done: on a terminal in a line that is removed at the end; elsewhere only if verbose."""
    began = time.monotonic()
    shown = sys.stderr.isatty() and not _verbose
    if shown:  # at once: compiled code lets no other thread say it later
        print(f"\r\x1b[2K{text} …", end="", file=sys.stderr, flush=True)
    elif _verbose:
        print(f"{text} …", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
    if _verbose:
        print(f"{text}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
