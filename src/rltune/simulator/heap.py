"""Running jobs by their true end: a binary heap, ties by job."""

from rltune.kernels import inlined, inner_kernel


@inlined
def _before(heap, i, end, job):
    return heap[i].end < end or (heap[i].end == end and heap[i].job < job)


@inner_kernel
def push(heap, n, end, job):
    """Add a job that ends at ``end`` to a heap of ``n``."""
    i = n
    while i > 0:
        up = (i - 1) >> 1
        if _before(heap, up, end, job):
            break
        heap[i].end, heap[i].job = heap[up].end, heap[up].job
        i = up
    heap[i].end, heap[i].job = end, job


@inner_kernel
def move(heap, n, job, end):
    """Give a job in a heap of ``n`` another end."""
    i = 0
    while heap[i].job != job:
        i += 1
    while i > 0:  # to the top, as if it came before all others
        up = (i - 1) >> 1
        heap[i].end, heap[i].job = heap[up].end, heap[up].job
        i = up
    _sift_down(heap, n, end, job)


@inner_kernel
def pop(heap, n):
    """Take the job that ends first out of a heap of ``n``."""
    top = heap[0].job
    n -= 1
    _sift_down(heap, n, heap[n].end, heap[n].job)
    return top


@inner_kernel
def _sift_down(heap, n, end, job):
    """Put a job into a heap of ``n`` in place of the first."""
    i = 0
    while True:
        low = 2 * i + 1
        if low >= n:
            break
        if low + 1 < n and _before(heap, low + 1, heap[low].end, heap[low].job):
            low += 1
        if not _before(heap, low, end, job):
            break
        heap[i].end, heap[i].job = heap[low].end, heap[low].job
        i = low
    heap[i].end, heap[i].job = end, job
