"""The matching of types ``allox`` in plain Python (rltune.simulator.allox has the same for compiled code)."""

from rltune.reference.joint import Option, Profile


def matched(
    profiles: list[Profile], gpus: list[int], options: list[dict[int, Option]]
) -> tuple[list[float], list[int]]:
    """(Start, s from now; type) of each job. Arguments as of rltune.reference.joint.search."""
    total = [max(sum(profile[-1][1]), 1) for profile in profiles]
    idle = []
    for profile, all_of in zip(profiles, total):
        seconds = 0.0
        for (_, before), (time, free) in zip(profile, profile[1:]):
            seconds += time * (sum(free) - sum(before))
        idle.append(seconds / all_of)
    holds = [
        {t: option.lasts_s * needed / total[t] for t, option in allowed.items()}
        for needed, allowed in zip(gpus, options)
    ]
    costs = [
        {
            (t, behind): behind * holds[k][t] + (idle[t] + option.lasts_s + option.price_s)
            for t, option in sorted(allowed.items())
            for behind in range(len(gpus))
        }
        for k, allowed in enumerate(options)
    ]
    positions = assigned(costs)
    start = []
    for t, behind in positions:
        at = idle[t]
        for other, (kind, later) in enumerate(positions):
            if kind == t and later > behind:
                at += holds[other][t]
        start.append(at)
    return start, [t for t, _ in positions]


def assigned(costs: list[dict[tuple[int, int], float]]) -> list[tuple[int, int]]:
    """A different column for each row, of the least sum: each row in turn, along a shortest augmenting path."""
    of_row = [0.0] * len(costs)
    of_column = {column: 0.0 for row in costs for column in row}
    rows: dict[tuple[int, int], int] = {}
    for added in range(len(costs)):
        lengths: dict[tuple[int, int], tuple[float, int]] = {}
        path: list[tuple[tuple[int, int], float]] = []
        row, length = added, 0.0
        while True:
            seen = {column for column, _ in path}
            for column, cost in costs[row].items():
                through = length + cost - of_row[row] - of_column[column]
                if column not in seen and through < lengths.get(column, (float("inf"), -1))[0]:
                    lengths[column] = (through, row)
            length, last = min((long, column) for column, (long, _) in lengths.items() if column not in seen)
            if last not in rows:
                break
            path.append((last, length))
            row = rows[last]
        of_row[added] += length
        for column, at in path:
            of_row[rows[column]] += length - at
            of_column[column] -= length - at
        while True:
            row = lengths[last][1]
            before = next((column for column, other in rows.items() if other == row), None)
            rows[last] = row
            if before is None:
                break
            last = before
    return [next(column for column, row in rows.items() if row == k) for k in range(len(costs))]
