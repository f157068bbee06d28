"""How the simulator's inner functions are compiled.

Numba counts references to every array a function touches, atomically, each time it is passed on: in an event loop of
small functions that is half of the time. A ``kernel`` does without. In return it may not allocate, nor keep an array
that another function has allocated: it works on arrays that its caller keeps alive. ``allocating`` functions are
compiled as usual; kernels may call those that do not return an array.

Arrays are passed by value, field by field: a call with the simulator's state pushes hundreds of words. What runs for
each job and GPU type is therefore ``inlined``, into a kernel.

Compiling takes longer than most runs. So ``inner_`` functions, which only compiled code calls,
get no wrapper for calls from Python: for a state of many arrays it is as long as the function. And numba compiles a
function once more for each literal that it is called with: code passes the typed numbers and truth values below instead.
"""

import numpy as np
from numba import njit

_inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
kernel = njit(cache=True, nogil=True, _nrt=False)
inner_kernel = njit(cache=True, nogil=True, _nrt=False, **_inner)
inlined = njit(cache=True, inline="always")
allocating = njit(cache=True, nogil=True, _nrt=True)
inner_allocating = njit(cache=True, nogil=True, _nrt=True, **_inner)

ZERO, ONE, MINUS_ONE = np.int64(0), np.int64(1), np.int64(-1)
NO = np.False_


def record(**names: str) -> np.dtype:
    """The type of records that compiled code reads: names of fields by their types, in the order of the fields."""
    return np.dtype([(name, kind) for kind, some in names.items() for name in some.split()], align=True)
