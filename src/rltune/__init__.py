"""RLTune: reinforcement learning and optimisation for GPU-cluster scheduling."""

import hashlib
import os
from pathlib import Path

__version__ = "0.1.0"

COMPILED = ("cluster", "policies", "simulator", "placement", "environment", "agent")
"""Packages with compiled code."""


def sources_digest(*packages: str) -> str:
    """Twelve hexadecimal digits that change when a source file of one of these packages does."""
    digest = hashlib.sha256((Path(__file__).parent / "kernels.py").read_bytes())
    for package in packages:
        for path in sorted((Path(__file__).parent / package).rglob("*")):
            if path.suffix in (".py", ".conf"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _set_numba_cache() -> None:
    """Give each state of the sources its own cache of compiled code.

    Numba looks only at the file a function stands in: after a change in a function that others call, it would
    go on with their old code. NUMBA_CACHE_DIR, where it is set, is kept.
    """
    project = Path(__file__).parents[2]
    if "NUMBA_CACHE_DIR" not in os.environ and (project / "workflow" / "Snakefile").is_file():
        os.environ["NUMBA_CACHE_DIR"] = str(project / ".cache" / "numba" / sources_digest(*COMPILED))


_set_numba_cache()
