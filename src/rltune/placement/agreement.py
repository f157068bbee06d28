"""The same placement questions to both solvers: GLPK's kernel and the program in CVXPY."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from rltune.placement.instance import Instance, Outcome, Solution
from rltune.placement.kernel import GlpkSolver
from rltune.placement.lookahead import Lookahead
from rltune.placement.model import CvxpySolver

TOLERANCE = 1e-5
"""Difference of two objectives, in starts, that rounding explains."""


def resolve_sample(placer: Lookahead, n: int = 32, seed: int = 1, solver: str = "HIGHS") -> pd.DataFrame:
    """A row for each of ``n`` questions that the placer kept (``Lookahead.sample``): jobs, nodes, slots, glpk and cvxpy
    (the objectives of both, NaN without a solution), agree, glpk_ms, cvxpy_ms (building the problem included)."""
    kept, glpk, cvxpy = placer.kept, GlpkSolver(placer.config), CvxpySolver(placer.config, solver)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(kept))[:n])
    rows = []
    for instance in (kept[i] for i in chosen):
        (a, glpk_ms), (b, cvxpy_ms) = _timed(glpk, instance), _timed(cvxpy, instance)
        found = a.outcome is b.outcome is Outcome.OPTIMAL
        rows.append(
            {
                "jobs": len(instance.rank),
                "nodes": len(instance.member),
                "slots": instance.free.shape[1],
                "glpk": a.objective,
                "cvxpy": b.objective,
                "agree": abs(a.objective - b.objective) < TOLERANCE if found else a.outcome is b.outcome,
                "glpk_ms": glpk_ms,
                "cvxpy_ms": cvxpy_ms,
            }
        )
    return pd.DataFrame(rows, columns=["jobs", "nodes", "slots", "glpk", "cvxpy", "agree", "glpk_ms", "cvxpy_ms"])


def _timed(solver: GlpkSolver | CvxpySolver, instance: Instance) -> tuple[Solution, float]:
    began = time.perf_counter()
    return solver.solve(instance), 1000 * (time.perf_counter() - began)
