"""The scheduling rules in plain Python: slow and meant to be read; the oracle of the compiled engine.

Time goes from event to event; at one time completions come before arrivals. Every pool with an event then decides:
it ranks its queue (jobs under a service-level agreement first, then those past their maximum wait in the order
of submission, then the lowest score; ties by submission, then row)
and starts the first job if it fits, again and again, until the queue is empty or the first job, the *head*, does not
fit. The head is forgotten at the pool's next event or, with ``sticky_head``, stays until it starts: all pools have one
queue, and the head stays head until it starts. While there is a head, of the others, in the order of the same ranking
(of a head kept from an earlier time, an agent is not asked: in the order of the base policy),

============  ==================================================================================================
none          nothing starts
greedy        whatever fits starts
easy          the head has a reservation: the earliest time it fits, by the expected ends of the running jobs, on
              nodes chosen by the placement rule (its shadow allocation). A job that fits starts if it ends by
              estimate no later than that, or on what is free both now and then next to the shadow allocation;
              or in another pool than the head's
conservative  every job has a reservation, first the head, then the others in their order: the earliest time
              from which an allocation stays free for as long as the job would run, by its estimate, on its slowest
              type, split where it may be; it holds it for as long as it runs there. A job starts whose
              reservation is the present
============  ==================================================================================================

A running job past its estimate is expected to run as long again as it has so far (``overrun: double``) or to end at
once (``now``). Where a job goes: rltune.reference.placement. How many nodes more than strict a job may have:
``strict`` none, ``plus_one`` one, ``any`` as many as there are, ``worth_it`` as many as there are, but only the first
of a ranking and only where the time it loses to its ``multi_node_slowdown`` is less than that to its strict reservation;
``soonest_end`` the same, and where it cannot be split now, its reservation is the earliest time at which it can, if
it loses less than what is left from then to the strict reservation. Where the whole queue is planned (types ``least``, ``joint``),
a job has more nodes where it is expected to complete sooner then, whichever of these it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rltune.cluster.types import with_type_rule
from rltune.config.cells import PLANNED_TYPES
from rltune.config.max_wait import bound_of
from rltune.policies import POLICIES, Facts
from rltune.reference import allox, joint
from rltune.reference.placement import Allocation, Free, Placement
from rltune.reference.usage import Usage

if TYPE_CHECKING:
    from rltune.cluster.fit import Jobs
    from rltune.cluster.layout import Layout
    from rltune.simulator.config import SchedulerConfig

Scores = Callable[[float, list[int]], list[Any]]
"""(now in s, jobs of one queue in order of submission) → a sortable score each, lower first."""
Holds = Callable[[float, list[int]], bool]
"""(now in s, jobs of one queue that the agent sees) → whether none of the queue starts until the next event."""
Point = tuple[float, int]
"""A time of a plan: the present is (now, 0), an end at t is (t, 1), so that what ends now is not free yet."""

TOGETHER = {"joint": 8, "allox": 64}
"""Jobs that types plan together."""
EXTRA = {"strict": 0, "plus_one": 1, "any": float("inf"), "worth_it": 0, "soonest_end": 0}


def run(
    jobs: Jobs, layout: Layout, first: int, n: int, scheduler: SchedulerConfig, *asks: Any, **more: Any
) -> np.ndarray:
    """Start times in s [n] of jobs ``first`` … ``first + n − 1`` from an idle cluster.

    Asserts at every event that what is free and what is used add up to the capacity of
    each node, that no job starts before its submission, and that none runs twice.
    """
    twin = Twin(jobs, layout, first, n, scheduler, *asks, **more)
    twin.play()
    return np.array([twin.start[j] for j in twin.rows])


class Twin:
    """One run; jobs are rows of ``jobs``. After :meth:`play`, ``start``, ``end`` and ``allocation`` hold every job,
    and ``reservations`` every (now, head, reserved start) that EASY has made, in order.

    ``scores`` replaces the policy's order. With ``visible`` it orders only so many jobs, the first by the policy, and the others
    follow by it; it orders none while a job under an agreement, or if ``silent`` one past its maximum wait, is queued. Where it
    orders two jobs or more, or with ``alone`` one, ``holds`` may say that none starts until the next event; without effect where
    no event would come.
    """

    def __init__(
        self,
        jobs: Jobs,
        layout: Layout,
        first: int,
        n: int,
        scheduler: SchedulerConfig,
        scores: Scores | None = None,
        visible: int = 0,
        holds: Holds | None = None,
        alone: bool = False,
        silent: bool = False,
    ) -> None:
        scheduler = scheduler.on(jobs)
        jobs = with_type_rule(jobs, scheduler.types, scheduler.gpu_price)
        self.scheduler, self.extra = scheduler, EXTRA[scheduler.locality]
        if scheduler.types in PLANNED_TYPES and scheduler.locality in ("worth_it", "soonest_end"):
            self.extra = float("inf")  # the plan weighs a spread itself
        self.score, self.scores, self.visible = POLICIES[scheduler.policy].score, scores, visible
        self.holds, self.alone, self.silent, self.coming = holds, alone, silent, True
        self.place = Placement(jobs, layout, scheduler.placement)
        self.pools = layout.nodes.pool
        self.submit, self.run, self.estimate, self.gpus, self.pool, self.account, self.sla, self.qos = (
            jobs.row[name].tolist()
            for name in ("submit_s", "run_s", "estimate_s", "gpus", "pool", "account", "sla", "qos")
        )
        self.slow, self.spread, self.price, self.off = (
            jobs.cut[name].tolist() for name in ("slow", "spread", "price", "off")
        )
        self.kind = layout.nodes.row["type"].tolist()
        self.usage = Usage()
        self.rows = list(range(first, first + n))
        self.free: Free = dict(self.place.capacity)
        self.queue: list[int] = []
        self.head: int | None = None
        self.running: list[int] = []
        self.start: dict[int, float] = {}
        self.end: dict[int, float] = {}
        self.allocation: dict[int, Allocation] = {}
        self.stints: dict[int, list[tuple[float, float]]] = {}
        self.reservations: list[tuple[float, int, float]] = []

    def play(self) -> None:
        """From the first submission until every job has started, and ended where sharing nodes slows jobs down."""
        coming: list[int] = list(self.rows)
        held: set[int] = set()
        while len(self.start) < len(self.rows) or (self.scheduler.interference_slowdown != 1.0 and self.running):
            now = min([self.end[j] for j in self.running] + [self.submit[j] for j in coming])
            ended = [j for j in self.running if self.end[j] <= now]
            arrived = [j for j in coming if self.submit[j] <= now]
            self.running = [j for j in self.running if j not in ended]
            coming = [j for j in coming if j not in arrived]
            for j in ended:
                self.free = self.place.with_job(self.free, j, self.allocation[j], +1)
                self.usage.use(self.account[j], now, -self.gpus[j])
                self._count_colocated(j, -1)
            self._set_slowdowns(now)
            self.queue += arrived
            self.usage.known |= {self.account[j] for j in arrived}
            self.coming = bool(coming)
            marked = held | {0 if self.scheduler.sticky_head else self.pool[j] for j in ended + arrived}
            held = {
                q
                for q in sorted(marked)
                if self._decide([j for j in self.queue if self.scheduler.sticky_head or self.pool[j] == q], now)
            }
            self._check()

    def _decide(self, queue: list[int], now: float) -> bool:
        """Start what may start of one queue; whether it was held and has to be looked at again at the next event."""
        while queue:
            if self.head is None:
                if self._held(queue, now):
                    return True
                head, *others = self._ranking(queue, now)
            else:
                head, others = self.head, self._behind_kept([j for j in queue if j != self.head], now)
            allocation = self._place_first(head, now)
            if allocation is None:
                if self.scheduler.sticky_head:
                    self.head = head
                self._start_behind(head, others, now)
                return False
            self._start(head, allocation, now)
            self.head = None
            queue = others
        return False

    def _held(self, queue: list[int], now: float) -> bool:
        """Whether the agent holds the queue."""
        asked = self.holds is not None and len(queue) > (not self.alone)
        if not asked or self.visible and self._goes_by_policy(queue, now) or not (self.running or self.coming):
            return False
        return self.holds(now, self._by_policy(queue, now)[: self.visible or None])

    def _ranking(self, queue: list[int], now: float) -> list[int]:
        """A queue, best first."""
        ranking = self._by_policy(queue, now)
        if self.scores is None or (self.visible and self._goes_by_policy(queue, now)):
            return ranking
        visible = sorted(ranking[: self.visible or None])
        scores = dict(zip(visible, self.scores(now, visible), strict=True))
        best_first = sorted(visible, key=lambda j: (*self._urgency(j, now), scores[j], self.submit[j], j))
        return best_first + ranking[len(visible) :]

    def _by_policy(self, queue: list[int], now: float) -> list[int]:
        return sorted(queue, key=lambda j: (*self._urgency(j, now), self.score_now(j, now), self.submit[j], j))

    def _goes_by_policy(self, queue: list[int], now: float) -> bool:
        """Whether an agent is not asked."""
        urgent = [self._urgency(j, now)[:2] for j in queue]
        return any(not sla for sla, _ in urgent) or (self.silent and any(not calm for _, calm in urgent))

    def _urgency(self, j: int, now: float) -> tuple[bool, bool, int]:
        """Sorts agreements first, then the jobs past their maximum wait by submission, then the others."""
        overdue = not self.sla[j] and now > self.submit[j] + 3600 * bound_of(self.scheduler.max_wait_h, self.gpus[j])
        return not self.sla[j], not overdue, j if overdue else 0

    def score_now(self, j: int, now: float) -> float:
        """Score of a queued job under the policy."""
        pool, share = self.pools[self.pool[j]], self.usage.fair_share(self.account[j], now)
        return self.score(
            Facts(
                self.submit[j],
                self.estimate[j],
                self.gpus[j],
                now - self.submit[j],
                share,
                self.gpus[j] / int(pool["gpus"]),
                float(pool["priority"]),
                self.qos[j],
            )
        )

    def _place_first(self, j: int, now: float) -> Allocation | None:
        """The allocation of the first job of a ranking now; None where the whole queue is planned."""
        if self.scheduler.types in PLANNED_TYPES:
            return None
        allocation = self.place.find(j, self.free, self.extra)
        if allocation is None and self.scheduler.locality in ("worth_it", "soonest_end"):
            reserved, _, _ = self._reservation(j, now, self.extra)
            allocation = self.place.split(j, self.free, float("inf"))
            if allocation is not None and not self._loses_s(j, allocation) < reserved - now:
                allocation = None
        return allocation

    def _loses_s(self, j: int, allocation: Allocation) -> float:
        """Seconds by its estimate that a job loses by being split, each counted ``split_worth`` times."""
        return (
            self.scheduler.split_worth
            * (self.estimate[j] * self.slow[j][self._kind(allocation)])
            * (self._split_slowdown(j, allocation) - 1.0)
        )

    def _behind_kept(self, others: list[int], now: float) -> list[int]:
        """The order behind a head kept from an earlier time: the policy's, also a custom one."""
        return self._by_policy(others, now) if self.visible or not others else self._ranking(others, now)

    def _start_behind(self, head: int, others: list[int], now: float) -> None:
        """Start what the backfill rule allows while the head waits."""
        if self.scheduler.backfill == "greedy":
            for j in others:
                allocation = self.place.find(j, self.free, self.extra)
                if allocation is not None:
                    self._start(j, allocation, now)
        elif self.scheduler.backfill == "easy":
            self._backfill_easy(head, others, now)
        elif self.scheduler.backfill == "conservative":
            for pool in range(len(self.pools)):
                self._plan([j for j in [head, *others] if self.pool[j] == pool], pool, now)

    def _backfill_easy(self, head: int, others: list[int], now: float) -> None:
        """EASY backfilling."""
        reserved, spare, _ = self._reservation(head, now, self.extra)
        if self.scheduler.locality == "soonest_end":
            split_at, spare_split, allocation = self._reservation(head, now, float("inf"))
            if self._loses_s(head, allocation) < reserved - split_at:
                reserved, spare = split_at, spare_split
        self.reservations.append((now, head, reserved))
        for j in others:
            allocation = self.place.find(j, self.free, self.extra)
            if allocation is None:
                continue
            mine = self.pool[j] == self.pool[head]
            if mine and now + self.estimate[j] * self._slowdown(j, allocation) > reserved:
                both = {m: tuple(map(min, self.free[m], spare[m])) for m in self.free}
                allocation = self.place.find(j, both, self.extra)
                if allocation is None:
                    continue
                spare = self.place.with_job(spare, j, allocation, -1)
            self._start(j, allocation, now)

    def _reservation(self, head: int, now: float, extra: float) -> tuple[float, Free, Allocation]:
        """(When the head fits, what is free then next to it, where), by the expected ends of the pool's running jobs."""
        expected = {j: self._expected_end(j, now) for j in self.running if self.pool[j] == self.pool[head]}
        for time in sorted(set(expected.values())):
            then = self.free
            for j, end in expected.items():
                if end <= time:
                    then = self.place.with_job(then, j, self.allocation[j], +1)
            allocation = self.place.find(head, then, extra)
            if allocation is not None:
                return time, self.place.with_job(then, head, allocation, -1), allocation
        raise AssertionError(f"job {head} does not fit its empty pool")

    def _plan(self, ranking: list[int], pool: int, now: float) -> None:
        """Conservative backfilling in one pool."""
        present: Point = (now, 0)
        empty = {m: self.place.capacity[m] for m in self.place.nodes_of_pool[pool]}
        # every running job's allocation and every reservation: (from, until, job, allocation)
        held: list[tuple[Point, Point, int, Allocation]] = []
        free_at: dict[Point, Free] = {present: empty}

        def hold(since: Point, until: Point, j: int, allocation: Allocation) -> None:
            if until not in free_at:
                free_at[until] = empty
                for other_since, other_until, other, other_allocation in held:
                    if other_since <= until < other_until:
                        free_at[until] = self.place.with_job(free_at[until], other, other_allocation, -1)
            for point in free_at:
                if since <= point < until:
                    free_at[point] = self.place.with_job(free_at[point], j, allocation, -1)
            held.append((since, until, j, allocation))

        for j in self.running:
            if self.pool[j] == pool:
                hold(present, (self._expected_end(j, now), 1), j, self.allocation[j])
        chosen: dict[int, int] = {}
        types = len(self.slow[0])
        together = TOGETHER.get(self.scheduler.types, 0)
        calm = [j for j in ranking if self._urgency(j, now)[:2] == (True, True)]
        while ranking:
            if together and not chosen and len(calm) > 1 and ranking[0] == calm[0]:
                chosen = self._together(calm[:together], pool, now, free_at)
                ranking = [*chosen, *calm[together:]]
            j, *ranking = ranking
            if self.scheduler.types in PLANNED_TYPES:
                some = [(a, o) for a, o in self._options(j).items() if chosen.get(j, a) == a]
                found = [
                    self._earliest(j, o.lasts_s, free_at, self.extra if a >= types else 0, o.kind) for a, o in some
                ]
                priced = [until[0] + o.price_s for (_, o), (_, until, _) in zip(some, found)]
                since, until, allocation = found[priced.index(min(priced))]
            else:
                lasts = max(self.estimate[j] * self._slowest(j, kind) for kind in self.place.kinds(j))
                since, _, allocation = self._earliest(j, lasts, free_at, self.extra)
                slow = self.slow[j][self._kind(allocation)] * self._split_slowdown(j, allocation)
                until = (since[0] + self.estimate[j] * slow, 1)
            hold(since, until, j, allocation)
            if since == present:
                self._start(j, allocation, now)

    def _together(self, some: list[int], pool: int, now: float, free_at: dict[Point, Free]) -> dict[int, int]:
        """Job → alternative of the first jobs of a ranking, in the order of the plan of rltune.reference.joint or .allox."""
        nodes = self.place.nodes_of_pool[pool]
        profiles: list[joint.Profile] = []
        for kind in range(len(self.slow[0])):
            mine = [m for m in nodes if self.kind[m] == kind]
            profiles.append([(p[0] - now, tuple(free_at[p][m][0] for m in mine)) for p in sorted(free_at)])
        plan = allox.matched if self.scheduler.types == "allox" else joint.search
        start, alternative = plan(profiles, [self.gpus[j] for j in some], [self._options(j) for j in some])
        return {some[k]: alternative[k] for k in sorted(range(len(some)), key=lambda k: start[k])}

    def _options(self, j: int) -> dict[int, joint.Option]:
        """The job's alternatives where its completion is planned: each type on as few nodes as possible, then each on more."""
        strict, spread = {}, {}
        for kind in self.place.kinds(j):
            lasts, price = self.estimate[j] * self.slow[j][kind], self.price[j][kind] * self.estimate[j]
            strict[kind] = joint.Option(kind, *self.place.cut[j][kind], lasts, price)
            fewest = self.place.strict_nodes(j, kind)
            if self.extra > 0 and fewest < self.gpus[j]:
                longer = max(1.0, self.spread[j][kind] * self.scheduler.multi_node_slowdown)
                price = price * longer + (self.scheduler.split_worth - 1.0) * lasts * (longer - 1.0)
                most = int(min(fewest + self.extra, self.gpus[j]))
                spread[len(self.slow[j]) + kind] = joint.Option(kind, 0, most, 0, lasts * longer, price)
        return {**strict, **spread}

    def _earliest(
        self, j: int, lasts: float, free_at: dict[Point, Free], extra: float, kind: int | None = None
    ) -> tuple[Point, Point, Allocation]:
        """(From, until, where) of a job's reservation, on one GPU type or any."""
        for since in sorted(free_at):
            until = (since[0] + lasts, 1)
            during = [free for point, free in free_at.items() if since <= point < until]
            throughout = {m: tuple(min(free[m][r] for free in during) for r in range(3)) for m in free_at[since]}
            allocation = self.place.find(j, throughout, extra, kind)
            if allocation is not None:
                return since, until, allocation
        raise AssertionError(f"job {j} does not fit its empty pool")

    def _expected_end(self, j: int, now: float) -> float:
        end = self._end_of(j, self.estimate[j])
        if end > now:
            return end
        return now if self.scheduler.overrun == "now" else now + (now - self.start[j])

    def _slowdown(self, j: int, allocation: Allocation) -> float:
        """The run time of the job on this allocation over the fastest one, next to what runs there now."""
        shares = any(
            self.gpus[j] > 1 and self.gpus[i] > 1 and i != j and set(allocation) & set(self.allocation[i])
            for i in self.running
        )
        slowdown = self._split_slowdown(j, allocation)
        # where sharing costs nothing, a spread that is faster stays so
        if shares and self.scheduler.interference_slowdown > 1:
            slowdown = max(slowdown, self.scheduler.interference_slowdown)
        return self.slow[j][self._kind(allocation)] * slowdown

    def _own_run_s(self, j: int) -> float:
        """The run time of a running job, without the slowdown that schedulers know."""
        return self.run[j] * (1.0 + self.off[j][self._kind(self.allocation[j])])

    def _kind(self, allocation: Allocation) -> int:
        return int(self.kind[next(iter(allocation))])

    def _split_slowdown(self, j: int, allocation: Allocation) -> float:
        """How many times as long the job runs for being on more nodes than strict."""
        if not self.place.is_split(j, allocation):
            return 1.0
        return self.spread[j][self._kind(allocation)] * self.scheduler.multi_node_slowdown

    def _slowest(self, j: int, kind: int) -> float:
        """The most that the job's run time on a type may be over the fastest one, for being on more nodes than strict."""
        may_split = self.scheduler.locality != "strict" and self.place.strict_nodes(j, kind) < self.gpus[j]
        split = self.spread[j][kind] * self.scheduler.multi_node_slowdown if may_split else 1.0
        return self.slow[j][kind] * max(1.0, split)

    def _set_slowdowns(self, now: float) -> None:
        """Note every change of a running job's slowdown, and its new end."""
        for j in self.running:
            slowdown = self._slowdown(j, self.allocation[j])
            if self.stints[j][-1][1] != slowdown:
                self.stints[j].append((now, slowdown))
                self.end[j] = max(self._end_of(j, self._own_run_s(j)), np.nextafter(now, np.inf))

    def _end_of(self, j: int, work: float) -> float:
        """When a running job of so much work, in s by itself, ends if its slowdown stays as it is."""
        done = 0.0
        for (since, slowdown), (until, _) in zip(self.stints[j], self.stints[j][1:]):
            done += (until - since) / slowdown
        since, slowdown = self.stints[j][-1]
        return since + (work - done) * slowdown

    def _start(self, j: int, allocation: Allocation, now: float) -> None:
        assert j not in self.start, f"job {j} starts twice"
        assert now >= self.submit[j], f"job {j} starts before its submission"
        assert sum(allocation.values()) == self.gpus[j], f"job {j} gets {sum(allocation.values())} GPUs"
        self.free = self.place.with_job(self.free, j, allocation, -1)
        self.queue.remove(j)
        self.running.append(j)
        self.start[j], self.allocation[j] = now, allocation
        self.stints[j] = [(now, self._slowdown(j, allocation))]
        self.end[j] = self._end_of(j, self._own_run_s(j))
        self._set_slowdowns(now)
        self.usage.use(self.account[j], now, self.gpus[j])
        self._count_colocated(j, 1)

    def _count_colocated(self, j: int, sign: int) -> None:
        if self.gpus[j] > 1:
            for m in self.allocation[j]:
                self.place.multi_gpu_jobs[m] = self.place.multi_gpu_jobs.get(m, 0) + sign

    def _check(self) -> None:
        """Free and used add up to the capacity, per node and resource."""
        rest = self.place.capacity
        for j in self.running:
            rest = self.place.with_job(rest, j, self.allocation[j], -1)
        assert rest == self.free, "free and used do not add up to the capacity of a node"
        assert all(x >= 0 for amount in rest.values() for x in amount), "more is used of a node than it has"
