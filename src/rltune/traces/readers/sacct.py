r"""A Slurm cluster's own log: the text of ``sacct --parsable2`` (or ``--parsable``), plain or .gz, columns in any order.

Between the fields are ``|``, ``;``, tabs, or commas where fields that hold commas are quoted. Needed: JobID or JobIDRaw, Submit, State, a run time (ElapsedRaw, or
Elapsed, or Start and End), and one of AllocTRES, ReqTRES, AllocGRES, ReqGRES. Do not export JobName: a ``|`` in a name adds a
field, and the row is left out. What to run, as a user who may see all jobs (write the dates you want)::

    sacct --allusers --allocations --duplicates --parsable2 --starttime 2024-01-01 --endtime 2024-07-01 \
      --format=JobID,User,Partition,Submit,Start,End,ElapsedRaw,TimelimitRaw,State,NNodes,ReqCPUS,AllocCPUS,ReqMem,\
    ReqTRES,AllocTRES > jobs.txt

- **Times** are wall clock in the trace's ``time_zone``, or seconds since 1970 (SLURM_TIME_FORMAT=%s). The wait counts from
  the submission, including time spent waiting for dependencies. Durations are ``d-hh:mm:ss``, ``hh:mm:ss`` or ``mm:ss``, with
  or without fractions of a second. UNLIMITED, Partition_Limit and INVALID count as no limit, Unknown and None as no time.
- **GPUs** are those allocated, else those requested. ``gres/gpu=4`` is the total over entries such as ``gres/gpu:a100=4``;
  where only such entries are given, they are added up. With an unreadable entry, ``gres/gpu`` alone counts; noted. Old
  versions write ``gpu:tesla:2``, and ReqGRES counts per node. Jobs without GPUs are kept as CPU jobs, but left out where
  they have shards of a GPU (gres/shard), which have no size here.
- **The GPU type** is the *requested* one, if ReqTRES or ReqGRES is there, else the one allocated; a job that requested none
  may run on any. Several types mean any type; noted.
- **Memory**: 1G is 1,024³ bytes, no suffix is MiB, ``4Gn`` is per node, ``2Gc`` per CPU (old versions). Where AllocTRES has
  memory for no job, Slurm does not allocate it (SelectTypeParameters without ``_Memory``), and it is unknown: what Slurm
  reports as requested is then all the memory of some node.
- **Steps** (``123.batch``, ``123.0``) are parts of their job. **Array** tasks (``123_7``) and components of **heterogeneous**
  jobs (``123+0``) are jobs; a row for a range of tasks (``123_[8-20%4]``) has not started: left out.
- **Requeued** jobs have one row for each run (with --duplicates). Rows of the same id and user, all but the last REQUEUED,
  NODE_FAIL, PREEMPTED or BOOT_FAIL, are merged: the earliest submission, the sum of the run times, the rest from the last row.
  If the last row never started (cancelled while pending), its status is kept, but the rest is from the last row that ran. If
  the last row is pending or running, the job is left out. Any other repeated id is a reused number: the earliest
  submission stays.
- **States**: COMPLETED is passed; FAILED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY, BOOT_FAIL, DEADLINE failed; CANCELLED (also
  ``CANCELLED by 1000``), PREEMPTED, REVOKED, REQUEUED killed. Pending and running jobs (also SUSPENDED and the like), and
  those that ended before they started, are left out, each with its reason.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import GIGABYTES, TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw import slurm_fields as slurm
from rltune.traces.raw.archive import one_file, open_member
from rltune.traces.raw.csv_text import delimiter_of, first_line, missing_column, read_csv_text
from rltune.traces.raw.frame import numbers, parse_numbers, raw_frame, reasons
from rltune.traces.raw.times import wall_clock_to_unix

FORMAT = (
    "JobID,User,Partition,Submit,Start,End,ElapsedRaw,TimelimitRaw,State,NNodes,ReqCPUS,AllocCPUS,ReqMem,"
    "ReqTRES,AllocTRES"
)
COMMAND = (
    "sacct --allusers --allocations --duplicates --parsable2 --starttime 2024-01-01 --endtime 2024-07-01 "
    f"--format={FORMAT} > jobs.txt"
)
PATTERNS = ("*sacct*", "*.txt", "*.txt.gz")
GPUS = ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")
CPUS = ("AllocTRES", "AllocCPUS", "NCPUS", "ReqTRES", "ReqCPUS")
NODES = ("AllocTRES", "NNodes", "AllocNodes", "ReqTRES", "ReqNodes")
KNOWN = (*FORMAT.split(","), *"JobIDRaw,Elapsed,Timelimit,AllocNodes,ReqNodes,NCPUS,AllocGRES,ReqGRES".split(","))
STATUS = {
    "COMPLETED": "passed",
    **dict.fromkeys(("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"), "failed"),
    **dict.fromkeys(("CANCELLED", "PREEMPTED", "REVOKED", "REQUEUED"), "killed"),
}
RETRIED = ("REQUEUED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL")
"""States after which Slurm may run a job again."""
STILL_PENDING, STILL_RUNNING = "still pending when the log was written", "still running when the log was written"
CANCELLED_EARLY, ENDED_EARLY = "cancelled before it started", "ended before it started (not cancelled)"
UNFINISHED = "requeued, and not finished when the log was written"


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of a log written by sacct.

    Raises:
        DataError: no or several files, no header, a column missing, truncated or damaged.
    """
    log, where = _table(one_file(folder, PATTERNS, "the text sacct --parsable2 writes"), audit)
    job, rows = log["JobID"], len(log)
    state = slurm.state(log["State"].fillna("")).str.upper()
    submit = _time(log["Submit"], "Submit", trace, where, audit)
    start = _time(log["Start"], "Start", trace, where, audit, submit)
    run = _run(log, trace, start, where, audit)
    audit.note("component of a heterogeneous job, taken as a job of its own", job.str.contains("+", regex=False).sum())
    range_ = job.str.contains("[", regex=False, na=False).to_numpy()
    has_start = ~log["Start"].isna().all()  # a log without the column cannot say that a job never started
    early = (has_start & np.isnan(start)) | (run == 0)
    cpus, nodes = _amount(log, "cpu", CPUS), np.fmax(_amount(log, "node", NODES), 1.0)
    gpus, kind, shard = _gpus(log, nodes, audit)
    limit = _duration(log, "TimelimitRaw", "Timelimit", 60, audit)
    audit.note("without a time limit of its own: no estimate", np.isnan(limit).sum())
    columns = {
        "job_id": job,
        "user": log["User"],
        "vc": log["Partition"],
        "submit_unix_s": submit,
        "run_s": run,
        "requested_s": limit,
        "resource": np.where(gpus > 0, "gpu", "cpu"),
        "gpus": gpus,
        "cpus": cpus,
        "mem_gb": _memory_mib(log, nodes, cpus, audit) * GIGABYTES["MiB"],
        "gpu_type": kind,
        "wait_s": start - submit,
        "status": state.map(STATUS),
        "unusable": reasons(
            rows,
            ("range of array tasks that have not started", range_),
            (STILL_PENDING, state.isin(slurm.WAITING)),
            (STILL_RUNNING, state.isin(slurm.RUNNING)),
            (CANCELLED_EARLY, (state == "CANCELLED").to_numpy() & early),
            (ENDED_EARLY, has_start & np.isnan(start)),
            ("asks for shards of a GPU (gres/shard), whose size the log does not say", shard),
        ),
    }
    return _one_row_per_job(raw_frame(columns, rows), state, audit)


def is_quoted(header: str) -> bool:
    """Whether fields may be in quotes: where they hold commas, and where the header's are."""
    return delimiter(header) != "|" or header.lstrip().startswith('"')


def _table(path: Path, audit: Audit) -> tuple[pd.DataFrame, str]:
    """The rows of jobs as text, with all columns of :data:`KNOWN` (null where the file has none), and its name."""
    header, where = first_line(path)
    between = delimiter(header) or "|"
    names = [name.strip().strip('"') for name in header.split(between)]
    if not {"JobID", "JobIDRaw"} & set(names):
        raise DataError(
            f"{where}: the first line is {header[:80]!r}; expected the header of sacct --parsable2, with JobID, Submit "
            f"and State between | signs (not --noheader). Make the file with: {COMMAND}"
        )
    _needed(names, where)
    with open_member(path, path.name) as (stream, _):
        log = read_csv_text(stream, where, audit, needed=dict.fromkeys(KNOWN), quoted=is_quoted(header))
    if log.empty and between == ",":
        raise DataError(
            f"{where}: no row has the {len(names)} fields of the header, since what AllocTRES and ReqTRES hold "
            f"has commas itself; give --parsable2 in the place of --delimiter=, : {COMMAND}"
        )
    log = log.reindex(columns=list(KNOWN)).astype("str").apply(slurm.without_placeholders)
    log["JobID"] = (log["JobID"] if "JobID" in names else log["JobIDRaw"]).fillna("")
    step = log["JobID"].str.contains(".", regex=False)
    audit.leave_out("step of a job (123.batch, 123.0, …): part of its job", step.sum())
    if step.all():
        raise DataError(f"{where}: no jobs in rows of {len(names)} fields; expected the text of: {COMMAND}")
    return log[~step].reset_index(drop=True), where


def delimiter(header: str) -> str | None:
    """What stands between the names of sacct's header; None where it is not sacct's.

    With another sign than sacct's, any other table may have the same names: a column of GPUs has to be there.
    """
    sign = delimiter_of(header)
    names = {name.strip().strip('"') for name in header.split(sign)}
    jobs = "State" in names and names & {"JobID", "JobIDRaw"}
    return sign if jobs and (sign == "|" or names & set(GPUS)) else None


def _needed(names: list[str], where: str) -> None:
    """Refuse a header that lacks a column without which there are no jobs."""
    hint, found = f"Make the file with: {COMMAND}", f"found {', '.join(names)}"
    for name, purpose in (("Submit", "the submission"), ("State", "how the job ended")):
        if name not in names:
            raise DataError(f"{missing_column(where, name, purpose, names)} {hint}")
    if not {"ElapsedRaw", "Elapsed"} & set(names) and not {"Start", "End"} <= set(names):
        raise DataError(f"{where}: no run time: needs ElapsedRaw, Elapsed, or Start and End; {found}. {hint}")
    if not set(GPUS) & set(names):
        raise DataError(f"{where}: no GPUs: needs one of {', '.join(GPUS)}; {found}. {hint}")


def _time(
    text: pd.Series, what: str, trace: TraceConfig, where: str, audit: Audit, after: np.ndarray | None = None
) -> np.ndarray:
    """Seconds since 1970 UTC, from wall clock or numbers; null where Slurm says Unknown or None."""
    if np.isfinite(parse_numbers(text)).sum() * 2 >= max(text.notna().sum(), 1):
        return numbers(text, what, audit)
    return wall_clock_to_unix(text, trace.time_zone, what, audit, after, where)


def _duration(log: pd.DataFrame, raw: str, clock: str, unit_s: float, audit: Audit) -> np.ndarray:
    """The number in column ``raw`` times its unit, else what ``clock`` has as ``[d-]hh:mm:ss``, in seconds."""
    number, found = numbers(log[raw], raw, audit) * unit_s, slurm.seconds(log[clock])
    audit.note(f"{clock} not a duration", (np.isnan(found) & log[clock].notna().to_numpy()).sum())
    return np.where(np.isnan(number), found, number)


def _run(log: pd.DataFrame, trace: TraceConfig, start: np.ndarray, where: str, audit: Audit) -> np.ndarray:
    """ElapsedRaw, else Elapsed, else End − Start, seconds."""
    run = _duration(log, "ElapsedRaw", "Elapsed", 1, audit)
    span = _time(log["End"], "End", trace, where, audit, start) - start
    audit.note("run time from End − Start, as Elapsed is empty", (np.isnan(run) & np.isfinite(span)).sum())
    return np.where(np.isnan(run), span, run)


def _amount(log: pd.DataFrame, resource: str, columns: tuple[str, ...]) -> np.ndarray:
    """The first amount given: of the resource in TRES lists, of plain numbers (perhaps with a suffix, ``2K``)."""
    texts = ((log[name] if name.endswith("TRES") else f"{resource}=" + log[name]) for name in columns)
    return _first([slurm.tres(text, resource, slurm.PLAIN) for text in texts])


def _gpus(log: pd.DataFrame, nodes: np.ndarray, audit: Audit) -> tuple[np.ndarray, pd.Series, np.ndarray]:
    """GPUs of each job, the type it names, and whether it asks for shards instead."""
    counts, types, several, odd = zip(*(slurm.gpus_of(log[name]) for name in GPUS))
    (allocated, requested, old, per_node), (type_a, type_r, type_old, type_node) = counts, types
    audit.note("GPUs with an entry that cannot be read: gres/gpu alone counts", np.any(odd, axis=0).sum())
    gpus = np.nan_to_num(_first([allocated, old, requested, per_node * nodes]), nan=0.0)
    asked = type_r.fillna(type_node)
    if log["ReqTRES"].isna().all() and log["ReqGRES"].isna().all():
        asked = type_a.fillna(type_old)
        audit.note("GPU type is the one allocated, as the one requested is not in the log", asked.notna().sum())
    mixed = np.any(several, axis=0)
    audit.note("GPUs of several types: any type", mixed.sum())
    shards = np.fmax(*(slurm.tres(log[name], "gres/shard", slurm.PLAIN) for name in ("AllocTRES", "ReqTRES")))
    return gpus, asked.mask(mixed | (gpus == 0)), (gpus == 0) & (shards > 0)


def _memory_mib(log: pd.DataFrame, nodes: np.ndarray, cpus: np.ndarray, audit: Audit) -> np.ndarray:
    text = log["ReqMem"]
    asked = slurm.req_mem_mib(text, nodes, cpus)
    unread = np.isnan(asked) & text.notna().to_numpy() & ~text.str.endswith("c", na=False).to_numpy()
    audit.note("ReqMem not an amount of memory", unread.sum())
    held = slurm.tres(log["AllocTRES"], "mem", slurm.MIB)
    if log["AllocTRES"].notna().any() and np.isnan(held).all():
        audit.note("memory not known: Slurm hands none out here", len(log))
        return held
    return _first([held, slurm.tres(log["ReqTRES"], "mem", slurm.MIB), asked])


def _first(found: list[np.ndarray]) -> np.ndarray:
    """The first of several columns that has a positive value, else the first that has one at all."""
    result = found[0]
    for values in found[1:]:
        result = np.where(np.isnan(result) | ((result == 0) & (values > 0)), values, result)
    return result


def _one_row_per_job(rows: pd.DataFrame, state: pd.Series, audit: Audit) -> pd.DataFrame:
    """Runs of a requeued job put together: the last row, with the earliest submission and the summed run time.

    Rows are of one job where all but the last ended in one of :data:`RETRIED`. Where the last row never started, the
    last that ran stands for it, with the last one's status; where it is pending or running, the job is left out.

    Args:
        rows: raw columns, one row a line of the log.
        state: each row's state, in capitals, without a remark.
        audit: gets the rows put together with others.
    """
    ids = rows["job_id"]
    again = ids.duplicated(keep=False) & (ids != "")
    if not again.any():
        return rows
    part = rows[again].assign(retried=state[again].isin(RETRIED), owner=rows["user"].fillna(""))
    # In the order of their runs; sacct writes them in it, so equal submissions keep the file's order.
    part = part.sort_values("submit_unix_s", kind="stable")
    job = part.groupby(["job_id", "owner"], sort=False).ngroup()
    last = ~job.duplicated(keep="last")
    whole = (part["retried"] | last).groupby(job).transform("all") & job.duplicated(keep=False)
    keep = whole & _kept_row(part, job, last)
    first_submit = part["submit_unix_s"].groupby(job).transform("min")
    start = part["submit_unix_s"] + part["wait_s"].where(part["wait_s"] >= 0)
    first_start = start.groupby(job).transform("min")
    total = part["run_s"].groupby(job).transform("sum")
    chosen = part.index[keep]
    rows.loc[chosen, "status"] = part["status"].groupby(job).transform("last")[chosen]
    rows.loc[chosen, "run_s"] = total[chosen].where(rows.loc[chosen, "run_s"].notna() & np.isfinite(total[chosen]))
    rows.loc[chosen, "wait_s"] = (first_start - first_submit)[chosen].clip(lower=0)
    rows.loc[chosen, "submit_unix_s"] = first_submit[chosen]
    unfinished = chosen[rows.loc[chosen, "unusable"].isin([STILL_PENDING, STILL_RUNNING])]
    rows.loc[unfinished, "unusable"] = UNFINISHED
    audit.leave_out("earlier run of a requeued job: put together with its last", (whole & ~last & ~keep).sum())
    audit.leave_out(
        "requeued job ended before it ran again: put together with its last run", (whole & last & ~keep).sum()
    )
    audit.note("requeued job, run time is the sum of its runs", len(chosen) - len(unfinished))
    return rows.drop(index=part.index[whole & ~keep]).reset_index(drop=True)


def _kept_row(part: pd.DataFrame, job: pd.Series, last: pd.Series) -> pd.Series:
    """Which row of each requeued job stays: its last, or the last that ran where the last never started."""
    never = (last & part["unusable"].isin([CANCELLED_EARLY, ENDED_EARLY])).groupby(job).transform("any")
    ran = part["unusable"].isna() & (part["run_s"] > 0) & never
    last_ran = ran & ~job[ran].duplicated(keep="last").reindex(part.index, fill_value=True)
    return last_ran | (last & ~ran.groupby(job).transform("any"))
