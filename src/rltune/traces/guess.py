"""A first column map for a CSV file, guessed from the names of its columns."""

import json
import re
from pathlib import Path

import pandas as pd

from rltune.config.trace import TIMES
from rltune.traces.raw import slurm_fields as slurm
from rltune.traces.raw.frame import parse_numbers
from rltune.traces.readers.csv import STATES, finer_unit

_NAMES: dict[str, str] = {  # `queue` is none: it may be a name or a wait
    "user": r"^(user|user[_ ]?(id|name)|uid|owner)$",
    "vc": r"^(vc|vc[_ ]?id|virtual[_ ]?cluster|partition|queue[_ ]?name|pool)$",
    "submit_s": r"^(submi(t|tted|ssion)([_ ]?(time|at|s|ts))?|creation[_ ]?time|created([_ ]?at)?|arrival([_ ]?time)?)$",
    "start_s": r"^(start(ed)?([_ ]?time|[_ ]?at|[_ ]?s)?|scheduled[_ ]?time)$",
    "end_s": r"^(end(ed)?([_ ]?time|[_ ]?at|[_ ]?s)?|finish(ed)?([_ ]?time|[_ ]?at)?|deletion[_ ]?time)$",
    "run_s": r"^(run[_ ]?(time)?([_ ]?s)?|duration([_ ]?s)?|elapsed(raw)?|run_(sum|span)_s)$",
    "requested_s": r"^(requested[_ ]?time|time[_ ]?limit(raw)?|limit|wall[_ ]?time|req(uest)?[_ ]?time)$",
    "gpus": r"^(gpus?|num[_ ]?gpus?|gpu[_ ]?(num|count)|n[_ ]?gpus?|req[_ ]?gpus)$",
    "cpus": r"^(cpus?|num[_ ]?cpus?|cpu[_ ]?(num|count|milli)|n?cpus|req[_ ]?cpus)$",
    "mem_gb": r"^(mem(ory)?([_ ]?(gb|mib|mb|gib))?|req[_ ]?mem)$",
    "gpu_type": r"^gpu[_ ]?(type|spec|model)$",
    "model": r"^model([_ ]?name)?$",
    "wait_s": r"^(wait([_ ]?time)?([_ ]?s)?|queue[_ ]?(time|s))$",
    "status": r"^(status|state|job[_ ]?state|pod[_ ]?phase)$",
    "run_clamped": r"^(run[_ ]?)?clamped.*$",
}
_JOB_ID = (r"^job[_ ]?id(raw)?$", "^id$", "^job$")
"""Names of a column of job ids, the surest first; not those of names, which users give several jobs."""
MOST_STATES = 20
"""States to list that are not known; of an own format, such as exit codes in words, there may be thousands."""
NOT_KNOWN = "unknown  # not known: say passed, failed, killed, running or not started; unknown ones are kept"
"""Comment next to a state whose meaning is not known."""
_UNITS = {
    "mem_gb": {"mib": "MiB", "gib": "GiB", "mb": "MB", "": "GB"},
    "requested_s": {"raw": "min"},
    "cpus": {"milli": "milli"},
}
"""Column → ending of the name of the file's column → its unit."""


def guess_map(table: pd.DataFrame, path: Path) -> str:
    """A YAML text for ``config/traces/NAME.yaml`` with what could be guessed, and comments on the rest."""
    found = guess_columns(list(map(str, table.columns)))
    lines = [
        "title: My cluster",
        "data: own",
        "format: csv",
        "time_zone: UTC  # zone of times without one",
        f"path: {quoted(str(path.resolve()))}",
        "columns:",
    ]
    for name, column in found.items():
        lines += entry(name, column, table[column])
    for needed in ("submit_s", "gpus", "run_s"):
        derived = needed == "run_s" and {"start_s", "end_s"} <= found.keys()
        if needed not in found and not derived:
            lines.append(f"  # {needed}: COLUMN   # needed, and not found")
    names = [str(c) for c in table.columns if c not in found.values()]
    unused = [n if n.isprintable() else json.dumps(n) for n in names]
    if unused:
        lines.append(f"# not used: {', '.join(unused)}")
    return "\n".join(lines)


def guess_columns(columns: list[str]) -> dict[str, str]:
    """Canonical column → column of the file, by name; each column of the file is used once, and a duration not where the
    times that it lies between are there, whose unit is surer."""
    found: dict[str, str] = {}
    for name, pattern in (*(("job_id", pattern) for pattern in _JOB_ID), *_NAMES.items()):
        for column in columns:
            unused = name not in found and column not in found.values()
            if unused and re.match(pattern, column.strip(), re.IGNORECASE):
                found[name] = column
    for name, times in (("run_s", {"start_s", "end_s"}), ("wait_s", {"submit_s", "start_s"})):
        if times <= found.keys():
            found.pop(name, None)
    return found


def entry(name: str, column: str, values: pd.Series) -> list[str]:
    """The lines of the map for a column of the job table, from the file's column and its values."""
    if name == "status":
        states = slurm.state(values.dropna().astype(str)).unique()
        known = {state: STATES[state.lower()] for state in states if state.lower() in STATES}
        others = dict.fromkeys([state for state in states if state not in known][:MOST_STATES], NOT_KNOWN)
        lines = ["  status:", f"    column: {quoted(column)}", "    map:"]
        return lines + [f"      {quoted(s)}: {(known | others)[s]}" for s in states if s in known | others]
    if name in TIMES and (finer := finer_unit(parse_numbers(values))):
        return [f"  {name}: {{column: {quoted(column)}, {finer[1]}}}  # {finer[0]} since 1970"]
    for end, unit in _UNITS.get(name, {}).items():
        if column.strip().lower().endswith(end):
            why = "  # Slurm's TimelimitRaw is in minutes" if unit == "min" else ""
            return [f"  {name}: {{column: {quoted(column)}, unit: {unit}}}{why}"]
    return [f"  {name}: {quoted(column)}"]


def quoted(text: str) -> str:
    """As YAML: quoted unless it is a plain word YAML takes for nothing else."""
    words = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
    plain = re.fullmatch(r"[A-Za-z_/][\w/.\-]*", text) and text.lower() not in words
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
