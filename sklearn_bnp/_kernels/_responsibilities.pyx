"""The local step and the summary step of any mixture whose likelihood is linear in its statistics.

Design note
-----------
(a) Every family here has ``E[log p(x | k)] = coef_k . s(x)``, so for n rows the local step is one
    matrix product ``S coef'`` and the summary step is another, ``R' S``. Both run over tiles of
    rows for which S is built, used twice and forgotten: S never leaves the cache.
(b) Rows are cut into chunks of ``CHUNK_ROWS``; a chunk is worked through by one thread with
    accumulators of its own, and the chunks' sums are added in order. How many threads there are
    thus never changes a bit of the result.
(c) With data in many dimensions most responsibilities are 0 to the last bit. Those below
    ``RESP_FLOOR`` times the largest of the row are cleared, and a tile's summary step walks over the
    others one by one (four rows at a time, bucketed by component) where that is cheaper than
    the matrix product.
(d) float32 rows keep float32 in the products; sums over tiles are in float64.

These functions trust their callers; shapes and values are checked in the Python that calls them.
"""
from cython.parallel cimport prange
from libc.stdlib cimport calloc, free, malloc

from cython cimport floating

from ._tiles cimport (
    Problem, features, flush, gemm, keep_top, softmax_rows_d, softmax_rows_f, summarise_tile,
    tile_rows,
)


cpdef enum Quadratic:
    """What the quadratic part of s(x) holds."""
    NONE = 0        # s(x) = [x, 1]
    FULL = 1        # packed upper triangle of x x', row by row
    DIAG = 2        # x * x
    SPHERICAL = 3   # |x|^2

cdef Py_ssize_t CHUNK_ROWS = 1024
cdef Py_ssize_t FLUSH_ROWS = 256            # rows that float32 sums run over before they join float64
cdef double RESP_FLOOR = 1e-16              # relative to the row's largest: below the last bit of a sum
cdef double SPARSE_BELOW = 0.4              # share of nonzeros under which walking beats the product


def n_statistics(Py_ssize_t D, Quadratic quadratic, bint linear):
    """Length of s(x) for rows of D columns."""
    if quadratic == Quadratic.NONE:
        return D + 1
    if quadratic == Quadratic.FULL:
        P = D * (D + 1) // 2
    else:
        P = D if quadratic == Quadratic.DIAG else 1
    return P + (D if linear else 0) + 1


cdef struct Work:
    # Buffers of one thread. `weighted` and `partial` may be NULL: not needed.
    void* features      # (tile, P)
    void* scratch       # (K + 8,)
    void* weighted      # (tile, K) responsibilities times mass and weight
    void* partial       # (K, P) float32 sums on their way to float64
    void* values        # (tile * K,)
    Py_ssize_t* rows    # (K + 1 + tile * K,)


cdef bint _allocate(Work* work, Problem q, Py_ssize_t tile, Py_ssize_t itemsize, bint weighted,
                    bint partial) noexcept nogil:
    work.features = malloc(tile * q.P * itemsize)
    work.scratch = malloc((q.K + 8) * itemsize)
    work.weighted = malloc(tile * q.K * itemsize) if weighted else NULL
    work.partial = calloc(q.K * q.P, itemsize) if partial else NULL
    work.values = malloc(tile * q.K * itemsize)
    work.rows = <Py_ssize_t*>malloc((q.K + 1 + tile * q.K) * sizeof(Py_ssize_t))
    return (work.features != NULL and work.scratch != NULL and work.values != NULL
            and work.rows != NULL and (work.weighted != NULL or not weighted)
            and (work.partial != NULL or not partial))


cdef void _release(Work* work) noexcept nogil:
    free(work.features)
    free(work.scratch)
    free(work.weighted)
    free(work.partial)
    free(work.values)
    free(work.rows)


cdef void _weigh(floating* out, const floating* resp, const double* mass, const double* weight,
                 Py_ssize_t n, Py_ssize_t K) noexcept nogil:
    """out = mass * weight * resp, row by row."""
    cdef Py_ssize_t i, k
    cdef double a
    for i in range(n):
        a = 1.0
        if mass != NULL:
            a = mass[i]
        if weight != NULL:
            a = a * weight[i]
        for k in range(K):
            out[i * K + k] = <floating>(a * resp[i * K + k])


cdef int _local_chunk(const floating* x, const floating* coef, const double* mass, const double* weight,
                      Py_ssize_t n, Problem q, floating* resp, double* stats, double* entropy,
                      double* log_norm) noexcept nogil:
    """Local and summary step of one chunk; stats and entropy may be NULL. Returns 1 without memory."""
    cdef Py_ssize_t tile = min(n, tile_rows(q.P, sizeof(floating)))
    cdef Py_ssize_t start = 0, unflushed = 0, m, filled
    cdef bint weighted = stats != NULL and (mass != NULL or weight != NULL)
    cdef bint partial = stats != NULL and floating is float
    cdef floating* r
    cdef floating* out
    cdef Work work
    if not _allocate(&work, q, tile, sizeof(floating), weighted, partial):
        _release(&work)
        return 1
    out = <floating*>work.partial if partial else <floating*>stats
    while start < n:
        m = min(tile, n - start)
        r = resp + start * q.K
        features(<floating*>work.features, x + start * q.D, m, q)
        gemm("T", "N", <int>q.K, <int>m, <int>q.P, coef, <int>q.P, <floating*>work.features, <int>q.P,
             <floating>0, r, <int>q.K)
        if q.L < q.K:
            keep_top(r, m, q.K, q.L, <floating*>work.scratch)
        if floating is double:
            filled = softmax_rows_d(r, m, q.K, RESP_FLOOR, mass, weight, entropy, log_norm,
                                    <double*>work.scratch)
        else:
            filled = softmax_rows_f(r, m, q.K, <float>RESP_FLOOR, mass, weight, entropy, log_norm,
                                    <float*>work.scratch)
        if stats != NULL:
            if weighted:
                _weigh(<floating*>work.weighted, r, mass, weight, m, q.K)
                r = <floating*>work.weighted
            summarise_tile(out, <floating*>work.features, r, m, q, filled < SPARSE_BELOW * m * q.K,
                           work.rows, <floating*>work.values)
            unflushed += m
            if partial and unflushed >= FLUSH_ROWS:
                flush(stats, out, q.K * q.P)
                unflushed = 0
        start += m
        mass = mass + m if mass != NULL else NULL
        weight = weight + m if weight != NULL else NULL
        log_norm = log_norm + m if log_norm != NULL else NULL
    if partial and unflushed:
        flush(stats, out, q.K * q.P)
    _release(&work)
    return 0


def local_step(
    const floating[:, ::1] x,            # IN  (n, D)
    const floating[:, ::1] coef,         # IN  (K, P), log weights included in the last column
    Quadratic quadratic,                 # IN
    bint linear,                         # IN
    const double[::1] mass,              # IN  (n,) or None: the row's responsibility to share out
    const double[::1] weight,            # IN  (n,) or None: the row's sample weight
    floating[:, ::1] resp,               # OUT (n, K): shares of each row, summing to 1
    double[:, ::1] stats,                # OUT (K, P) or None
    double[::1] entropy,                 # OUT (K,) or None
    double[::1] log_norm,                # OUT (n,) or None
    Py_ssize_t n_nonzero,                # IN  L of Alg. 7.2; K for dense
    int n_threads,
):
    """Responsibilities of rows, and what they leave behind.

    Equivalent to, with ``s`` the (n, P) matrix of statistics::

        w = s @ coef.T                                   # all but the n_nonzero largest: -inf
        log_norm = logsumexp(w, axis=1)
        resp = exp(w - log_norm[:, None])
        m = mass[:, None] * resp
        stats = (weight[:, None] * m).T @ s
        entropy = -sum(weight[:, None] * m * log(m), axis=0)

    Hughes (2016), (3.48) with Alg. 7.1 and 7.2; (3.35) and (3.51); with ``mass``, the restricted
    local step (4.12), (4.17)-(4.19).
    """
    cdef Problem q
    q.D = x.shape[1]
    q.K = coef.shape[0]
    q.P = coef.shape[1]
    q.L = min(n_nonzero, q.K)
    q.quadratic = quadratic
    q.linear = linear
    cdef Py_ssize_t n = x.shape[0]
    cdef bint summary = stats is not None
    cdef Py_ssize_t n_chunks = max(1, (n + CHUNK_ROWS - 1) // CHUNK_ROWS), c, lo, rows
    cdef Py_ssize_t size = q.K * q.P
    cdef double* sums = NULL
    cdef double* entropies = NULL
    cdef int failures = 0
    cdef const double* mass_p = NULL
    cdef const double* weight_p = NULL
    cdef double* norm_p = NULL
    cdef const floating* coef_p
    if n == 0 or q.K == 0:
        if summary:
            stats[:, :] = 0
        if entropy is not None:
            entropy[:] = 0
        return
    coef_p = &coef[0, 0]
    if mass is not None:
        mass_p = &mass[0]
    if weight is not None:
        weight_p = &weight[0]
    if log_norm is not None:
        norm_p = &log_norm[0]
    if summary:
        sums = <double*>calloc(n_chunks * size, sizeof(double))
    if entropy is not None:
        entropies = <double*>calloc(n_chunks * q.K, sizeof(double))
    if (summary and sums == NULL) or (entropy is not None and entropies == NULL):
        free(sums)
        free(entropies)
        raise MemoryError("no memory for the sums of the local step")
    for c in prange(n_chunks, nogil=True, schedule="static", chunksize=1, num_threads=n_threads):
        lo = c * CHUNK_ROWS
        rows = min(CHUNK_ROWS, n - lo)
        failures += _local_chunk(
            &x[lo, 0], coef_p,
            mass_p + lo if mass_p != NULL else NULL, weight_p + lo if weight_p != NULL else NULL,
            rows, q, &resp[lo, 0], sums + c * size if sums != NULL else NULL,
            entropies + c * q.K if entropies != NULL else NULL,
            norm_p + lo if norm_p != NULL else NULL,
        )
    with nogil:
        if sums != NULL:
            _sum_chunks(&stats[0, 0], sums, n_chunks, size)
        if entropies != NULL:
            _sum_chunks(&entropy[0], entropies, n_chunks, q.K)
    free(sums)
    free(entropies)
    if failures:
        raise MemoryError("no memory for a tile of the local step")


cdef void _sum_chunks(double* out, const double* parts, Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t c, i
    for i in range(size):
        out[i] = parts[i]
    for c in range(1, n):
        for i in range(size):
            out[i] += parts[c * size + i]


def statistics(const floating[:, ::1] x, Quadratic quadratic, bint linear, floating[:, ::1] out):
    """Rows of s(x) into ``out`` (n, P). Equivalent to stacking [quadratic part, x, 1]."""
    cdef Problem q
    q.D = x.shape[1]
    q.quadratic = quadratic
    q.linear = linear
    cdef Py_ssize_t n = x.shape[0]
    if n:
        with nogil:
            features(&out[0, 0], &x[0, 0], n, q)


def summarise(const floating[:, ::1] x, const floating[:, ::1] resp, Quadratic quadratic, bint linear,
              double[:, ::1] stats, bint sparse):
    """``stats = resp.T @ s(x)`` (K, P); ``sparse`` walks over the nonzeros of ``resp`` instead."""
    cdef Problem q
    cdef Work work
    q.D = x.shape[1]
    q.K = resp.shape[1]
    q.P = stats.shape[1]
    q.L = q.K
    q.quadratic = quadratic
    q.linear = linear
    cdef Py_ssize_t n = x.shape[0], tile = tile_rows(q.P, sizeof(floating)), start = 0, m
    cdef bint partial = floating is float
    cdef floating* out
    stats[:, :] = 0
    if n == 0 or q.K == 0:
        return
    if not _allocate(&work, q, tile, sizeof(floating), False, partial):
        _release(&work)
        raise MemoryError("no memory for a tile of the summary step")
    with nogil:
        out = <floating*>work.partial if partial else <floating*>&stats[0, 0]
        while start < n:
            m = min(tile, n - start)
            features(<floating*>work.features, &x[start, 0], m, q)
            summarise_tile(out, <floating*>work.features, &resp[start, 0], m, q, sparse, work.rows,
                           <floating*>work.values)
            if partial:
                flush(&stats[0, 0], out, q.K * q.P)
            start += m
        _release(&work)
