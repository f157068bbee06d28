"""How a run treats groups of jobs, users or virtual clusters: who waits, and how unequally.

Sources: Jain, Chiu and Hawe, *A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
Computer Systems*, DEC TR-301, 1984 (the index); Gini, *Variabilità e mutabilità*, 1912 (the coefficient).
"""

import numpy as np

UNKNOWN = "unknown"


def jain_index(values: np.ndarray) -> float:
    """(Σx)² / (n Σx²) of n values ≥ 0 (Jain, Chiu and Hawe 1984): 1 when all are equal, 1/n when one has all.

    1 when all are 0.
    """
    # in shares of the largest: squares of large values stay finite
    x = values / max(float(values.max()), np.finfo(float).tiny)
    squares = float((x**2).sum())
    return float(x.sum()) ** 2 / (len(x) * squares) if squares > 0 else 1.0


def gini(values: np.ndarray) -> float:
    """Half the mean difference of two of n values ≥ 0 over their mean (Gini 1912): 0 when all are equal, below 1.

    0 when all are 0.
    """
    x = np.sort(values)
    n, total = len(x), float(x.sum())
    return float((2 * np.arange(1, n + 1) - n - 1) @ x) / (n * total) if total > 0 else 0.0
