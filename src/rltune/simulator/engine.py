"""The compiled event loop. It asks, it does not decide.

Every sequence advances until it needs an answer: RANK (scores of the visible queue) or PLACE (the nodes of the
chosen job). A driver answers and calls again. Base policies and placement rules that are compiled in are answered
here, without leaving the loop. With its scores a driver may set ``me.hold``: nothing of the queue starts until the
sequence's next instant, at which it is asked again; without effect where no instant would come, or for a kept head.

At one instant completions come before arrivals. At each instant, per queue with an event: while it has jobs and no
head, take the best (lowest score; ties by submission, then id). If it fits it starts and the rest is ranked again;
if not it is the head until the queue's next event, and the backfill rule says which others may start, in the order
of the same scores. With ``commit: head`` there is one queue for the whole cluster, and the head stays head until it
starts. Jobs under a service-level agreement come before all others, by the base policy; while one is queued, so are
the others.
"""

from __future__ import annotations

import numpy as np

from rltune.cluster.search import AS_MANY, SOONEST_END, WORTH_IT, find, split
from rltune.cluster.ways import classes, count_ways, room
from rltune.kernels import allocating, inlined, kernel
from rltune.policies import FIRST_DYNAMIC
from rltune.simulator.backfill import backfill, reserve
from rltune.simulator.check import check
from rltune.simulator.conservative import reserve_all
from rltune.simulator.contention import split_loses_s
from rltune.simulator.how import ALWAYS, AMONG_OTHERS, CONSERVATIVE, EXTERNAL, NEVER, NONE
from rltune.simulator.queue import dequeue, enqueue, rank
from rltune.simulator.start import end_job, start_job
from rltune.simulator.state import BEHIND, DONE, EVENT, PICK, PLACE, PLACED, POOL, RANK, one_of


@kernel
def advance_all(nodes, jobs, st):
    """Advance every sequence that is not waiting for an answer; (sequences asking RANK, asking PLACE)."""
    how = st.how
    ranks, places = 0, 0
    for s in range(st.me.shape[0]):
        one = one_of(st, s)
        me, line = one.me, one.line
        while me.phase != RANK and me.phase != PLACE and me.phase != DONE:
            if me.phase == EVENT:
                if how.check and me.events > 0:
                    check(nodes, jobs, one, how)
                # where running jobs still slow one another down, the last end counts, not the last start
                done = me.started == me.n and (how.interference_slowdown == 1.0 or me.running == 0)
                me.phase = DONE if done else POOL
                if me.phase == POOL:
                    _next_event(nodes, jobs, one, how)
            elif me.phase == POOL:
                while me.queue < line.shape[0] and not _has_to_decide(one):
                    line[me.queue].dirty = False
                    me.queue += 1
                if me.queue == line.shape[0]:
                    me.phase = EVENT
                else:
                    _decide(nodes, jobs, one, how)
            elif me.phase == PICK:
                if me.hold and me.head < 0 and (me.running > 0 or me.arrived < me.n):
                    me.queue += 1  # it stays marked: the next instant asks again
                    me.phase = POOL
                else:
                    _try(nodes, jobs, one, how)
                me.hold = False
            elif me.phase == PLACED and me.place_len == 0:
                reserve(nodes, jobs, one, how, me.chosen, 0)  # as the placer was told; others have used the work space
                _wait(jobs, one, how)
            elif me.phase == PLACED:
                start_job(nodes, jobs, one, how, me.chosen, me.place_len)
                if me.head >= 0:
                    me.head = -1
                else:
                    dequeue(jobs, one, me.queue, me.picked)
                me.phase = POOL
            elif me.phase == BEHIND:
                # the head waits, and the queue is done for this instant
                if line[me.queue].len + (me.head >= 0) > 1 and how.backfill != NONE:
                    if how.backfill == CONSERVATIVE:
                        reserve_all(nodes, jobs, one, how)
                    else:
                        backfill(nodes, jobs, one, how)
                line[me.queue].dirty = False
                me.phase = POOL
        ranks += me.phase == RANK
        places += me.phase == PLACE
    return ranks, places


@inlined
def _has_to_decide(one):
    line = one.line[one.me.queue]
    return line.dirty and (line.len > 0 or one.me.head >= 0)


@kernel
def _next_event(nodes, jobs, one, how):
    """Go to the next instant: take back what ended, queue what arrived, mark their queues."""
    me = one.me
    now = np.inf
    if me.running > 0:
        now = one.heap[0].end
    if me.arrived < me.n:
        now = min(now, jobs.row[me.first + me.arrived].submit_s)
    if now == np.inf:
        raise RuntimeError("a job in the queue can never fit its pool")
    me.now = now
    me.events += 1
    me.queue = 0
    while me.running > 0 and one.heap[0].end <= now:
        j = end_job(nodes, jobs, one, how)
        one.line[0 if how.commit else jobs.row[j].pool].dirty = True
    while me.arrived < me.n and jobs.row[me.first + me.arrived].submit_s <= now:
        q = 0 if how.commit else jobs.row[me.first + me.arrived].pool
        enqueue(nodes, jobs, one, q, how.base, me.arrived)
        one.line[q].dirty = True
        me.arrived += 1
    if how.base >= FIRST_DYNAMIC:
        for q in range(one.line.shape[0]):
            one.line[q].ranked = False


@kernel
def _decide(nodes, jobs, one, how):
    """Bring a queue into order, or ask for its ranking."""
    me, line = one.me, one.line[one.me.queue]
    visible = line.len if how.visible == 0 else min(line.len, how.visible)
    # an agent, which sees so many jobs only, is asked neither of jobs under an agreement nor behind a kept head
    few = 0 if how.alone else 1
    own = how.order != EXTERNAL or line.len <= few or (how.visible > 0 and (line.sla > 0 or me.head >= 0))
    own = own or (me.head >= 0 and how.backfill == NONE)
    if (own or visible < line.len) and not line.ranked:
        rank(nodes, jobs, one, me.queue, how.base)
    me.scored = not own
    me.queued = line.len
    me.visible = visible
    me.phase = PICK if own else RANK
    if me.head < 0:  # nothing is to be decided while a job that was committed to waits
        me.decisions += 1
        me.choices += line.len > 1
        me.queue_sum += line.len
        me.cut += how.order == EXTERNAL and visible < line.len


@kernel
def _best(jobs, one):
    """Place of the best visible job by the scores given."""
    at, best = one.line[one.me.queue].at, 0
    for i in range(1, one.me.visible):
        if _before(jobs, one, at, i, best):
            best = i
    return best


@inlined
def _before(jobs, one, at, i, k):
    """Whether the job in place ``i`` of a ranked queue stands before that in place ``k``."""
    a, b = one.queue[at + i], one.queue[at + k]
    sla_a, sla_b = jobs.row[one.me.first + a].sla, jobs.row[one.me.first + b].sla
    if sla_a != sla_b:
        return sla_a
    if one.score[i] != one.score[k]:
        return one.score[i] < one.score[k]
    return a < b


@allocating
def _order(jobs, one):
    """Write to ``order`` the places of a queue's jobs by the scores given; behind them, in their order, those that the
    ranking did not see."""
    at, seen, order = one.line[one.me.queue].at, one.me.visible, one.order
    order[:seen] = np.argsort(one.score[:seen], kind="mergesort")
    for i in range(seen, one.me.queued):
        order[i] = i
    for i in range(1, seen):  # ties and agreements; hardly anything moves
        k = i
        while k > 0 and _before(jobs, one, at, order[k], order[k - 1]):
            order[k], order[k - 1] = order[k - 1], order[k]
            k -= 1


@kernel
def _try(nodes, jobs, one, how):
    """Start the first job of the ranking where it fits; else it is the head, and others may go by the backfill rule."""
    me = one.me
    if me.head >= 0:
        me.chosen = me.head
    else:
        me.picked = _best(jobs, one) if me.scored else 0
        me.chosen = one.queue[one.line[me.queue].at + me.picked]
    n = _fit(nodes, jobs, one, how, me.chosen)
    if n > 0:
        me.place_len = n
        me.phase = PLACED
        others = how.asks_place == ALWAYS or how.asks_place == AMONG_OTHERS and me.queued > 1
        company = how.interference_slowdown != 1.0 and jobs.row[me.first + me.chosen].gpus > 1
        split_ways = me.split and _in_equal_chunks(jobs, me.first + me.chosen)
        if me.may_wait or others and (split_ways or _ways(nodes, jobs, one, me.chosen) > (0 if company else 1)):
            _fill_top(jobs, one)
            me.asked_place += 1
            me.phase = PLACE
        return
    _wait(jobs, one, how)


@kernel
def _wait(jobs, one, how):
    """The chosen job becomes the head."""
    me = one.me
    me.phase = BEHIND
    if me.scored and how.backfill != NONE:
        _order(jobs, one)
    if how.commit and me.head < 0:
        me.head = me.chosen
        dequeue(jobs, one, me.queue, me.picked)
        if me.scored and how.backfill != NONE:  # the places move up behind the one that is gone
            for i in range(one.line[me.queue].len):
                place = one.order[i + 1]
                one.order[i] = place - 1 if place > me.picked else place


@kernel
def _fit(nodes, jobs, one, how, job):
    """Place a job that is first in order; chunks, 0 when it does not fit, or where waiting is worth more than a split.

    Then ``reserved`` and ``shadow`` are the head's. Where placements are asked, worth is for the placer to say.
    """
    me = one.me
    me.may_wait = False
    j = me.first + job
    n = find(nodes, jobs, one.free, j, how.rule, 0, one.place)
    me.split = n == 0
    if n > 0:
        return n
    if how.locality < WORTH_IT:
        return 0 if how.extra == 0 else split(nodes, jobs, one.free, j, how.rule, how.extra, one.place)
    reserve(nodes, jobs, one, how, job, 0)
    me.may_wait = how.asks_place != NEVER and _in_equal_chunks(jobs, j)
    n = split(nodes, jobs, one.free, j, how.rule, AS_MANY, one.place)
    if n > 0 and (me.may_wait or split_loses_s(nodes, jobs, how, j, one.place[0].node, n) < me.reserved - me.now):
        return n
    _reserve_sooner(nodes, jobs, one, how, job)
    return 0


@inlined
def _in_equal_chunks(jobs, j):
    """Whether job ``j`` is cut into equal chunks on all types it may use: others a placer is not asked to split."""
    for kind in range(jobs.cut.shape[1]):
        if jobs.cut[j, kind].full > 0 and jobs.cut[j, kind].size == 0:
            return False
    return True


@kernel
def _reserve_sooner(nodes, jobs, one, how, job):
    """With soonest_end, reserve for a head the earliest time at which it can be split, if that ends sooner."""
    if how.locality != SOONEST_END:
        return
    strict_s = one.me.reserved
    reserve(nodes, jobs, one, how, job, AS_MANY)
    loses_s = split_loses_s(nodes, jobs, how, one.me.first + job, one.shadow[0].node, one.me.shadowed)
    if not loses_s < strict_s - one.me.reserved:
        reserve(nodes, jobs, one, how, job, 0)


@allocating
def _ways(nodes, jobs, one, job):
    j = one.me.first + job
    table = room(nodes)
    k = classes(nodes, jobs.row[j].pool, one.free, False, table)
    return count_ways(nodes, jobs, j, table, k)


@kernel
def _fill_top(jobs, one):
    """The chosen job and the next of the ranking, in its order."""
    at = one.line[one.me.queue].at
    if one.me.scored:
        _order(jobs, one)
    one.top[:] = -1
    one.top[0] = one.me.chosen
    k = 1
    for i in range(one.me.queued):
        if k == one.top.shape[0]:
            break
        job = one.queue[at + (one.order[i] if one.me.scored else i)]
        if job != one.me.chosen:
            one.top[k] = job
            k += 1
