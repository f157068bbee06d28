"""The search of types ``joint`` in plain Python (rltune.simulator.joint has the same for compiled code)."""

from dataclasses import dataclass

SWEEPS, GAIN = 3, 1e-9

Profile = list[tuple[float, tuple[int, ...]]]
"""(s from now, GPUs free on each node of a type from then on), ascending."""


@dataclass(frozen=True)
class Option:
    """A job in an alternative: its type, GPUs of a full chunk, full chunks, GPUs of the last (rltune.cluster.fit.CUT), expected
    run time and what its GPU time counts as, s."""

    kind: int
    size: int
    full: int
    rem: int
    lasts_s: float
    price_s: float


def search(profiles: list[Profile], gpus: list[int], options: list[dict[int, Option]]) -> tuple[list[float], list[int]]:
    """(Start, s from now; alternative) of each job in the best plan found.

    ``profiles``: one a type. ``options``: of each job, by the alternatives that it has.
    """
    plan: list[list[int]] = [[] for _ in profiles]  # jobs of each type, in their order
    chosen = [0] * len(options)  # alternatives

    def cost(kind: int, order: list[int]) -> tuple[float, list[float]]:
        profile, starts, total = profiles[kind], [], 0.0
        for k in order:
            option = options[k][chosen[k]]
            start, profile = reserve(profile, gpus[k], option)
            starts.append(start)
            total += start + option.lasts_s
        for k in order:
            total += options[k][chosen[k]].price_s
        return total, starts

    def more(k: int, a: int, position: int | None = None) -> float:
        """Put a job in an alternative; what it costs more with it at a position, None: the last, in the order of its type."""
        chosen[k], kind = a, options[k][a].kind
        others, i = plan[kind], len(plan[kind]) if position is None else position
        return cost(kind, [*others[:i], k, *others[i:]])[0] - cost(kind, others)[0]

    for k, allowed in enumerate(options):
        chosen[k] = min(sorted(allowed), key=lambda a: more(k, a))
        plan[allowed[chosen[k]].kind].append(k)
    for _ in range(SWEEPS):
        before = [list(order) for order in plan], list(chosen)
        for k, allowed in enumerate(options):
            alternative, own = chosen[k], allowed[chosen[k]].kind
            was, whole = plan[own].index(k), cost(own, plan[own])[0]
            plan[own].remove(k)
            at, least = (alternative, was), whole - cost(own, plan[own])[0]
            for a in sorted(allowed):
                for position in range(len(plan[allowed[a].kind]), -1, -1):
                    change = more(k, a, position)
                    if (a, position) != (alternative, was) and change < least - GAIN * (abs(least) + 1.0):
                        at, least = (a, position), change
            chosen[k] = at[0]
            plan[allowed[at[0]].kind].insert(at[1], k)
        if (plan, chosen) == before:
            break
    start = {k: start for kind, order in enumerate(plan) for k, start in zip(order, cost(kind, order)[1], strict=True)}
    return [start[k] for k in range(len(gpus))], chosen


def reserve(profile: Profile, gpus: int, option: Option) -> tuple[float, Profile]:
    """(When a job starts, what is free next to it)."""
    for i, (since, _) in enumerate(profile):
        until = since + option.lasts_s
        during = [free for k, (time, free) in enumerate(profile) if k == i or k > i and time < until]
        taken = choose([min(column) for column in zip(*during)], gpus, option)
        if taken is not None:
            ends = min((k for k in range(i + 1, len(profile)) if profile[k][0] >= until), default=len(profile))
            after = list(profile)
            if ends == len(profile) or profile[ends][0] > until:
                after.insert(ends, (until, profile[ends - 1][1]))
            for k in range(i, ends):
                after[k] = (after[k][0], tuple(free - take for free, take in zip(after[k][1], taken)))
            return since, after
    raise AssertionError("a job does not fit its empty type")


def choose(free: list[int], gpus: int, option: Option) -> list[int] | None:
    """GPUs that a job takes of each node by best fit, each chunk on a separate node; None: it does not fit."""
    taken = [0] * len(free)
    if option.size == 0:  # any chunks: the nodes with the most free to the full, the rest where it fits best
        while sum(taken) < gpus and sum(map(bool, taken)) < option.full:
            rest = [m for m in range(len(free)) if free[m] > 0 and not taken[m]]
            able = [m for m in rest if free[m] >= gpus - sum(taken)]
            if not rest:
                return None
            best = min(able, key=lambda m: (free[m], m)) if able else max(rest, key=lambda m: (free[m], -m))
            taken[best] = min(free[best], gpus - sum(taken))
        return taken if sum(taken) == gpus else None
    for chunk in [option.size] * option.full + [option.rem] * (option.rem > 0):
        able = [m for m in range(len(free)) if taken[m] == 0 and free[m] >= chunk]
        if not able:
            return None
        taken[min(able, key=lambda m: (free[m], m))] = chunk
    return taken
