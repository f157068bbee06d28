"""The same placement questions to both solvers: GLPK's kernel and the program in CVXPY."""

import numpy as np
import pandas as pd

from rltune.placement.counts import timed
from rltune.placement.instance import Outcome
from rltune.placement.lookahead import Lookahead, solver_of

SOLVED_TWICE = ["jobs", "nodes", "slots", "glpk", "cvxpy", "agree", "glpk_ms", "cvxpy_ms"]
TOLERANCE = 1e-5
"""Difference of two objectives, in starts, that rounding explains."""


def resolve_sample(placer: Lookahead, n: int = 32, seed: int = 1) -> pd.DataFrame:
    """A row for each of ``n`` questions that the placer kept (``Lookahead.sample``): jobs, nodes, slots, glpk and cvxpy
    (the objectives of both, NaN without a solution), agree, glpk_ms, cvxpy_ms (building the problem included)."""
    kept = placer.kept
    glpk, cvxpy = (solver_of(placer.config.model_copy(update={"solver": name})) for name in ("glpk", "cvxpy"))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(kept))[:n])
    rows = []
    for instance in (kept[i] for i in chosen):
        (a, glpk_ms), (b, cvxpy_ms) = timed(glpk.solve, instance), timed(cvxpy.solve, instance)
        found = a.outcome is b.outcome is Outcome.OPTIMAL
        agree = abs(a.objective - b.objective) < TOLERANCE if found else a.outcome is b.outcome
        sizes = len(instance.rank), len(instance.member), instance.free.shape[1]
        rows.append((*sizes, a.objective, b.objective, agree, glpk_ms, cvxpy_ms))
    return pd.DataFrame(rows, columns=SOLVED_TWICE)
