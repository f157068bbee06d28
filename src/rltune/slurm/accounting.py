"""What Slurm's accounting (sacct, slurmdbd) says became of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rltune.errors import SlurmError
from rltune.slurm.resources import gpus as gpus_of
from rltune.slurm.values import Fault, count, expand, moment

FIELDS = (
    "JobIDRaw",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "Account",
    "NodeList",
    "ReqTRES",
    "AllocTRES",
    "State",
    "JobName",
)
"""The name last: a user may have put the separator into it."""
ENVIRONMENT = ("env", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0")
UNFINISHED = frozenset({"PENDING", "RUNNING", "COMPLETING", "REQUEUED", "RESIZING", "SUSPENDED"})


@dataclass(frozen=True)
class Account:
    """One job in the accounts."""

    id: int
    name: str
    state: str
    """Its state's first word: COMPLETED, TIMEOUT, CANCELLED, ..."""
    submit_s: float
    """Times: s since 1970, whole seconds; None where it has not happened."""
    eligible_s: float | None
    start_s: float | None
    end_s: float | None
    account: str
    nodes: tuple[str, ...]
    """Nodes it had; empty where it never ran."""
    gpus: int
    """GPUs it asked for, over all nodes."""
    held_gpus: int
    """GPUs it was given; a job that has its nodes for itself is given all of overridden. 0 where it never ran."""

    @property
    def ended(self) -> bool:
        """Whether it has run and is over."""
        return self.start_s is not None and self.end_s is not None and self.state not in UNFINISHED


def command(ids: Iterable[int] | None = None) -> list[str]:
    """The command whose answer :func:`read` takes apart, for these jobs of all users; None: every job there is."""
    which = "--starttime=2000-01-01" if ids is None else f"--jobs={','.join(str(job) for job in ids)}"
    return [
        *ENVIRONMENT,
        "sacct",
        "--allusers",
        "--allocations",
        "--noheader",
        "--parsable2",
        which,
        f"--format={','.join(FIELDS)}",
    ]


def read(text: str) -> dict[int, Account]:
    """Jobs by their ids. Raises SlurmError that names the line and the field that cannot be read."""
    found = {}
    for k, line in enumerate(filter(None, text.splitlines()), 1):
        values = line.split("|", len(FIELDS) - 1)
        if len(values) != len(FIELDS):
            raise SlurmError(
                f"sacct, line {k}: found {len(values)} fields in {line[:80]!r}, expected {len(FIELDS)}: "
                f"{', '.join(FIELDS)}"
            )
        try:
            job = _account(dict(zip(FIELDS, values, strict=True)))
        except Fault as fault:
            raise SlurmError(f"sacct, line {k} (job {values[0]}): {fault}") from None
        found[job.id] = job
    return found


def _account(row: dict[str, str]) -> Account:
    submit_s = moment(row["Submit"], "Submit")
    if submit_s is None:
        raise Fault(f"Submit: found {row['Submit']!r}, expected s since 1970")
    eligible_s, start_s, end_s = (moment(row[name], name) for name in ("Eligible", "Start", "End"))
    nodes = () if row["NodeList"] == "None assigned" else expand(row["NodeList"], "NodeList")
    asked, held = (sum(gpus_of(row[name], name).values()) for name in ("ReqTRES", "AllocTRES"))
    return Account(
        count(row["JobIDRaw"], "JobIDRaw"),
        row["JobName"],
        row["State"].split(" ")[0],
        submit_s,
        eligible_s,
        start_s,
        end_s,
        row["Account"],
        nodes,
        asked,
        held,
    )
