"""How the simulator's inner functions are compiled.

Numba counts references to every array a function touches, atomically, each time it is passed on: in an event loop of
small functions that is half of the time. A ``kernel`` does without. In return it may not allocate, nor keep an array
that another function has allocated: it works on arrays that its caller keeps alive. ``allocating`` functions are
compiled as usual; kernels may call those that do not return an array.
"""

from numba import njit

kernel = njit(cache=True, nogil=True, _nrt=False)
inlined = njit(cache=True, inline="always")
allocating = njit(cache=True, nogil=True, _nrt=True)
