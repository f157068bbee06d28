"""Scripts of rules write what they say to the rule's log."""

import sys
import traceback
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from rltune.errors import RLTuneError


@contextmanager
def logged(path):
    """Send what is printed to the log, an error too; one that a user can mend without its traceback."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", buffering=1) as log, redirect_stdout(log), redirect_stderr(log):
        try:
            yield
        except RLTuneError as error:
            print(error)
            sys.exit(1)
        except Exception:
            traceback.print_exc()
            sys.exit(1)
