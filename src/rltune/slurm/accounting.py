"""What Slurm's accounting (sacct, slurmdbd) says became of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rltune.errors import SlurmError
from rltune.slurm import gres
from rltune.slurm.values import Fault, count, expand, moment

FIELDS = ("JobIDRaw", "Submit", "Start", "End", "NodeList", "ReqTRES", "State", "JobName")
"""The name last: a user may have put the separator into it."""
ENVIRONMENT = ("env", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0")
UNFINISHED = frozenset({"PENDING", "RUNNING", "REQUEUED", "RESIZING", "SUSPENDED"})


@dataclass(frozen=True)
class Account:
    """One job in the accounts."""

    id: int
    name: str
    state: str
    """Its state's first word: COMPLETED, TIMEOUT, CANCELLED, ..."""
    submit_s: float
    """Times: s since 1970, whole seconds; None where it has not happened."""
    start_s: float | None
    end_s: float | None
    nodes: tuple[str, ...]
    """Nodes it had; empty where it never ran."""
    gpus: int
    """GPUs it asked for, over all nodes. A job that has its nodes for itself is allocated all of theirs."""

    @property
    def ended(self) -> bool:
        """Whether it has run and is over."""
        return self.start_s is not None and self.end_s is not None and self.state not in UNFINISHED


def command(ids: Iterable[int]) -> list[str]:
    """The command whose answer :func:`read` takes apart, for these jobs of all users."""
    jobs = ",".join(str(job) for job in ids)
    return [*ENVIRONMENT, "sacct", "--allusers", "--allocations", "--noheader", "--parsable2", f"--jobs={jobs}",
            f"--format={','.join(FIELDS)}"]  # fmt: skip


def read(text: str) -> dict[int, Account]:
    """Jobs by their ids. Raises SlurmError that names the line and the field that cannot be read."""
    found = {}
    for k, line in enumerate(filter(None, text.splitlines()), 1):
        values = line.split("|", len(FIELDS) - 1)
        if len(values) != len(FIELDS):
            raise SlurmError(f"sacct, line {k}: found {len(values)} fields in {line[:80]!r}, expected {len(FIELDS)}: "
                             f"{', '.join(FIELDS)}")  # fmt: skip
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
    state = row["State"].split(" ")[0]
    nodes = () if row["NodeList"] == "None assigned" else expand(row["NodeList"], "NodeList")
    return Account(
        count(row["JobIDRaw"], "JobIDRaw"), row["JobName"], state, submit_s, moment(row["Start"], "Start"),
        moment(row["End"], "End"), nodes, sum(gres.gpus(row["ReqTRES"], "ReqTRES").values()),
    )  # fmt: skip
