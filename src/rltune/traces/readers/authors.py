"""The paper's authors' own CSVs (``<Trace>_Formatted_withGPUType.csv``): no header, −1 for unknown, columns counted from 0.

A file of 19 columns is read as the variant ``readme``, as the files' description says (17 virtual cluster, 18 GPU type),
one of 20 as ``reader``, as their programs for Helios and Philly read them (18 and 19). The audit names the variant; the
trace's ``part`` (readme or reader) overrules it: of a ``readme`` file a 20th column is ignored.

- Times are on the file's own clock; whether dates and hours mean something depends on the file.
- Memory is GB for the whole job. Status as in SWF: 1 passed, 0 failed, 5 killed; others unknown.
- GPU types: 0 T4, 1 MISC, 2 P100, 3 V100 (16 GB), 4 V100M32 (32 GB); other values are kept and noted.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import one_file, open_member
from rltune.traces.raw.csv_text import first_line, read_csv_text
from rltune.traces.raw.frame import numbers, raw_frame
from rltune.traces.readers.swf import STATUS

COMMON = (
    "job_id,submit_time,wait_time,run_time,num_gpus,cpu_time,used_memory,request_cpus,request_time,"
    "request_memory,status,user_id,group_id,executable,queue,partition,preceding_job"
).split(",")
VARIANTS = {"readme": [*COMMON, "vc_id", "gpu_type"], "reader": [*COMMON, "unnamed", "vc_id", "gpu_type"]}
PATTERNS = ("*_Formatted_withGPUType.csv", "*_Formatted_withGPUType.csv.gz")
GPU_TYPES = {"0": "T4", "1": "MISC", "2": "P100", "3": "V100", "4": "V100M32"}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of one of the authors' CSVs.

    Raises:
        DataError: no or several files, neither 19 nor 20 columns, a header row, truncated or damaged.
    """
    path = one_file(folder, PATTERNS, "one of the authors' formatted CSVs")
    variant, names = _variant(*first_line(path), trace.part)
    with open_member(path, path.name) as (stream, where):
        table = read_csv_text(stream, where, audit, names=names)
    rows = len(table)
    if not rows:
        raise DataError(f"{where}: no rows with {len(names)} columns; expected the authors' CSV without a header.")
    why = "as the configuration says" if trace.part else f"as it has {len(names)} columns"
    vc_at, type_at = names.index("vc_id"), names.index("gpu_type")
    audit.note(f"read in the {variant} variant (column {vc_at} virtual cluster, {type_at} GPU type), {why}", rows)

    def known(name: str) -> np.ndarray:
        values = numbers(table[name], name, audit, where)
        return np.where(values == -1, np.nan, values)

    kind = _text(table["gpu_type"])
    audit.note("GPU type not one of the five codes: taken as it is", (~kind.isin(list(GPU_TYPES)) & kind.notna()).sum())
    columns = {
        "job_id": table["job_id"],
        "user": _text(table["user_id"]),
        "vc": _text(table["vc_id"]),
        "submit_unix_s": known("submit_time"),
        "run_s": known("run_time"),
        "requested_s": known("request_time"),
        "gpus": known("num_gpus"),
        "cpus": known("request_cpus"),
        "mem_gb": known("request_memory"),
        "gpu_type": kind.replace(GPU_TYPES),
        "wait_s": known("wait_time"),
        "status": pd.Series(known("status")).map(STATUS),
    }
    return raw_frame(columns, rows)


def _variant(line: str, where: str, part: str | None) -> tuple[str, list[str]]:
    """(variant, column names of the file) by the number of fields in its first line, unless ``part`` names the variant."""
    if not line:
        raise DataError(f"{where}: the file is empty; expected CSV rows. Obtain the file again.")
    if line.split(",")[0].strip().strip('"').lower() in ("job_id", "jobid", "job_number"):
        raise DataError(f"{where}: has a header row; the authors' CSVs have none. Read it as format csv.")
    fields = line.count(",") + 1
    by_fields = {len(names): name for name, names in VARIANTS.items()}
    variant = part or by_fields.get(fields, "")
    if fields not in by_fields or len(VARIANTS[variant]) > fields:
        expected = " or ".join(f"{n} ({name})" for n, name in by_fields.items())
        asked = f", and `part: {part}` asks for {len(VARIANTS[part])}" if part else ""
        raise DataError(f"{where}: the first row has {fields} fields; expected {expected}{asked}.")
    names = VARIANTS[variant]
    return variant, names + ["surplus"] * (fields - len(names))


def _text(values: pd.Series) -> pd.Series:
    """Names, where −1 is unknown."""
    text = values.str.strip().str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)
    return text.mask(text.isin(["-1", ""]))
