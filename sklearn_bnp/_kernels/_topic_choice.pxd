"""The largest products of each entry: responsibilities with at most L nonzeros (Hughes 2016, Alg. 7.4).

See the design note of `_topics.pyx`, into which these functions are inlined.
"""
from cython cimport floating

from ._documents cimport Call, State, Work
from ._tiles cimport kth_largest

cdef extern from "topic_math.h" nogil:
    Py_ssize_t LANES
    Py_ssize_t MOST_SORTED
    void bars_d(double*, Py_ssize_t*, Py_ssize_t, double*, Py_ssize_t, double*)
    void bars_f(float*, Py_ssize_t*, Py_ssize_t, float*, Py_ssize_t, float*)
    void mask_d(double*, Py_ssize_t*, Py_ssize_t, double*, Py_ssize_t*, double*, double*)
    void mask_f(float*, Py_ssize_t*, Py_ssize_t, float*, Py_ssize_t*, float*, float*)


cdef inline void choose(Work* q, Call* call, State* state, floating* e) noexcept nogil:
    """Set the mask to the L largest of the state's products of each entry, or as many as it has places."""
    cdef Py_ssize_t u = 0, l, j
    cdef Py_ssize_t most[8]
    cdef floating* B = <floating*>q.B
    cdef floating* column = <floating*>q.products
    cdef floating bars[8]
    for l in range(LANES):
        most[l] = call.L
    while u < q.padded:
        if q.places != NULL:
            for l in range(min(LANES, q.U - u)):
                most[l] = q.places[u + l]
        if q.places == NULL and call.L >= state.A:
            for l in range(LANES):
                bars[l] = 0
        elif q.places != NULL or call.L > MOST_SORTED:
            for l in range(LANES):
                bars[l] = 0
                if most[l] >= state.A:
                    continue
                for j in range(state.A):
                    column[j] = B[state.row[j] + u + l] * e[j]
                bars[l] = kth_largest(column, state.A, most[l])
        elif floating is double:
            bars_d(B + u, state.row, state.A, e, call.L, bars)
        else:
            bars_f(B + u, state.row, state.A, e, call.L, bars)
        if floating is double:
            mask_d(B + u, state.row, state.A, e, most, bars, <double*>q.mask + u)
        else:
            mask_f(B + u, state.row, state.A, e, most, bars, <float*>q.mask + u)
        u += LANES
