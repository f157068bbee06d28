"""Running jobs of each pool in the order of their expected ends.

Two lists a pool: ``due``, jobs within their estimate, by the end it names; ``late``, jobs past it, by start. A late
job is expected to run as long again as it has so far, so of two late jobs the one that started later is expected to
end earlier, whatever the time: neither list has to be sorted again.
"""

import numpy as np

from rltune.kernels import inlined, inner_kernel
from rltune.simulator.config import DOUBLE

DUE, LATE = np.False_, np.True_


@inlined
def _key(run, job, late):
    return run[job].start if late else run[job].due


@inner_kernel
def _index(row, run, late, at, n, job):
    """Where ``job`` stands, or would, in a span sorted by (due end or start, job)."""
    key = _key(run, job, late)
    lo, hi = at, at + n
    while lo < hi:
        mid = (lo + hi) >> 1
        other = row[mid]
        value = _key(run, other, late)
        if value < key or (value == key and other < job):
            lo = mid + 1
        else:
            hi = mid
    return lo


@inner_kernel
def _insert(row, run, late, at, n, job):
    lo = _index(row, run, late, at, n, job)
    for i in range(at + n, lo, -1):
        row[i] = row[i - 1]
    row[lo] = job


@inner_kernel
def _remove(row, run, late, at, n, job):
    """Take a job out; how far the span's beginning moves."""
    lo = _index(row, run, late, at, n, job)
    if lo == at:
        return 1
    for i in range(lo, at + n - 1):
        row[i] = row[i + 1]
    return 0


@inner_kernel
def add_running(seq, p, job):
    """A job of pool ``p`` has started; its ``due`` is set."""
    ends = seq.ends[p]
    _insert(seq.due, seq.run, DUE, ends.due_at, ends.due_len, job)
    ends.due_len += 1


@inner_kernel
def move_running(seq, p, job, due):
    """Give a job within its estimate another end by it."""
    ends = seq.ends[p]
    lo = _index(seq.due, seq.run, DUE, ends.due_at, ends.due_len, job)
    for i in range(lo, ends.due_at + ends.due_len - 1):
        seq.due[i] = seq.due[i + 1]
    seq.run[job].due = due
    _insert(seq.due, seq.run, DUE, ends.due_at, ends.due_len - 1, job)


@inner_kernel
def drop_running(seq, p, job):
    """A job of pool ``p`` has ended."""
    ends = seq.ends[p]
    if seq.run[job].late:
        ends.late_at += _remove(seq.late, seq.run, LATE, ends.late_at, ends.late_len, job)
        ends.late_len -= 1
    else:
        ends.due_at += _remove(seq.due, seq.run, DUE, ends.due_at, ends.due_len, job)
        ends.due_len -= 1


@inner_kernel
def update_late_jobs(seq, p):
    """Move jobs that have reached the end of their estimate from one list to the other."""
    ends = seq.ends[p]
    while ends.due_len > 0:
        job = seq.due[ends.due_at]
        if seq.run[job].due > seq.status.now:
            return
        ends.due_at += 1
        ends.due_len -= 1
        seq.run[job].late = True
        _insert(seq.late, seq.run, LATE, ends.late_at, ends.late_len, job)
        ends.late_len += 1


@inner_kernel
def next_release(seq, p, overrun, due, late):
    """(Job, its expected end) that comes next when ``due`` and ``late`` jobs of the two lists are gone, (−1, inf) for none, and how
    many are gone after it. The late ones go from the end of their list, the latest start first."""
    ends, now = seq.ends[p], seq.status.now
    best, time = -1, np.inf
    if due < ends.due_len:
        best = seq.due[ends.due_at + due]
        time = seq.run[best].due
    if late < ends.late_len:
        job = seq.late[ends.late_at + ends.late_len - 1 - late]
        expected = now + (now - seq.run[job].start) if overrun == DOUBLE else now
        if expected <= time:
            return job, expected, due, late + 1
    return best, time, due + 1, late
