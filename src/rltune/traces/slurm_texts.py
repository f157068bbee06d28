"""Texts of Slurm's commands that are taken for a job log and are none, or cannot be read as one: what each is, and how to
get the log."""

from __future__ import annotations

import re

from rltune.traces.readers.sacct import COMMAND, FORMAT, RUNNING, STATUS, WAITING

QUEUE_ONLY = {"ST", "NODELIST(REASON)", "REASON", "TIME_LEFT"}
"""Columns that squeue has and no log."""
_ID, _TIME = re.compile(r"\d+([_+]\S*)?(\.\w+)?"), re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_STATES = {*STATUS, *WAITING, *RUNNING}


def mistaken(lines: list[str]) -> str | None:
    """What a text with these first lines is instead of a job log, and what to do; None where it is no such text."""
    shown = [line.strip() for line in lines if line.strip()][:2]
    if not shown:
        return None
    first, log = shown[0], f"a log of ended jobs is made with: {COMMAND}"
    words = set(re.split(r"[|;,\s]+", first))
    blanks = not re.search(r"[|;,\t]", first)
    if first.startswith("NodeName="):
        return f"a list of nodes (scontrol show nodes), which `rltune init` takes as --nodes; {log}"
    if first.startswith("JobId="):
        return f"jobs of now (scontrol show job), not those that have ended; {log}"
    if "JOBID" in words and (blanks or words & QUEUE_ONLY):
        return f"squeue's list of the jobs that wait or run now, not of those that have ended; {log}"
    if "NODELIST" in words and words & {"PARTITION", "AVAIL", "STATE", "CPUS", "GRES"}:
        return f"sinfo's list of nodes, which `rltune init` takes as --nodes; {log}"
    if {"JobID", "State"} <= words and blanks and len(shown) > 1 and not shown[1].strip("- "):
        return f"sacct's table for the eye, whose columns are cut off; {log}"
    fields = [field.strip() for field in re.split(r"[|;,\t]", first)]
    if (
        any(map(_ID.fullmatch, fields))
        and any(map(_TIME.fullmatch, fields))
        and any(field.split(" ")[0] in _STATES for field in fields)
    ):
        return _headerless(first, log)
    return None


def _headerless(first: str, log: str) -> str:
    text = "sacct's text without its header line, so that nobody knows which column is which"
    if len(first.removesuffix("|").split("|")) != len(FORMAT.split(",")):
        return f"{text} (it was made with --noheader, or the line was lost); {log}"
    header = FORMAT.replace(",", "|")
    return f"{text}. If its columns are those of the command below, put the line {header} before it; {log}"
