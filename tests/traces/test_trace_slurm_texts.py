"""Logs in a wrong form: what they are is said, with the command for the right one; other separators are read."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from rltune.config import TraceConfig
from rltune.errors import DataError
from rltune.traces.clean import clean_trace
from rltune.traces.inspect import inspect_file, suggested
from rltune.traces.readers.sacct import FORMAT

HEADER = FORMAT.replace(",", "|")
ROWS = [
    f"{i}|ann|gpu|2024-01-03T00:0{i}:00|2024-01-03T00:0{i}:10|2024-01-03T01:0{i}:10|3600|120|{state}|1|8|8|64G|"
    f"cpu=8,gres/gpu=2,mem=64G,node=1|cpu=8,gres/gpu=2,mem=64G,node=1"
    for i, state in enumerate(["COMPLETED", "CANCELLED by 1007", "OUT_OF_MEMORY"], 1)
]
SACCT = "\n".join([HEADER, *ROWS]) + "\n"
SQUEUE = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n                12       gpu     wrap      ann  R       0:10      1 n1\n"
PADDED = "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n------------ ---------- ---------- ---------- ---------- ---------- -------- \n12                 wrap        gpu                     8  COMPLETED      0:0 \n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (SQUEUE, ["squeue", "wait or run now"]),
        (
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\ngpu*         up   infinite      2    mix n[1-2]\n",
            ["sinfo", "--nodes"],
        ),
        ("NodeName=n1 Arch=x86_64 CoresPerSocket=16\n   CPUAlloc=8 CPUTot=64\n", ["scontrol show nodes", "--nodes"]),
        ("JobId=12 JobName=wrap\n   UserId=ann(1000)\n", ["scontrol show job"]),
        (PADDED, ["table for the eye", "--parsable2"]),
        ("\n".join(ROWS), ["without its header line", f"put the line {HEADER} before it"]),
        ("12|ann|2024-01-03T00:00:00|COMPLETED|8\n", ["without its header line", "--noheader"]),
    ],
)
def test_what_is_no_log_is_named(text: str, parts: list[str], tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text)
    for look in (suggested, inspect_file):
        with pytest.raises(DataError) as found:
            look(path)
        for part in ["jobs.txt: this is", "sacct --allusers --allocations --duplicates --parsable2", *parts]:
            assert part in str(found.value), found.value


def written(folder: Path, sign: str) -> Path:
    """The log with another sign between its fields; quoted where a field holds it."""
    out = io.StringIO()
    csv.writer(out, delimiter=sign, lineterminator="\n").writerows(line.split("|") for line in SACCT.splitlines())
    path = folder / "jobs.txt"
    path.write_text(out.getvalue())
    return path


def cleaned(path: Path) -> object:
    found, _ = suggested(path)
    assert found.format == "sacct" and len(found.table) == 3
    return clean_trace("x", TraceConfig(title="x", data="own", format="sacct", path=str(path)), path).jobs


@pytest.mark.parametrize("sign", [";", "\t", ","])
def test_another_sign_between_the_fields_makes_no_difference(sign: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text(SACCT)
    ours, theirs = cleaned(written(tmp_path, sign)), cleaned(plain)
    assert ours.equals(theirs) and list(theirs["status"]) == ["passed", "killed", "failed"]


def test_bare_commas_inside_and_between_fields_cannot_be_distinguished(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT.replace("|", ","))
    with pytest.raises(DataError, match="has commas itself; give --parsable2"):
        clean_trace("x", TraceConfig(title="x", data="own", format="sacct", path=str(path)), path)


def test_a_table_of_ones_own_with_the_same_names_stays_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "JobID,State,Submit,Start,End,gpus\n1,COMPLETED,2024-01-03 00:00:00,2024-01-03 00:01:00,2024-01-03 00:09:00,2\n"
    )
    assert suggested(path)[0].format == "csv"
