"""The local step and the summary step of sparse rows of counts, s(x) = [x, 1].

Design note
-----------
(a) A row's log weights are a sum of rows of the coefficients' transpose, one for each entry that is
    not zero: K numbers next to each other, padded to whole vectors.
(b) If a row belongs to few components, its entries are added directly to their rows of the statistics
    (K, P), in the order of columns. Rows that belong to many components are summed in a transpose (V, K),
    which is added at the end.
(c) Rows are independent in the local step, and components in the summary step. Threads take chunks of rows or
    slices of components, and every sum has one order, whatever the number of threads.

Rows are CSR arrays ``data`` (nnz,), ``indices`` (nnz,), ``indptr`` (n + 1,) without duplicates. These
functions trust their callers; shapes and values are checked in the Python that calls them.
"""
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from cython cimport floating

from ._tiles cimport LANES, Beside, Problem, aligned_bytes, beside, from_row, share_rows, sum_chunks

cdef extern from "sparse_math.h" nogil:
    void add_weights_d(double*, const double*, Py_ssize_t, const double*, const int32_t*, Py_ssize_t)
    void add_weights_f(float*, const float*, Py_ssize_t, const float*, const int32_t*, Py_ssize_t)
    void add_to_all_d(double*, Py_ssize_t, const double*, Py_ssize_t, const double*, const int32_t*,
                      Py_ssize_t)
    void add_to_all_f(double*, Py_ssize_t, const double*, Py_ssize_t, const float*, const int32_t*,
                      Py_ssize_t)
    int are_counts_d(const double*, Py_ssize_t, int)
    int are_counts_f(const float*, Py_ssize_t, int)

cdef enum:
    CHUNK_ROWS = 1024
    TILE_ROWS = 32      # rows whose shares are found at a time
    TYPES = 16          # columns of a table that are transposed at a time
    # A row adds to single components if it belongs to at most one in so many: a single addition takes about
    # as long as one of a vector of so many numbers.
    FEW = 8

cdef double RESP_FLOOR = 1e-16              # as in _responsibilities


cdef struct Rows:
    # Sparse rows: n rows, V columns.
    Py_ssize_t n, V
    const int64_t* indptr
    const int32_t* indices


cdef void _transpose(const floating* coef, floating* out, Py_ssize_t K, Py_ssize_t P,
                     Py_ssize_t ld) noexcept nogil:
    """out (P, ld) = coef (K, P)', followed by columns of zeros."""
    cdef Py_ssize_t tile, start, v, k
    for tile in range((P + TYPES - 1) // TYPES):
        start = tile * TYPES
        for k in range(K):
            for v in range(start, min(start + TYPES, P)):
                out[v * ld + k] = coef[k * P + v]
        for v in range(start, min(start + TYPES, P)):
            for k in range(K, ld):
                out[v * ld + k] = 0


cdef void _local_chunk(const floating* data, Rows x, const floating* coef, Beside given,
                       Py_ssize_t first, Py_ssize_t last, Problem q, floating* resp, double* entropy,
                       double floor_, floating* w) noexcept nogil:
    """Shares of rows ``first`` to ``last - 1``; w has room for a tile and the scratch of the softmax."""
    cdef Py_ssize_t ld = (q.K + LANES - 1) // LANES * LANES, start = first, m, i, k, lo
    cdef Py_ssize_t n_entries
    cdef const floating* bias = coef + x.V * ld
    cdef floating* row
    if entropy != NULL:
        memset(entropy, 0, q.K * sizeof(double))
    while start < last:
        m = min(TILE_ROWS, last - start)
        for i in range(m):
            row = w + i * ld
            for k in range(ld):
                row[k] = bias[k]
            lo = x.indptr[start + i]
            n_entries = x.indptr[start + i + 1] - lo
            if floating is double:
                add_weights_d(row, coef, ld, data + lo, x.indices + lo, n_entries)
            else:
                add_weights_f(row, coef, ld, data + lo, x.indices + lo, n_entries)
        share_rows(w, resp + start * q.K, m, q, ld, floor_, from_row(given, start), entropy,
                   w + TILE_ROWS * ld)
        start += m


def sparse_shares(
    const floating[::1] data,            # IN  (nnz,)
    const int32_t[::1] indices,          # IN  (nnz,)
    const int64_t[::1] indptr,           # IN  (n + 1,)
    const floating[:, ::1] coef,         # IN  (K, V + 1), log weights included in the last column
    const double[::1] mass,              # IN  (n,) or None
    const double[::1] weight,            # IN  (n,) or None
    floating[:, ::1] resp,               # OUT (n, K): shares of each row, summing to 1
    double[::1] entropy,                 # OUT (K,) or None
    double[::1] log_norm,                # OUT (n,) or None
    Py_ssize_t n_nonzero,                # IN
    int n_threads,
    double floor_=RESP_FLOOR,            # IN
):
    """The shares of `_responsibilities.local_step`; arguments as there.

    Equivalent to ``share_out(x @ coef[:, :-1].T + coef[:, -1], mass, weight, ...)``.
    """
    cdef Problem q
    q.K = coef.shape[0]
    q.P = coef.shape[1]
    q.L = min(n_nonzero, q.K)
    cdef Rows x
    x.n = indptr.shape[0] - 1
    x.V = q.P - 1
    cdef Py_ssize_t n = x.n, ld = (q.K + LANES - 1) // LANES * LANES
    cdef Py_ssize_t n_chunks = (n + CHUNK_ROWS - 1) // CHUNK_ROWS, c, lo
    cdef Py_ssize_t n_works = max(1, min(n_threads, n_chunks))
    cdef size_t table = aligned_bytes(q.P * ld * sizeof(floating))
    cdef size_t each = aligned_bytes((TILE_ROWS + 2) * ld * sizeof(floating))
    cdef const floating* data_p = NULL
    cdef Beside given
    cdef double* entropies = NULL
    cdef char* block
    if n == 0 or q.K == 0:
        if entropy is not None:
            entropy[:] = 0
        return
    x.indptr = &indptr[0]
    x.indices = NULL
    if data.shape[0]:
        data_p, x.indices = &data[0], &indices[0]
    given = beside(mass, weight, log_norm)
    block = <char*>malloc(table + n_works * each + n_chunks * q.K * sizeof(double))
    if block == NULL:
        raise MemoryError("no memory for the coefficients' transpose and the work space of the shares")
    if entropy is not None:
        entropies = <double*>(block + table + n_works * each)
    with nogil:
        _transpose(&coef[0, 0], <floating*>block, q.K, q.P, ld)
    for c in prange(n_chunks, nogil=True, schedule="static", chunksize=1, num_threads=n_threads):
        lo = c * CHUNK_ROWS
        _local_chunk(
            data_p, x, <floating*>block, given, lo, min(lo + CHUNK_ROWS, n), q, &resp[0, 0],
            entropies + c * q.K if entropies != NULL else NULL, floor_,
            <floating*>(block + table + threadid() * each),
        )
    if entropies != NULL:
        with nogil:
            sum_chunks(&entropy[0], entropies, n_chunks, q.K)
    free(block)


cdef Py_ssize_t _n_filled(const floating* share, Py_ssize_t K) noexcept nogil:
    cdef Py_ssize_t k, n = 0
    for k in range(K):
        n += share[k] != 0
    return n


cdef void _sum_slice(const floating* data, Rows x, const floating* shares, const double* scale,
                     const char* few, Py_ssize_t K, Py_ssize_t first, Py_ssize_t last,
                     double* stats, double* sums, Py_ssize_t ld, double* w) noexcept nogil:
    """Statistics (K, V + 1) of components ``first`` to ``last - 1``.

    ``sums`` is (V, ld), or NULL if no row belongs to many components; ``w`` is (ld,).
    """
    cdef Py_ssize_t P = x.V + 1, i, j, k, v, start, lo, n_entries
    cdef Py_ssize_t width = (last - first + LANES - 1) // LANES * LANES
    cdef const floating* share
    cdef const int32_t* at
    cdef double value
    cdef double* s
    memset(stats + first * P, 0, (last - first) * P * sizeof(double))
    for k in range(width):
        w[k] = 0
    for i in range(x.n):
        share = shares + i * K
        lo = x.indptr[i]
        n_entries = x.indptr[i + 1] - lo
        at = x.indices + lo
        for k in range(first, last):
            if share[k] == 0:
                w[k - first] = 0
                continue
            value = <double>share[k] * (scale[i] if scale != NULL else 1.0)
            s = stats + k * P
            s[x.V] += value
            w[k - first] = value
            if few[i]:
                for j in range(n_entries):
                    s[at[j]] += data[lo + j] * value
        if few[i]:
            continue
        if floating is double:
            add_to_all_d(sums + first, ld, w, width, data + lo, at, n_entries)
        else:
            add_to_all_f(sums + first, ld, w, width, data + lo, at, n_entries)
    if sums != NULL:
        for i in range((x.V + TYPES - 1) // TYPES):
            start = i * TYPES
            for k in range(first, last):
                for v in range(start, min(start + TYPES, x.V)):
                    stats[k * P + v] += sums[v * ld + k]


def sparse_summary(
    const floating[::1] data,            # IN  (nnz,)
    const int32_t[::1] indices,          # IN  (nnz,)
    const int64_t[::1] indptr,           # IN  (n + 1,)
    const floating[:, ::1] shares,       # IN  (n, K)
    const double[::1] scale,             # IN  (n,) or None: factors of the shares of rows
    double[:, ::1] stats,                # OUT (K, V + 1)
    int n_threads,
):
    """Equivalent to ``stats = (scale[:, None] * shares).T @ [x, 1]``."""
    cdef Rows x
    x.n = indptr.shape[0] - 1
    x.V = stats.shape[1] - 1
    cdef Py_ssize_t n = x.n, K = shares.shape[1], ld = (K + LANES - 1) // LANES * LANES, i, c
    cdef Py_ssize_t n_slices = max(1, min(n_threads, ld // LANES)), wide, first
    cdef bint many = False
    cdef const floating* data_p = NULL
    cdef const double* scale_p = NULL
    cdef double* sums = NULL
    cdef char* few
    cdef char* work
    if n == 0 or K == 0:
        stats[:, :] = 0
        return
    x.indptr = &indptr[0]
    x.indices = NULL
    if data.shape[0]:
        data_p, x.indices = &data[0], &indices[0]
    if scale is not None:
        scale_p = &scale[0]
    few = <char*>malloc(n)
    work = <char*>malloc(ld * sizeof(double))
    if few != NULL:
        with nogil:
            for i in range(n):
                few[i] = FEW * _n_filled(&shares[i, 0], K) <= K + FEW
                many |= not few[i]
    if many:
        sums = <double*>calloc(x.V * ld + 1, sizeof(double))
    if few == NULL or work == NULL or (many and sums == NULL):
        free(few)
        free(work)
        free(sums)
        raise MemoryError("no memory for the sums of the summary step")
    wide = (ld // LANES + n_slices - 1) // n_slices * LANES
    for c in prange(n_slices, nogil=True, schedule="static", chunksize=1, num_threads=n_threads):
        first = c * wide
        if first < K:
            _sum_slice(
                data_p, x, &shares[0, 0], scale_p, few, K, first, min(first + wide, K),
                &stats[0, 0], sums, ld, <double*>work + first,
            )
    free(few)
    free(work)
    free(sums)


def are_counts(const floating[::1] x, bint binary):
    """Whether all numbers are whole and not negative; with ``binary``, whether all are 0 or 1.

    It is also false for numbers so large that not all whole numbers have a value of their own. A caller that
    gets false looks more closely.
    """
    if x.shape[0] == 0:
        return True
    if floating is double:
        return bool(are_counts_d(&x[0], x.shape[0], binary))
    else:
        return bool(are_counts_f(&x[0], x.shape[0], binary))
