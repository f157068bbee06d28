"""RLTune: reinforcement learning and optimisation for GPU-cluster scheduling."""

import hashlib
import os
from pathlib import Path

__version__ = "0.1.0"


def _keep_compiled_code_apart() -> None:
    """Give each state of the sources a cache of compiled code of its own.

    Numba looks only at the file a function stands in: after a change in a function that others call, it would
    go on with their old code. Set NUMBA_CACHE_DIR to decide for yourself.
    """
    here = Path(__file__).parent
    project = here.parents[1]
    if "NUMBA_CACHE_DIR" in os.environ or not (project / "workflow" / "Snakefile").is_file():
        return
    digest = hashlib.sha256()
    for package in ("cluster", "policies", "simulator", "placement", "agent"):
        for path in sorted((here / package).glob("*.py")):
            digest.update(path.read_bytes())
    os.environ["NUMBA_CACHE_DIR"] = str(project / ".cache" / "numba" / digest.hexdigest()[:12])


_keep_compiled_code_apart()
