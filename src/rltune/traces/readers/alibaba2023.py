"""Alibaba GPU cluster 2023 (``openb``): ``openb_pod_list_<variant>.csv`` with a header, one row a pod.

A folder with several variants needs the trace's ``part`` (``default``, ``gpuspec33``, …).

- Submission is the creation, the wait scheduled − creation, the run time deletion − scheduled. The clock starts at 0:
  dates, hours and weekdays mean nothing.
- ``gpu_milli`` is each pod's share of a GPU in thousandths, under 1,000 only where ``num_gpu`` is 1. ``num_gpu`` 0: left
  out.
- ``gpu_spec`` lists alternatives, ``V100M16|V100M32``; it is empty in ``default``.
- Succeeded is passed, Failed failed. Pending pods never ran: left out. Running pods, the majority, are left out: how they
  ended is not known.
- ``qos`` (LS, BE, Burstable, Guaranteed) ranks pods on one node and is not used; ``sla`` is false.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import GIGABYTES, TraceConfig
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import one_file, open_member
from rltune.traces.raw.csv_text import read_csv_text
from rltune.traces.raw.frame import numbers, raw_frame, reasons

COLUMNS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
).split(",")
STATUS = {"Succeeded": "passed", "Failed": "failed"}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of a pod list.

    Raises:
        DataError: no or several pod lists, a column missing, or the file truncated or damaged.
    """
    variant = f"_{trace.part}" if trace.part else "*"
    patterns = (f"openb_pod_list{variant}.csv", f"openb_pod_list{variant}.csv.gz")
    path = one_file(folder, patterns, "a pod list of cluster-trace-gpu-v2023")
    with open_member(path, path.name) as (stream, where):
        pods = read_csv_text(stream, where, audit, needed=dict.fromkeys(COLUMNS, "of the pod list's layout"))
    text = {name: pods.pop(name) for name in ("name", "gpu_spec", "qos", "pod_phase")}
    amount = {name: numbers(pods[name], name, audit, where) for name in COLUMNS if name not in text}
    deleted, scheduled = amount["deletion_time"], amount["scheduled_time"]
    phase = text["pod_phase"]
    columns = {
        "job_id": text["name"],
        "submit_unix_s": amount["creation_time"],
        "run_s": deleted - scheduled,
        "gpus": amount["num_gpu"] * amount["gpu_milli"] / 1000,
        "cpus": amount["cpu_milli"] / 1000,
        "mem_gb": amount["memory_mib"] * GIGABYTES["MiB"],
        "gpu_type": text["gpu_spec"],
        "wait_s": scheduled - amount["creation_time"],
        "status": phase.map(STATUS),
        "unusable": reasons(
            len(pods),
            ("never scheduled (phase Pending)", (phase == "Pending").to_numpy() | np.isnan(scheduled)),
            ("last seen running, its end not known (phase Running)", (phase == "Running").to_numpy()),
            ("CPU pod (num_gpu 0)", amount["num_gpu"] == 0),
        ),
    }
    return raw_frame(columns, len(pods))
