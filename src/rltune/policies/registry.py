"""The one list of base policies: name → number in the compiled simulator."""

from __future__ import annotations

from numba import njit

from rltune.policies import f1, fifo, saf, sjf, wfp3

_fifo, _sjf, _saf, _f1, _wfp3 = fifo.score, sjf.score, saf.score, f1.score, wfp3.score

IDS: dict[str, int] = {"fifo": 0, "sjf": 1, "saf": 2, "f1": 3, "wfp3": 4}

TITLES: dict[str, str] = {"fifo": "FIFO", "sjf": "SJF", "saf": "SAF", "f1": "F1", "wfp3": "WFP3"}
"""Names as tables and figures print them."""


@njit(cache=True)
def compiled_score(policy, submit_s, estimate_s, gpus, wait_s):
    """Score of one job under the policy of this number; lower goes first."""
    if policy == 0:
        return _fifo(submit_s, estimate_s, gpus, wait_s)
    if policy == 1:
        return _sjf(submit_s, estimate_s, gpus, wait_s)
    if policy == 2:
        return _saf(submit_s, estimate_s, gpus, wait_s)
    if policy == 3:
        return _f1(submit_s, estimate_s, gpus, wait_s)
    return _wfp3(submit_s, estimate_s, gpus, wait_s)
