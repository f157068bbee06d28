"""Order and GPU types by the matching of AlloX (types ``allox`` of rltune.cluster.types; Le et al., EuroSys 2020).

A job on a type, k-th from its last, holds k − 1 others up. Jobs are matched to types and such positions, each position once, so that
the sum of completions is the least (Horn 1973; Bruno et al. 1974). AlloX has jobs of one machine each. Here a type counts as
one machine that is free when its running jobs, spread over all of its GPUs, are expected to be done; a job holds others up for
its GPU time over the type's GPUs, and itself ends after its run time.
"""

import numpy as np

from rltune.kernels import allocating, inner_allocating


@allocating
def matched(q):
    """(Start as the matching has it, s from now [K] float64; type [K] int64) of the jobs of a Question (rltune.simulator.joint)."""
    jobs, types = q.lasts_s.shape
    cost, holds_s, idle_s = np.full((jobs, types * jobs), np.inf), np.zeros((jobs, types)), np.zeros(types)
    for kind in range(types):
        total = max(q.free[kind, q.points[kind] - 1, -1], 1)
        for x in range(1, q.points[kind]):
            idle_s[kind] += q.at_s[kind, x] * (q.free[kind, x, -1] - q.free[kind, x - 1, -1])
        idle_s[kind] /= total
        for k in range(jobs):
            if q.lasts_s[k, kind] < np.inf:
                holds_s[k, kind] = q.lasts_s[k, kind] * q.gpus[k] / total
                own_s = idle_s[kind] + q.lasts_s[k, kind] + q.price_s[k, kind]
                for behind in range(jobs):
                    cost[k, kind * jobs + behind] = behind * holds_s[k, kind] + own_s
    position = assigned(cost)
    start, kind_of = np.empty(jobs), position // jobs
    for k in range(jobs):
        start[k] = idle_s[kind_of[k]]
        for other in range(jobs):
            if kind_of[other] == kind_of[k] and position[other] > position[k]:
                start[k] += holds_s[other, kind_of[k]]
    return start, kind_of


@inner_allocating
def assigned(cost):
    """A different column for each row of ``cost`` [n, m ≥ n], of the least sum; ∞: not allowed.

    Rows are added one by one along a shortest augmenting path (Jonker and Volgenant 1987), as SciPy's linear_sum_assignment does,
    which compiled code cannot call.
    """
    rows, columns = cost.shape
    of_row, of_column = np.zeros(rows), np.zeros(columns)  # dual prices
    row_of, column_of = np.full(columns, -1, np.int64), np.full(rows, -1, np.int64)
    shortest, via, seen = np.empty(columns), np.empty(columns, np.int64), np.empty(columns, np.bool_)
    for added in range(rows):
        shortest[:], seen[:] = np.inf, False
        row, column, length = added, -1, 0.0
        while True:
            least = np.inf
            for c in range(columns):
                if seen[c]:
                    continue
                through = length + cost[row, c] - of_row[row] - of_column[c]
                if through < shortest[c]:
                    shortest[c], via[c] = through, row
                if shortest[c] < least:
                    least, column = shortest[c], c
            seen[column], length = True, least
            if row_of[column] < 0:
                break
            row = row_of[column]
        of_row[added] += length
        for c in range(columns):
            if seen[c] and c != column:
                of_row[row_of[c]] += length - shortest[c]
                of_column[c] -= length - shortest[c]
        while column >= 0:
            row = via[column]
            row_of[column] = row
            column, column_of[row] = column_of[row], column
    return column_of
