"""Lets these tests use the cases beside the cluster's tests; how many random cases they try."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

# the same cases every time; RLTUNE_EXAMPLES=400, that of `make test-all`, tries more of them
settings.register_profile(
    "proof",
    derandomize=True,
    deadline=None,
    max_examples=int(os.environ.get("RLTUNE_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
