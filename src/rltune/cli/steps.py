"""What a command says while it works: a line that goes again on a terminal, lines with times where --verbose asks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

VerboseOption = Annotated[bool, typer.Option("--verbose", help="Say each step and its time, on standard error.")]
_verbose = False


def make_verbose(verbose: bool) -> None:
    """Whether the steps of this command are printed one by one."""
    global _verbose
    _verbose = verbose


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say what is being done, for as long as it is: on a terminal in one line, which is gone when it is done.

    Elsewhere nothing is said, unless the command is verbose.
    """
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
