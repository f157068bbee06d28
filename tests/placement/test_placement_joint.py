"""Order and GPU types planned together: the search against plain Python, all plans, and the program; the matching of AlloX
against plain Python, SciPy and all plans."""

from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.optimize import linear_sum_assignment
from workload_cases import at_speeds, cluster, compiled, group, simple

from rltune.cluster.fit import CUT
from rltune.cluster.types import PLANNED
from rltune.placement.joint import Plan, in_slots, is_proven, measure, questions, searched, solved
from rltune.reference import allox, joint
from rltune.reference.placement import Placement
from rltune.simulator.allox import assigned, matched
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.joint import Question, search


def random_question(
    rng: np.random.Generator, jobs: int, nodes: int, slot_s: float = 0.0, extra: int | None = None
) -> Question:
    """Jobs on one to three types of nodes alike, which are freed step by step; all times whole slots if there are any.

    ``extra``: nodes more than the fewest that a job may have, by default in every other question one or two.
    """
    types, size, points = (int(rng.integers(1, 4)), int(rng.choice([1, 2, 4, 8])), int(rng.integers(1, 6)))
    at_s = np.zeros((types, points))
    at_s[:, 1:] = np.sort(rng.choice([0.0, 2, 10, 17.1, 33.3, 90], (types, points - 1)), axis=1)
    free = np.sort(rng.integers(0, size + 1, (types, points, nodes)), axis=1)
    free[:, -1] = size
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 8], jobs), nodes * size)
    cut = np.zeros((jobs, types), CUT)
    cut["size"], cut["full"], cut["rem"] = size, (gpus // size)[:, None], (gpus % size)[:, None]
    lasts_s = rng.choice([10.0, 1, 50, 100, 300, 33.3], (jobs, 1)) * rng.choice([1, 1.25, 2.5, 10 / 3], (jobs, types))
    price_s = lasts_s * rng.choice([0, 0.03, 1]) * rng.random((jobs, types))
    lasts_s[:, 1:][rng.random((jobs, types - 1)) < 0.2] = np.inf
    uneven = (rng.random(jobs) < 0.1) & (gpus > size)  # now and then a job without equal chunks
    cut["full"][uneven] = -(-gpus[uneven] // size)[:, None]
    cut["size"][uneven] = cut["rem"][uneven] = 0
    cut["full"][np.isinf(lasts_s)] = -1
    extra = int(rng.choice([0, 0, 1, 2])) if extra is None else extra
    if extra:
        longer = rng.choice([1, 1.1, 2.5], lasts_s.shape)
        more = np.zeros_like(cut)
        more["full"] = np.minimum(cut["full"] + (cut["rem"] > 0) + extra, gpus[:, None])
        spread_s = np.where(more["full"] > cut["full"] + (cut["rem"] > 0), lasts_s * longer, np.inf)
        cut, lasts_s, price_s = (np.hstack(p) for p in ((cut, more), (lasts_s, spread_s), (price_s, price_s * longer)))
    total = free.sum(axis=2, keepdims=True)
    q = Question(at_s, np.full(types, points), np.concatenate([free, total], axis=2), gpus, cut, lasts_s, price_s)
    return in_slots(q, slot_s) if slot_s else q


def in_plain_python(q: Question) -> tuple[list[joint.Profile], list[dict[int, joint.Option]]]:
    """What is free of each type, and the options of each job."""
    profiles = [
        [(float(q.at_s[t, x]), tuple(q.free[t, x, :-1].tolist())) for x in range(n)] for t, n in enumerate(q.points)
    ]
    options = [
        {
            a: joint.Option(
                a % len(q.points),
                *(int(q.cut[k, a][name]) for name in ("size", "full", "rem")),
                q.lasts_s[k, a],
                q.price_s[k, a],
            )
            for a in np.flatnonzero(np.isfinite(q.lasts_s[k])).tolist()
        }
        for k in range(len(q.gpus))
    ]
    return profiles, options


def by_twin(q: Question, plan: Any = joint.search) -> tuple[list[float], list[int]]:
    profiles, options = in_plain_python(q)
    return plan(profiles, q.gpus.tolist(), options)


def best_of_all(q: Question) -> float:
    """The least cost of all alternatives of all jobs in all orders."""
    profiles, options = in_plain_python(q)

    @cache
    def least(kind: int, jobs: tuple[tuple[int, joint.Option], ...]) -> float:
        """Of these jobs on a type, of all orders."""
        return min(cost_in_order(kind, order) for order in permutations(jobs))

    def cost_in_order(kind: int, order: tuple[tuple[int, joint.Option], ...]) -> float:
        profile, total = profiles[kind], 0.0
        for k, option in order:
            start_s, profile = joint.reserve(profile, int(q.gpus[k]), option)
            total += start_s + option.lasts_s + option.price_s
        return total

    return min(
        sum(least(t, tuple((k, o) for k, o in enumerate(chosen) if o.kind == t)) for t in range(len(profiles)))
        for chosen in product(*(of.values() for of in options))
    )


def cost(q: Question, start_s: np.ndarray, alternative: np.ndarray) -> float:
    at = np.arange(len(alternative)), alternative
    return float((start_s + q.lasts_s[at] + q.price_s[at]).sum())


def test_search_equals_plain_python():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        q = random_question(rng, int(rng.integers(2, PLANNED + 1)), int(rng.integers(1, 5)))
        start_s, alternative, _ = search(q)
        assert (start_s.tolist(), alternative.tolist()) == by_twin(q), seed


def test_any_chunks_go_where_the_reservation_puts_them():
    """The fullest nodes, and the rest by best fit: 3 of 3, 2, 1 and the last GPU on the third."""
    config = cluster([group(5, 8)])
    fits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        free, gpus, nodes = rng.integers(0, 9, 5), int(rng.integers(2, 17)), int(rng.integers(2, 5))
        jobs, layout = simple(config, (0, 1, gpus))
        place = Placement(jobs, layout, "best_fit")
        left = {m: (int(g), 10**6, 10**6) for m, g in enumerate(free)}
        expected = place.split(0, left, nodes - place.strict_nodes(0, 0))
        found = joint.choose(free.tolist(), gpus, joint.Option(0, 0, nodes, 0, 1.0, 0.0))
        assert (found and {m: g for m, g in enumerate(found) if g}) == expected, seed
        fits += found is not None
    assert joint.choose([3, 2, 1], 4, joint.Option(0, 0, 2, 0, 1.0, 0.0)) == [3, 0, 1]
    assert 50 < fits < 200


def test_search_is_close_to_the_best_of_all_plans():
    """Never better, hardly ever worse."""
    exact = 0
    for seed in range(60):
        q = random_question(np.random.default_rng(seed), 4, 2)
        found, best = searched(q).cost_s, best_of_all(q)
        assert found >= best * (1 - 1e-9)
        assert found <= best * 1.15, seed
        exact += found <= best * (1 + 1e-9)
    assert exact >= 50


@pytest.mark.parametrize("solver", ["HIGHS", "GLPK_MI"])
def test_program_finds_the_best_of_all_plans(solver):
    """On one node a type; on several it may choose nodes otherwise than by best fit, and better."""
    for seed in range(12):
        q = random_question(np.random.default_rng(seed), 3, 1 + seed % 3, slot_s=20.0)
        plan = solved(q, 20.0, 40, solver)
        best = best_of_all(q)
        assert plan.cost_s <= best * (1 + 1e-6) and plan.cost_s == pytest.approx(
            cost(q, plan.start_s, plan.alternative)
        )
        if seed % 3 == 0:
            assert plan.cost_s == pytest.approx(best)
        assert possible(q, plan)


def test_a_plan_costs_no_less_than_its_jobs_alone_and_is_optimal_where_it_costs_as_little():
    proven = 0
    for seed in range(60):
        q = random_question(np.random.default_rng(seed), 2 + seed % 2, 1 + seed % 3, slot_s=20.0)
        plan, (*_, bound_s) = searched(q), search(q)
        profiles, options = in_plain_python(q)
        alone_s = sum(
            min(joint.reserve(profiles[o.kind], int(g), o)[0] + o.lasts_s + o.price_s for o in of.values())
            for g, of in zip(q.gpus, options)
        )
        best = solved(q, 20.0, round(plan.start_s.max() / 20.0) + 9)
        assert bound_s == pytest.approx(alone_s) and bound_s <= best.cost_s * (1 + 1e-6)
        assert is_proven(q) == (plan.cost_s == pytest.approx(alone_s, rel=1e-9))
        if is_proven(q):
            assert plan.cost_s == pytest.approx(best.cost_s) and plan.cost_s == pytest.approx(best_of_all(q))
        proven += is_proven(q)
    assert 10 < proven < 50


def possible(q: Question, plan: Plan) -> bool:
    """Whether GPUs of a type suffice at every time."""
    end_s = plan.start_s + q.lasts_s[np.arange(len(q.gpus)), plan.alternative]
    for t, time in product(range(len(q.points)), {*plan.start_s}):
        runs = (plan.alternative % len(q.points) == t) & (plan.start_s <= time) & (time < end_s)
        x = np.searchsorted(q.at_s[t, : q.points[t]], time + 1e-6, side="right") - 1
        if (runs * q.gpus).sum() > q.free[t, x, -1]:
            return False
    return True


def test_questions_of_a_run_and_the_gap_of_the_search():
    """One node of each type: the program cannot choose nodes better."""
    rng = np.random.default_rng(1)
    rows = [
        {"submit_s": 10.0 * i, "run_s": float(rng.integers(50, 900)), "gpus": int(rng.choice([1, 2, 4]))}
        for i in range(60)
    ]
    jobs, layout = compiled(cluster([group(1, 4, "V100"), group(1, 4, "K80")]), rows)
    slow = np.column_stack([np.ones(60), rng.uniform(1, 10, 60)])
    jobs = at_speeds(jobs, slow, mean_speed=[1.0, 0.4])
    asked = questions(jobs, layout, np.array([0]), 60, SchedulerConfig("saf", "conservative", types="joint"))
    assert {len(q.gpus) for q in asked} == {*range(2, PLANNED + 1)}
    found = measure(asked, most=10)
    assert len(found) == 10 and (found[["search_ms", "program_ms"]] > 0).all().all()
    assert found["gap"].min() > -1e-6 and found["gap"].median() < 0.02
    few = measure([q for q in asked if len(q.gpus) < PLANNED], most=10)
    assert len(few) == 0 and few.quantile([0.5]).isna().all(axis=None)


def test_a_matching_costs_as_little_as_scipy_s():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(1, 12))
        cost = rng.integers(0, 9, (rows, rows * 3)).astype(float)
        cost[:, rows:][rng.random((rows, 2 * rows)) < 0.4] = np.inf
        columns = column_of_each(cost)
        assert len({*columns}) == rows
        assert cost[range(rows), columns].sum() == cost[linear_sum_assignment(cost)].sum(), seed


@njit
def column_of_each(cost: np.ndarray) -> np.ndarray:
    return assigned(cost)


def test_matching_equals_plain_python():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        q = random_question(rng, int(rng.integers(2, 20)), int(rng.integers(1, 5)), extra=0)
        start_s, kind = matched(q)
        assert (start_s.tolist(), kind.tolist()) == by_twin(q, plan=allox.matched), seed


def test_matching_of_jobs_of_one_gpu_has_the_least_sum_of_completions():
    """On idle types of one GPU each, where Horn's theorem holds: as little as the best of all plans."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        q = random_question(rng, 4, 1, extra=0)
        types = len(q.points)
        one = np.ones((types, 1, 2), np.int64)
        q = q._replace(at_s=np.zeros((types, 1)), points=np.ones(types, np.int64), free=one, gpus=np.ones(4, np.int64))
        q.cut["size"], q.cut["rem"] = 1, 0
        q.cut["full"] = np.where(np.isfinite(q.lasts_s), 1, -1)
        start_s, kind = matched(q)
        assert cost(q, start_s, kind) == pytest.approx(best_of_all(q)), seed
