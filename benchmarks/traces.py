"""How fast raw trace files become job tables: reading and cleaning, in a new process each, imports aside.

Philly's CSV file, as config/traces/philly-csv.yaml reads it, and HPC2N's log are real where RLTUNE_REAL_TRACES (default
../shared/traces) has them. The native Philly log, and HPC2N's where it is not there, are made up by
rltune.traces.synthetic in a folder that is removed. Best of several runs. The last line is one JSON object; times in
seconds, peak memory of a process in MB (10⁶ bytes). `--read NAME PATH` cleans one file and prints its figures, `--make
NAME FOLDER` makes one up: what each new process does.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rltune.config import TraceConfig, load_trace, project_root
from rltune.traces.clean import clean_trace
from rltune.traces.synthetic import generate

MADE_UP = {"philly_json": 117_325, "swf": 202_871}
"""Jobs of Philly's official log, and of HPC2N-2002-2.2-cln.swf."""
COMMON = {"title": "Benchmark", "data": "own", "path": "x"}
TRACES = {
    "philly_json": {"format": "philly", "time_zone": "America/Los_Angeles"},
    "swf": {"format": "swf", "time_zone": "Europe/Stockholm"},
}


def main() -> None:
    """Print each figure as it comes; the JSON object last."""
    real = Path(os.environ.get("RLTUNE_REAL_TRACES") or "../shared/traces")
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="rltune-bench-") as folder:
        for name, path, repeats in (
            ("philly_csv", real / "philly" / "philly_jobs.csv.gz", 5),
            ("philly_json", None, 2),
            ("swf", real / "cpu" / "HPC2N-2002-2.2-cln.swf.gz", 3),
        ):
            data = "real rows"
            if path is None or not path.is_file():
                if name not in MADE_UP:
                    print(f"{name}: {path} is not there")
                    continue
                path, data = Path(folder) / name, "made up"
                # in a process of its own, as a new process starts with its parent's peak memory
                subprocess.run([sys.executable, __file__, "--make", name, path], check=True)
            figures |= measure(name, path, repeats, data)
    print(json.dumps(figures))


def measure(name: str, path: Path, repeats: int, data: str) -> dict[str, object]:
    """Wall time (the best) and peak memory (the highest) of some new processes that clean the file."""
    took, peak, rows = [], [], 0
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, __file__, "--read", name, str(path)], stdout=subprocess.PIPE, text=True, check=True
        )
        figures = json.loads(done.stdout.strip().splitlines()[-1])
        took.append(figures["s"])
        peak.append(figures["rss_mb"])
        rows = figures["rows_read"]
    size = sum(file.stat().st_size for file in [path, *path.rglob("*")]) / 1e6
    print(
        f"{name} ({data}, {rows:,} rows, {size:,.0f} MB): {min(took):.2f} s, peak memory {max(peak):,} MB "
        f"({figures['imports_mb']:,} MB of them before reading)",
        flush=True,
    )
    return {f"{name}_s": round(min(took), 2), f"{name}_rss_mb": max(peak), f"{name}_rows": rows, f"{name}_data": data}


def read_one(name: str, path: str) -> None:
    """Clean one file and print what it took."""
    if name == "philly_csv":
        trace = load_trace("philly-csv", project_root())
    else:
        trace = TraceConfig.model_validate(COMMON | TRACES[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    clean = clean_trace(name, trace, Path(path))
    took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = {"rss_mb": round(peak * 1024 / 1e6), "imports_mb": round(before * 1024 / 1e6)}
    print(json.dumps({"s": took, **memory, "rows_read": clean.audit.rows_read}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--read", name, path]:
            read_one(name, path)
        case ["--make", name, folder]:
            generate(TRACES[name]["format"], Path(folder), 1, MADE_UP[name], "HPC2N")
        case _:
            main()
