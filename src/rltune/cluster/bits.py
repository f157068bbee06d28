"""Sets of small numbers as 64-bit words: the lowest member in one machine instruction."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rltune.kernels import inlined

WORD = 64


@intrinsic
def _cttz(typingctx, word):
    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@inlined
def lowest(word):
    """Number of the lowest bit that is set; 64 when none is."""
    return np.int64(_cttz(word))


@inlined
def without_lowest(word):
    """The word with its lowest bit cleared."""
    return word & (word - np.uint64(1))


@inlined
def flip(words, at, slot):
    """Put member ``slot`` into the set that begins at word ``at``, or take it out."""
    words[at + (slot >> 6)] ^= np.uint64(1) << np.uint64(slot & 63)
