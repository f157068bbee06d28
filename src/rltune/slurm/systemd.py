"""Messages of the controller: lines with a level, and notifications for systemd (Type=notify, sd_notify(3))."""

import logging
import os
import socket
import time
from contextlib import suppress
from typing import Protocol

SYSLOG = {logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3}
"""Levels as systemd's journal knows them (sd-daemon(3))."""


class Say(Protocol):
    """Takes a message and its level."""

    def __call__(self, line: str, level: int = logging.INFO, /) -> object:
        """Report it."""


def log(line: str, level: int = logging.INFO) -> None:
    """Print a message at once: with time and level, or as systemd's journal takes it.

    One that cannot be printed (a full disk, a closed terminal, characters that it lacks) is lost: releasing jobs must not
    depend on it.
    """
    with suppress(OSError, ValueError):
        out = os.fstat(1)
        if os.environ.get("JOURNAL_STREAM") == f"{out.st_dev}:{out.st_ino}":
            head = f"<{SYSLOG[level]}>"
            line = line.replace("\n", f"\n{head}")
        else:
            head = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {logging.getLevelName(level)} "
        print(f"{head}{line}", flush=True)


def notify(state: str) -> None:
    """Send systemd a state such as READY=1, where it has started this process and listens."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if path:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
            there.sendto(state.encode(), "\0" + path[1:] if path[0] == "@" else path)
