"""How fast raw trace files become job tables: reading and cleaning, in a new process each, imports aside.

Philly's and HPC2N's rows are real where RLTUNE_REAL_TRACES (default ../shared/traces) has them, and made up in the
same layout and number otherwise. The native Philly log and the Helios log are always made up, in a folder that is
removed. Best of several runs. The last line is one JSON object; times in seconds, peak memory of a process in MB
(10⁶ bytes). `--read NAME PATH` cleans one file and prints its figures, `--make NAME FOLDER` makes one up: what each
new process does.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.traces.clean import clean_trace

PHILLY_ROWS, PHILLY_JOBS, HELIOS_ROWS, HPC2N_ROWS = 111_549, 117_325, 1_750_000, 202_871
"""Rows of the sample in ../shared/traces, jobs of the official log, rows of the largest official log, rounded up, and
rows of HPC2N-2002-2.2-cln.swf."""
COMMON = {"title": "Benchmark", "data": "own", "path": "x"}
TRACES = {
    "philly_csv": {
        "format": "csv",
        "time_zone": "America/Los_Angeles",
        "columns": {
            "job_id": "job_id",
            "vc": "vc",
            "submit_s": "submit_time",
            "gpus": "num_gpus",
            "run_s": {"column": "run_sum_s", "fallback": "run_span_s", "unit": "s"},
        },
    },
    "philly_json": {"format": "philly", "time_zone": "America/Los_Angeles"},
    "helios_csv": {"format": "helios", "part": "Venus", "time_zone": "Asia/Shanghai"},
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
            ("helios_csv", None, 2),
            ("swf", real / "cpu" / "HPC2N-2002-2.2-cln.swf.gz", 3),
        ):
            there = path is not None and path.is_file()
            if not there:
                # In a process of its own, as a new process starts with its parent's peak memory.
                said = subprocess.run(
                    [sys.executable, __file__, "--make", name, folder], stdout=subprocess.PIPE, text=True, check=True
                )
                path = Path(said.stdout.strip())
            figures |= measure(name, path, repeats, "real rows" if there else "made up")
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
    size = path.stat().st_size / 1e6
    print(
        f"{name} ({data}, {rows:,} rows, {size:,.0f} MB): {min(took):.2f} s, peak memory {max(peak):,} MB "
        f"({figures['imports_mb']:,} MB of them before reading)",
        flush=True,
    )
    return {f"{name}_s": round(min(took), 2), f"{name}_rss_mb": max(peak), f"{name}_rows": rows, f"{name}_data": data}


def read_one(name: str, path: str) -> None:
    """Clean one file and print what it took."""
    trace = TraceConfig.model_validate(COMMON | TRACES[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, worked = time.perf_counter(), time.process_time()
    clean = clean_trace(name, trace, Path(path))
    took, worked = time.perf_counter() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "s": took,
                "cpu_s": worked,
                "rss_mb": round(peak * 1024 / 1e6),
                "imports_mb": round(before * 1024 / 1e6),
                "rows_read": clean.audit.rows_read,
            }
        )
    )


def philly_csv(folder: Path) -> Path:
    """A CSV of the sample's layout."""
    rng = np.random.default_rng(1)
    n = PHILLY_ROWS
    run = pd.Series(np.clip(rng.lognormal(6.5, 2, n), 1, 5e6).astype(np.int64), dtype="Int64")
    path = folder / "philly_jobs.csv.gz"
    pd.DataFrame(
        {
            "job_id": np.arange(n),
            "submit_time": clock(rng, "2017-08-14", 130, n),
            "vc": names(rng, "vc", 15, n),
            "num_gpus": rng.choice([1, 2, 4, 8, 16], n),
            "run_span_s": run,
            "run_sum_s": run.mask(rng.random(n) < 0.02),
            "match": "exact",
        }
    ).to_csv(path, index=False)
    return path


def philly_json(folder: Path) -> Path:
    """A native log: attempts and their nodes vary; at least 150 MB."""
    path = folder / "cluster_job_log"
    with open(path, "w", encoding="utf-8") as file:
        file.write("[")
        for i, job in enumerate(philly_jobs(np.random.default_rng(2), PHILLY_JOBS)):
            file.write((",\n" if i else "") + json.dumps(job, indent=4))
        file.write("]\n")
    assert path.stat().st_size >= 150e6, path.stat().st_size
    return path


def philly_jobs(rng: np.random.Generator, count: int) -> Iterator[dict[str, object]]:
    """Jobs with 0 to 9 attempts of 1 to 64 GPUs; one time in fifty is missing."""
    submit = np.sort(rng.integers(0, 130 * 86_400, count)) + np.datetime64("2017-08-14", "s")
    attempts = np.minimum(rng.geometric(0.42, count), 10) - (rng.random(count) < 0.05)
    gpus = rng.choice([1, 2, 4, 8, 16, 32, 64], count, p=[0.45, 0.1, 0.12, 0.2, 0.08, 0.03, 0.02])
    wait, run = rng.integers(1, 3600, (count, 10)), rng.integers(1, 86_400, (count, 10))
    gone = rng.random((count, 10)) < 0.02
    for i in range(count):
        clock, tried = submit[i], []
        for k in range(attempts[i]):
            start, clock = clock + wait[i, k], clock + wait[i, k] + run[i, k]
            nodes = [8] * (gpus[i] // 8) or [gpus[i]]
            tried.append(
                {
                    "start_time": str(start).replace("T", " "),
                    "end_time": "None" if gone[i, k] else str(clock).replace("T", " "),
                    "detail": [
                        {"ip": f"m{(i * 7 + k * 3 + m) % 552}", "gpus": [f"gpu{g}" for g in range(n)]}
                        for m, n in enumerate(nodes)
                    ],
                }
            )
        yield {
            "status": ("Pass", "Killed", "Failed")[i % 3],
            "vc": f"{i % 15:06x}",
            "jobid": f"application_15_{i:06d}",
            "attempts": tried,
            "submitted_time": str(submit[i]).replace("T", " "),
            "user": f"{i % 319:06x}",
        }


def helios_csv(folder: Path) -> Path:
    """A log of the official layout."""
    rng = np.random.default_rng(3)
    n = HELIOS_ROWS
    submit = np.sort(rng.integers(0, 180 * 86_400, n))
    queue, run = rng.integers(0, 3600, n), np.clip(rng.lognormal(5, 2, n), 0, 2e6).astype(np.int64)
    epoch = np.datetime64("2020-04-01", "s")
    written = {
        name: np.char.replace((epoch + seconds).astype("U19"), "T", " ")
        for name, seconds in (
            ("submit_time", submit),
            ("start_time", submit + queue),
            ("end_time", submit + queue + run),
        )
    }
    gpus = rng.choice([0, 1, 2, 4, 8, 16, 32], n)
    path = folder / "Venus" / "cluster_log.csv"
    path.parent.mkdir()
    pd.DataFrame(
        {
            "job_id": rng.permutation(n) + 1,
            "user": names(rng, "u", 400, n),
            "vc": names(rng, "vc", 15, n),
            "gpu_num": gpus,
            "cpu_num": np.maximum(gpus * 6, 4),
            "node_num": 1,
            "state": rng.choice(["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL"], n),
            **written,
            "duration": run,
            "queue": queue,
        }
    ).to_csv(path, index=False)
    return path


def swf(folder: Path) -> Path:
    """An SWF file of HPC2N's number of rows."""
    rng = np.random.default_rng(4)
    n = HPC2N_ROWS
    rows = np.full((n, 18), -1, dtype=np.int64)
    rows[:, 0], rows[:, 1] = np.arange(1, n + 1), np.sort(rng.integers(0, 110_000_000, n))
    rows[:, 2], rows[:, 3] = rng.integers(0, 90_000, n), rng.integers(1, 200_000, n)
    rows[:, 4] = rows[:, 7] = rng.integers(1, 240, n)
    rows[:, 8], rows[:, 10], rows[:, 11] = rng.integers(60, 200_000, n), rng.integers(0, 6, n), rng.integers(1, 258, n)
    path = folder / "made.swf"
    np.savetxt(path, rows, fmt="%d", header="UnixStartTime: 1027839845\nMaxProcs: 240", comments="; ")
    return path


def clock(rng: np.random.Generator, day: str, days: int, n: int) -> np.ndarray:
    """Sorted wall-clock times."""
    stamps = np.datetime64(day, "s") + np.sort(rng.integers(0, days * 86_400, n))
    return np.char.replace(stamps.astype("U19"), "T", " ")


def names(rng: np.random.Generator, stem: str, different: int, n: int) -> np.ndarray:
    """A name out of so many for each row."""
    return np.array([f"{stem}{i}" for i in range(different)])[rng.integers(0, different, n)]


MAKERS = {"philly_csv": philly_csv, "philly_json": philly_json, "helios_csv": helios_csv, "swf": swf}

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--read", name, path]:
            read_one(name, path)
        case ["--make", name, folder]:
            print(MAKERS[name](Path(folder)))
        case _:
            main()
