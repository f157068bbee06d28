"""Makes agent_fakes and workload_cases importable."""

import sys
from pathlib import Path

for folder in ("agent", "cluster"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
