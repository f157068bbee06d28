"""Run-time estimates that policies use. A kind is a file of ``kinds``, named by it.

==================  ====================================================================================
name                estimate
==================  ====================================================================================
exact               the true run time
lognormal-SIGMA     the true run time, blurred
requested           the user's own (``requested_s``); of a job without one, as history-rolling
history-rolling     median of the last run times known of similar jobs
history-lightgbm    predicted by trees trained on earlier jobs
published           from a file; of a job it does not name, as history-rolling
==================  ====================================================================================

``requested`` and those of history use nothing of a job that its submission does not show, nor of other jobs before
their ends as recorded (where a trace records no wait: as if they had not waited). A simulated queue that is longer than
the recorded one ends jobs later, so that there they know some run times sooner than the simulated cluster would. What
``published`` ones used, their authors know. The blurred ones depend neither on the order of rows nor on which other
jobs are there: each job has its own random number, made of (trace name, job id, run seed) alone. Every policy gets the
same.
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.cells import ESTIMATE_KINDS, parse_estimate
from rltune.config.trace import Predictions
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates.history import MIN_ESTIMATE_S, NOTHING_KNOWN, Request

KINDS = {name: import_module(f"rltune.traces.estimates.kinds.{name.replace('-', '_')}") for name in ESTIMATE_KINDS}
"""Kind → its module: ``estimate(request)`` returns the estimates [J] in s and what each was made from [J]."""
REALISTIC = ("requested", "history-rolling", "history-lightgbm")
"""Kinds for any trace that do not use a job's true run time."""
FALL_BACKS = (*(module.FALL_BACK for module in KINDS.values() if hasattr(module, "FALL_BACK")), NOTHING_KNOWN)
"""Sources of estimates that are not of the kind asked for."""


def estimate_jobs(
    jobs: pd.DataFrame,
    meta: TraceMeta,
    name: str,
    seed: int,
    predictions: Predictions | None = None,
    root: Path = Path(),
) -> pd.DataFrame:
    """One row a job: ``estimate_s`` (float64, at least 1 s) and ``source`` (str), what it was made from.

    Args:
        jobs: job table, in the order of submission; history is what it holds, no more.
        meta: its metadata.
        name: the estimate's full name, such as ``lognormal-1``.
        seed: of the run, for ``lognormal``.
        predictions: the trace's, for ``published``.
        root: folder that a relative path in ``predictions`` starts from.

    Raises:
        ConfigError: a name that is none, or ``published`` without predictions.
        DataError: ``requested``, but no job of the trace names a time; predictions that cannot be used.
    """
    kind, sigma = parse_estimate(name)
    seconds, source = KINDS[kind].estimate(Request(jobs, meta, sigma, seed, predictions, root))
    source = np.full(len(jobs), source, dtype=object) if isinstance(source, str) else source
    return pd.DataFrame({"estimate_s": np.maximum(seconds, MIN_ESTIMATE_S), "source": pd.Series(source, dtype="str")})
