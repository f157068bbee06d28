"""The compiled event loop. It asks, it does not decide.

Every sequence advances until it needs an answer: RANK (scores of the visible queue) or PLACE (the nodes of the
chosen job), or is to RESERVE for a whole queue (rltune.simulator.conservative) or to CHECK its invariants
(rltune.simulator.check), which are separate programs: a run that needs neither does not compile them. A driver
answers and calls again. Base policies and placement rules that are compiled in are answered
here, without leaving the loop. With its scores a driver may set ``status.hold``: nothing of the queue starts until the
sequence's next event time, at which it is asked again; without effect where none would come, or for a kept head.

At one time completions come before arrivals. At each event time, per queue with an event: while it has jobs and no
head, take the best (lowest score; ties by submission, then id). If it fits it starts and the rest is ranked again;
if not it is the head until the queue's next event, and the backfill rule says which others may start, in the order
of the same scores. With ``sticky_head`` there is one queue for the whole cluster, and the head stays head until it
starts. Jobs under a service-level agreement come before all others, by the base policy; while one is queued, so are
the others. After them come jobs past their maximum wait, in the order of submission.
"""

import numpy as np

from rltune.cluster.candidates import class_table, classes, count_candidates
from rltune.cluster.search import AS_MANY, SOONEST_END, WORTH_IT, find, in_equal_chunks, split
from rltune.kernels import MINUS_ONE, NO, ZERO, inlined, inner_allocating, inner_kernel, kernel
from rltune.simulator.backfill import backfill, reserve
from rltune.simulator.config import ALWAYS, AMONG_OTHERS, CONSERVATIVE, EXTERNAL, NEVER, NONE
from rltune.simulator.contention import split_loses_s
from rltune.simulator.queue import OVERDUE, dequeue, enqueue, goes_first, rank, urgency
from rltune.simulator.start import end_job, start_job
from rltune.simulator.state import BEHIND, CHECK, DONE, EVENT, PICK, PLACE, PLACED, POOL, RANK, RESERVE, sequence_of


@kernel
def advance_all(nodes, jobs, st):
    """Advance every sequence that is not waiting for an answer; (sequences asking RANK, asking PLACE, RESERVE, CHECK)."""
    options = st.options
    ranks, places, reserves, checks = 0, 0, 0, 0
    for s in range(st.status.shape[0]):
        seq = sequence_of(st, s)
        status, queue = seq.status, seq.queue
        while status.phase < RANK:
            if status.phase == EVENT:
                # where running jobs still slow one another down, the last end counts, not the last start
                done = status.started == status.n and (options.interference_slowdown == 1.0 or status.running == 0)
                status.phase = DONE if done else POOL
                if status.phase == POOL:
                    _next_event(nodes, jobs, seq, options)
            elif status.phase == POOL:
                while status.queue < queue.shape[0] and not _has_to_decide(seq):
                    queue[status.queue].dirty = False
                    status.queue += 1
                if status.queue == queue.shape[0]:
                    status.phase = CHECK if options.check else EVENT
                else:
                    _decide(nodes, jobs, seq, options)
            elif status.phase == PICK:
                if status.hold and status.head < 0 and (status.running > 0 or status.arrived < status.n):
                    status.queue += 1  # it stays marked: the next event asks again
                    status.phase = POOL
                else:
                    _try(nodes, jobs, seq, options)
                status.hold = False
            elif status.phase == PLACED and status.place_len == 0:
                # as the placer saw it; others have used the work space
                reserve(nodes, jobs, seq, options, status.chosen, ZERO)
                _wait(jobs, seq, options)
            elif status.phase == PLACED:
                start_job(nodes, jobs, seq, options, status.chosen, status.place_len)
                if status.head >= 0:
                    status.head = -1
                else:
                    dequeue(jobs, seq, status.queue, status.picked)
                status.phase = POOL
            elif status.phase == BEHIND:
                # the head waits, and the queue is done for this event time
                status.phase = POOL
                if options.least or (queue[status.queue].len + (status.head >= 0) > 1 and options.backfill != NONE):
                    if options.backfill == CONSERVATIVE:
                        status.phase = RESERVE
                    else:
                        backfill(nodes, jobs, seq, options)
                queue[status.queue].dirty = False
        ranks += status.phase == RANK
        places += status.phase == PLACE
        reserves += status.phase == RESERVE
        checks += status.phase == CHECK
    return ranks, places, reserves, checks


@inlined
def _has_to_decide(seq):
    queue = seq.queue[seq.status.queue]
    return queue.dirty and (queue.len > 0 or seq.status.head >= 0)


@inner_kernel
def _next_event(nodes, jobs, seq, options):
    """Go to the next event time: release what ended, queue what arrived, mark their queues."""
    status = seq.status
    now = np.inf
    if status.running > 0:
        now = seq.heap[0].end
    if status.arrived < status.n:
        now = min(now, jobs.row[status.first + status.arrived].submit_s)
    if now == np.inf:
        raise RuntimeError("a job in the queue can never fit its pool")
    status.now = now
    status.events += 1
    status.queue = 0
    while status.running > 0 and seq.heap[0].end <= now:
        j = end_job(nodes, jobs, seq, options)
        seq.queue[0 if options.sticky_head else jobs.row[j].pool].dirty = True
    while status.arrived < status.n and jobs.row[status.first + status.arrived].submit_s <= now:
        q = 0 if options.sticky_head else jobs.row[status.first + status.arrived].pool
        enqueue(nodes, jobs, seq, q, options, status.arrived)
        seq.queue[q].dirty = True
        status.arrived += 1
    if options.reranks:
        for q in range(seq.queue.shape[0]):
            seq.queue[q].ranked = False


@inner_kernel
def _decide(nodes, jobs, seq, options):
    """Bring a queue into order, or ask for its ranking."""
    status, queue = seq.status, seq.queue[seq.status.queue]
    visible = queue.len if options.visible == 0 else min(queue.len, options.visible)
    # an agent, which sees so many jobs only, is asked neither about jobs under an agreement nor behind a sticky head
    few = 0 if options.alone else 1
    by_policy = options.order != EXTERNAL or queue.len <= few
    by_policy = by_policy or (options.visible > 0 and (queue.sla > 0 or status.head >= 0))
    # without backfilling, nothing starts behind a sticky head, but placement may look at the next of the ranking
    by_policy = by_policy or (status.head >= 0 and options.backfill == NONE and options.asks_place == NEVER)
    if options.silent and not by_policy:  # nor, while it learns, as long as a job is past its maximum wait
        if not queue.ranked:
            rank(nodes, jobs, seq, status.queue, options.base)
        by_policy = urgency(jobs, seq, seq.waiting[queue.at]) == OVERDUE
    if (by_policy or visible < queue.len) and not queue.ranked:
        rank(nodes, jobs, seq, status.queue, options.base)
    status.scored = not by_policy
    status.queued = queue.len
    status.visible = visible
    status.phase = PICK if by_policy else RANK
    if status.head < 0:  # nothing is to be decided while a sticky head waits
        status.decisions += 1
        status.choices += queue.len > 1
        status.queue_sum += queue.len
        status.cut += options.order == EXTERNAL and visible < queue.len


@inner_kernel
def _best(jobs, seq):
    """Rank of the best visible job by the scores given."""
    at, best = seq.queue[seq.status.queue].at, 0
    for i in range(1, seq.status.visible):
        if _before(jobs, seq, at, i, best):
            best = i
    return best


@inlined
def _before(jobs, seq, at, i, k):
    """Whether the job of rank ``i`` in a queue goes before that of rank ``k`` by the scores given."""
    return goes_first(jobs, seq, seq.waiting[at + i], seq.waiting[at + k], seq.score[i], seq.score[k])


@inner_allocating
def _order(jobs, seq):
    """Write to ``order`` the ranks of a queue's jobs by the scores given; behind them, in their order, those that the
    ranking did not see."""
    at, seen, order = seq.queue[seq.status.queue].at, seq.status.visible, seq.order
    order[:seen] = np.argsort(seq.score[:seen], kind="mergesort")
    for i in range(seen, seq.status.queued):
        order[i] = i
    for i in range(1, seen):  # ties and agreements; hardly anything moves
        k = i
        while k > 0 and _before(jobs, seq, at, order[k], order[k - 1]):
            order[k], order[k - 1] = order[k - 1], order[k]
            k -= 1


@inner_kernel
def _try(nodes, jobs, seq, options):
    """Start the first job of the ranking where it fits; else it is the head, and others may go by the backfill rule."""
    status = seq.status
    if status.head >= 0:
        status.chosen = status.head
    else:
        status.picked = _best(jobs, seq) if status.scored else 0
        status.chosen = seq.waiting[seq.queue[status.queue].at + status.picked]
    n = _fit(nodes, jobs, seq, options, status.chosen)
    if n > 0:
        status.place_len = n
        status.phase = PLACED
        others = (
            options.asks_place == ALWAYS
            or options.asks_place == AMONG_OTHERS
            and status.queued + (status.head >= 0) > 1
        )
        shares = options.interference_slowdown != 1.0 and jobs.row[status.first + status.chosen].gpus > 1
        may_split = status.split and in_equal_chunks(jobs, status.first + status.chosen)
        if (
            status.may_wait
            or others
            and (may_split or _candidates(nodes, jobs, seq, status.chosen) > (0 if shares else 1))
        ):
            _fill_top(jobs, seq)
            status.asked_place += 1
            status.phase = PLACE
        return
    _wait(jobs, seq, options)


@inner_kernel
def _wait(jobs, seq, options):
    """The chosen job becomes the head."""
    status = seq.status
    status.phase = BEHIND
    if status.scored and options.backfill != NONE:
        _order(jobs, seq)
    if options.sticky_head and status.head < 0:
        status.head = status.chosen
        dequeue(jobs, seq, status.queue, status.picked)
        if status.scored and options.backfill != NONE:  # the ranks behind the dequeued job move up
            for i in range(seq.queue[status.queue].len):
                rank_i = seq.order[i + 1]
                seq.order[i] = rank_i - 1 if rank_i > status.picked else rank_i


@inner_kernel
def _fit(nodes, jobs, seq, options, job):
    """Place a job that is first in order; chunks, 0 when it does not fit, or where it should rather wait than be split.

    Then ``reserved`` and ``shadow`` are the head's. Where the placement model is asked, it decides whether to wait.
    """
    status = seq.status
    status.may_wait = False
    if options.least:  # the whole queue is planned
        return ZERO
    j = status.first + job
    n = find(nodes, jobs, seq.free, j, options.rule, ZERO, seq.place)
    status.split = n == 0
    if n > 0:
        return n
    if options.locality < WORTH_IT and options.extra == 0:
        return ZERO
    if options.locality < WORTH_IT:
        return split(nodes, jobs, seq.free, j, MINUS_ONE, options.rule, options.extra, seq.place)
    reserve(nodes, jobs, seq, options, job, ZERO)
    status.may_wait = options.asks_place == AMONG_OTHERS and in_equal_chunks(jobs, j)
    n = split(nodes, jobs, seq.free, j, MINUS_ONE, options.rule, AS_MANY, seq.place)
    if n > 0 and (
        status.may_wait or split_loses_s(nodes, jobs, options, j, seq.place[0].node, n) < status.reserved - status.now
    ):
        return n
    _reserve_sooner(nodes, jobs, seq, options, job)
    return 0


@inner_kernel
def _reserve_sooner(nodes, jobs, seq, options, job):
    """With soonest_end, reserve for a head the earliest time at which it can be split, if that ends sooner."""
    if options.locality != SOONEST_END:
        return
    strict_s = seq.status.reserved
    reserve(nodes, jobs, seq, options, job, AS_MANY)
    loses_s = split_loses_s(nodes, jobs, options, seq.status.first + job, seq.shadow[0].node, seq.status.shadowed)
    if not loses_s < strict_s - seq.status.reserved:
        reserve(nodes, jobs, seq, options, job, ZERO)


@inner_allocating
def _candidates(nodes, jobs, seq, job):
    j = seq.status.first + job
    table = class_table(nodes)
    k = classes(nodes, jobs.row[j].pool, seq.free, NO, table)
    return count_candidates(nodes, jobs, j, table, k)


@inner_kernel
def _fill_top(jobs, seq):
    """The chosen job and the next of the ranking, in its order."""
    at = seq.queue[seq.status.queue].at
    if seq.status.scored:
        _order(jobs, seq)
    seq.top[:] = -1
    seq.top[0] = seq.status.chosen
    k = 1
    for i in range(seq.status.queued):
        if k == seq.top.shape[0]:
            break
        job = seq.waiting[at + (seq.order[i] if seq.status.scored else i)]
        if job != seq.status.chosen:
            seq.top[k] = job
            k += 1
