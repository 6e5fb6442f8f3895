"""The data of one document: its states, its buffers and its gathered likelihoods.

See the design note of `_topics.pyx`, into which these functions are inlined.
"""
from libc.math cimport log

from cython cimport floating

cdef extern from "topic_math.h" nogil:
    Py_ssize_t LANES
    double DROP_PRIOR


cdef struct Call:
    # What is the same for all documents.
    Py_ssize_t K, L, max_iter, n_restarts
    bint sparse             # some entries may not have all topics
    double tol
    double* prior
    double* lgamma_prior


cdef struct State:
    # A topics, each with its offset into the gather; e may be stale by one step against N.
    Py_ssize_t A
    Py_ssize_t* topic
    Py_ssize_t* row
    double* a
    double* lgamma_a
    double* N
    double* log_e
    double* e
    double score


cdef struct Work:
    # Buffers of one thread, and the document that it is at: U entries, rounded up to `padded`.
    Py_ssize_t U, padded, stride, iterations
    double tokens
    void* B                 # (K, stride) gather
    void* mask              # (K, stride) likelihoods of chosen topics, or NULL
    void* c                 # (stride,) counts times mass, in the table's type
    void* s                 # (stride,)
    void* w                 # (stride,) c / s
    void* e                 # (K,) in the table's type
    void* products          # (K,)
    double* c_d             # (stride,) counts times mass
    double* s_d
    double* w_d
    double* next_N          # (K,)
    const int* places       # (U,) most topics of each entry, at most L; NULL if all may have L
    Py_ssize_t* items       # (stride,) rows of the table
    Py_ssize_t* hot         # (stride,) where an entry that has lost its digits goes
    Py_ssize_t* fresh       # (K,)
    char* gathered          # (K,)
    State now, best


cdef inline void* take(char* arena, Py_ssize_t* taken, Py_ssize_t size) noexcept nogil:
    """The next piece of the arena, aligned to a cache line; NULL if the arena is NULL."""
    cdef Py_ssize_t start = taken[0]
    taken[0] = start + (size + 63) // 64 * 64
    return arena + start if arena != NULL else NULL


cdef inline void carve_state(State* state, char* arena, Py_ssize_t* taken, Py_ssize_t K) noexcept nogil:
    state.topic = <Py_ssize_t*>take(arena, taken, K * sizeof(Py_ssize_t))
    state.row = <Py_ssize_t*>take(arena, taken, K * sizeof(Py_ssize_t))
    state.a = <double*>take(arena, taken, K * sizeof(double))
    state.lgamma_a = <double*>take(arena, taken, K * sizeof(double))
    state.N = <double*>take(arena, taken, K * sizeof(double))
    state.log_e = <double*>take(arena, taken, K * sizeof(double))
    state.e = <double*>take(arena, taken, K * sizeof(double))


cdef inline Py_ssize_t carve(Work* q, Call* call, char* arena, Py_ssize_t longest,
                             Py_ssize_t itemsize) noexcept nogil:
    """Lay out the buffers in the arena, unless it is NULL; returns their bytes."""
    cdef Py_ssize_t taken = 0, K = call.K, most = (longest + LANES - 1) // LANES * LANES + LANES
    q.B = take(arena, &taken, K * most * itemsize)
    q.mask = take(arena, &taken, K * most * itemsize) if call.sparse else NULL
    q.c = take(arena, &taken, most * itemsize)
    q.s = take(arena, &taken, most * itemsize)
    q.w = take(arena, &taken, most * itemsize)
    q.e = take(arena, &taken, K * itemsize)
    q.products = take(arena, &taken, K * itemsize)
    q.c_d = <double*>take(arena, &taken, most * sizeof(double))
    q.s_d = <double*>take(arena, &taken, most * sizeof(double))
    q.w_d = <double*>take(arena, &taken, most * sizeof(double))
    q.next_N = <double*>take(arena, &taken, K * sizeof(double))
    q.items = <Py_ssize_t*>take(arena, &taken, most * sizeof(Py_ssize_t))
    q.hot = <Py_ssize_t*>take(arena, &taken, most * sizeof(Py_ssize_t))
    q.fresh = <Py_ssize_t*>take(arena, &taken, K * sizeof(Py_ssize_t))
    q.gathered = <char*>take(arena, &taken, K)
    carve_state(&q.now, arena, &taken, K)
    carve_state(&q.best, arena, &taken, K)
    return taken


cdef inline void add_topic(State* state, Call* call, Work* q, Py_ssize_t k, double N) noexcept nogil:
    cdef Py_ssize_t j = state.A
    state.topic[j] = k
    state.row[j] = k * q.stride
    state.a[j] = call.prior[k]
    state.lgamma_a[j] = call.lgamma_prior[k]
    state.N[j] = N
    state.A = j + 1


cdef inline void move_topic(State* to, Py_ssize_t i, State* state, Py_ssize_t j) noexcept nogil:
    to.topic[i] = state.topic[j]
    to.row[i] = state.row[j]
    to.a[i] = state.a[j]
    to.lgamma_a[i] = state.lgamma_a[j]
    to.N[i] = state.N[j]
    to.log_e[i] = state.log_e[j]
    to.e[i] = state.e[j]


cdef inline void copy_state(State* to, State* state) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(state.A):
        move_topic(to, j, state, j)
    to.A = state.A
    to.score = state.score


cdef inline void drop_topics(State* state, double bar) noexcept nogil:
    """Drop the topics with N below the bar and a small prior, unless these are all topics."""
    cdef Py_ssize_t j, A = 0
    for j in range(state.A):
        A += state.N[j] >= bar or state.a[j] >= DROP_PRIOR
    if A == 0 or A == state.A:
        return
    A = 0
    for j in range(state.A):
        if state.N[j] >= bar or state.a[j] >= DROP_PRIOR:
            move_topic(state, A, state, j)
            A += 1
    state.A = A


cdef inline floating* typed_weights(Work* q, State* state, floating* like) noexcept nogil:
    """The array e in the type of ``like``."""
    cdef Py_ssize_t j
    cdef floating* e
    if floating is double:
        return state.e
    e = <floating*>q.e
    for j in range(state.A):
        e[j] = <floating>state.e[j]
    return e


cdef inline void gather(Work* q, const floating* table, Py_ssize_t K, State* state) noexcept nogil:
    """Gather, transposed, those columns of the document's rows of the table that are still missing."""
    cdef Py_ssize_t m = 0, j, k, u, l
    cdef floating* out
    cdef const floating* rows[8]
    for j in range(state.A):
        k = state.topic[j]
        if not q.gathered[k]:
            q.gathered[k] = 1
            q.fresh[m] = k
            m += 1
    if m == 0:
        return
    u = 0
    while u < q.padded:
        for l in range(8):
            rows[l] = table + q.items[min(u + l, q.U - 1)] * K
        for j in range(m):
            k = q.fresh[j]
            out = <floating*>q.B + k * q.stride + u
            for l in range(8):
                out[l] = rows[l][k]
        u += 8
    for j in range(m):
        for u in range(q.U, q.padded):
            (<floating*>q.B)[q.fresh[j] * q.stride + u] = 0


cdef inline Py_ssize_t likeliest(Work* q, State* state, Py_ssize_t u, floating* like) noexcept nogil:
    """Position of the topic with the largest product for entry u, by logarithms."""
    cdef Py_ssize_t j, best = 0
    cdef double v, top = 0
    for j in range(state.A):
        v = log(max(<double>(<floating*>q.B)[state.row[j] + u], 1e-300)) + state.log_e[j]
        if j == 0 or v > top:
            top = v
            best = j
    return best
