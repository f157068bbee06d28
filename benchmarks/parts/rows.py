"""Where the real rows are that do not ship, and whether PAI's are there."""

import os
from pathlib import Path

HAS_PAI = Path(
    os.environ.setdefault("RLTUNE_REAL_TRACES", "../shared/traces"), "alibaba2020/pai_gpu_tasks_sample.csv.gz"
).is_file()
