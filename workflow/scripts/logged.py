"""Scripts of rules write what they say to the rule's log."""

import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from rltune.errors import RLTuneError


@contextmanager
def logged(path):
    """Send what is printed to the log; on an error that a user can mend, print it there without a traceback, and exit."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", buffering=1) as log, redirect_stdout(log), redirect_stderr(log):
        try:
            yield
        except RLTuneError as error:
            print(f"rltune: {error}")
            sys.exit(1)
