"""Entropies of unions of components, which merges need exactly.

Entropy is the only statistic of a union that is not the sum of its members' (Hughes 2016, (4.3)).

Design note
-----------
(a) `union_entropies` takes any unions, and reads the column of each member in all rows.
(b) Unions of all pairs, as agglomeration wants them, lose entropy only where both have a share of a row. Most
    rows belong to a few of many components. So `lost_by_pairs` and `join` read what rows have, and take
    m (m - 1) / 2 logarithms of a row of m components: with 300 components, a small part of 44,850. These
    shares are kept row by row, and those of a union take the place of its members'.
"""
from cython.parallel cimport prange
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from cython cimport floating

cdef extern from "entropy_math.h" nogil:
    double entropy_of_shares(double*, const double*, Py_ssize_t)

cdef extern from "pair_entropies.h" nogil:
    void x_log_x(double*, const double*, Py_ssize_t)
    void add_lost(double*, double, double, double, const double*, const double*, const int*, Py_ssize_t)

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


def lost_by_pairs(
    const double[::1] share,        # IN  positive shares, row by row them
    const int[::1] column,          # IN  whose share each is; in ascending order in each row
    const Py_ssize_t[::1] indptr,   # IN  (n + 1,) row i has those from indptr[i] up to indptr[i + 1]
    const double[::1] weight,       # IN  (n,) or None
    double[::1] own,                # OUT (as share) x log x of each
    double[:, ::1] lost,            # OUT (K, K) above the diagonal
):
    """Entropy that each union of two components loses.

    Equivalent to ``lost[j, k] = sum_n weight_n (h(r_nj) + h(r_nk) - h(r_nj + r_nk))`` for j < k, with
    ``h(x) = -x log x``. What stands on the diagonal and below it becomes zero.
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, p, after
    cdef double w = 1.0
    lost[:, :] = 0
    if share.shape[0] == 0:
        return
    with nogil:
        x_log_x(&own[0], &share[0], share.shape[0])
        for i in range(n):
            if weight is not None:
                w = weight[i]
            for p in range(indptr[i], indptr[i + 1] - 1):
                after = p + 1
                add_lost(&lost[column[p], 0], share[p], own[p], w, &share[after], &own[after],
                         &column[after], indptr[i + 1] - after)


def join(
    double[::1] share,              # IN/OUT as for `lost_by_pairs`, in any order in each row
    int[::1] column,                # IN/OUT
    double[::1] own,                # IN/OUT
    const Py_ssize_t[::1] indptr,   # IN  (n + 1,) where each row begins
    Py_ssize_t[::1] end,            # IN/OUT (n,) where each row ends: it may become shorter
    const double[::1] weight,       # IN  (n,) or None
    int a,                          # IN
    int b,                          # IN
    double[::1] lost,               # OUT (K,)
):
    """Component b becomes part of a; entropy that the union of a with each other one then loses.

    The share of a comes first in each row that has one. Entry a of ``lost`` becomes zero.
    """
    cdef Py_ssize_t i, p, first, last, at, other
    cdef double w = 1.0
    lost[:] = 0
    with nogil:
        for i in range(end.shape[0]):
            first, last, at, other = indptr[i], end[i] - 1, -1, -1
            for p in range(first, last + 1):
                if column[p] == a:
                    at = p
                if column[p] == b:
                    other = p
            if other >= 0 and at >= 0:
                share[at] += share[other]
                x_log_x(&own[at], &share[at], 1)
                share[other], own[other], column[other] = share[last], own[last], column[last]
                at = other if at == last else at
                last -= 1
                end[i] = last + 1
            elif other >= 0:
                at = other
                column[at] = a
            if at < 0:
                continue
            share[first], share[at] = share[at], share[first]
            own[first], own[at] = own[at], own[first]
            column[first], column[at] = column[at], column[first]
            if weight is not None:
                w = weight[i]
            add_lost(&lost[0], share[first], own[first], w, &share[first] + 1, &own[first] + 1,
                     &column[first] + 1, last - first)
