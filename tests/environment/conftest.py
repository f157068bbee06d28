"""Lets these tests use the made-up workloads beside the agent's and the cluster's tests."""

import sys
from pathlib import Path

for folder in ("agent", "cluster"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / folder))
