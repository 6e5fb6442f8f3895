"""Entropies of unions of components, which merges need exactly.

Entropy is the only statistic of a union that is not the sum of its members' (Hughes 2016, (4.3)).
"""
from cython.parallel cimport prange
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from cython cimport floating

cdef extern from "entropy_math.h" nogil:
    double entropy_of_shares(double*, const double*, Py_ssize_t)

cdef enum:
    CHUNK_ROWS = 512        # rows whose responsibilities stay in cache for all unions


cdef void _chunk(const floating* resp, const double* weight, Py_ssize_t n, Py_ssize_t K,
                 const Py_ssize_t* indptr, const Py_ssize_t* members, Py_ssize_t M,
                 double* out) noexcept nogil:
    cdef double[CHUNK_ROWS] share
    cdef const floating* column
    cdef Py_ssize_t u, i, j
    for u in range(M):
        memset(share, 0, n * sizeof(double))
        for j in range(indptr[u], indptr[u + 1]):
            column = resp + members[j]
            for i in range(n):
                share[i] += column[i * K]
        out[u] = entropy_of_shares(share, weight, n)


def union_entropies(
    const floating[:, ::1] resp,        # IN  (n, K)
    const double[::1] weight,           # IN  (n,) or None
    const Py_ssize_t[::1] indptr,       # IN  (M + 1,)
    const Py_ssize_t[::1] members,      # IN  union u holds members[indptr[u]:indptr[u + 1]]
    double[::1] out,                    # OUT (M,)
    int n_threads,
):
    """``out[u] = -sum_n weight_n w log w`` with ``w = resp[n, union u].sum()``.

    Chunks of rows are summed in order, so the number of threads does not change a bit.
    """
    cdef Py_ssize_t n = resp.shape[0], K = resp.shape[1], M = out.shape[0], c, u, lo
    cdef Py_ssize_t n_chunks = (n + CHUNK_ROWS - 1) // CHUNK_ROWS
    out[:] = 0
    if n == 0 or M == 0:
        return
    cdef const double* weight_p = NULL
    if weight is not None:      # a conditional expression would lose the const, which is a warning
        weight_p = &weight[0]
    cdef double* parts = <double*>calloc(n_chunks * M, sizeof(double))
    if parts == NULL:
        raise MemoryError("no memory for the entropies of unions")
    for c in prange(n_chunks, nogil=True, schedule="static", chunksize=1, num_threads=n_threads):
        lo = c * CHUNK_ROWS
        _chunk(&resp[lo, 0], weight_p + lo if weight_p != NULL else NULL, min(CHUNK_ROWS, n - lo), K,
               &indptr[0], &members[0], M, parts + c * M)
    for c in range(n_chunks):
        for u in range(M):
            out[u] += parts[c * M + u]
    free(parts)
