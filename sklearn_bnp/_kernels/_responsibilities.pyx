"""The local step and the summary step of any mixture whose likelihood is linear in its statistics.

Design note
-----------
(a) Every family here has ``E[log p(x | k)] = coef_k . s(x)``, so for n rows the local step is one
    matrix product ``S coef'`` and the summary step is another, ``R' S``. Both run over tiles of
    rows for which S is built, used twice and forgotten: S never leaves the cache.
(b) Rows are cut into chunks of ``CHUNK_ROWS``. One thread works through a chunk, with accumulators of its
    own, and the sums of chunks are added in order. So no bit of the result depends on the number of
    threads.
(c) For data in many dimensions, most responsibilities are 0 to the last bit. Those below ``RESP_FLOOR`` times
    the largest of the row are cleared. In tiles where few are left, the summary step walks over these,
    component by component, at the end of the chunk (`pair_sums.h`).
(d) All work space of a call is one block, which the C library gives to the next call again. It would return
    many small blocks to the system, and fresh pages took 6 % of the time.
(e) For float32 rows, products are in float32, and sums over tiles in float64.

These functions trust their callers; shapes and values are checked in the Python that calls them.
"""
from cython.parallel cimport prange, threadid
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from cython cimport floating

from ._tiles cimport (
    LANES, Beside, Pairs, Problem, add_product, aligned_bytes, beside, collect_pairs, features, from_row,
    gemm, pairs_place, share_rows, sum_chunks, sum_pairs, tile_rows, transpose,
)


cpdef enum Quadratic:
    """The quadratic part of s(x)."""
    NONE = 0        # s(x) = [x, 1]
    FULL = 1        # packed upper triangle of x x', row by row
    DIAG = 2        # x * x
    SPHERICAL = 3   # |x|^2

cdef Py_ssize_t CHUNK_ROWS = 1024
cdef Py_ssize_t SHARE_ROWS = 32             # rows of a table that are worked on at a time
cdef double RESP_FLOOR = 1e-16              # relative to the row's largest: below the last bit of a sum


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
    # Buffers of one thread. `wide` and `partial` are only for float32.
    void* features      # (tile, P)
    void* weights       # (tile, ld) log weights, then weighted responsibilities
    void* scratch       # (2 ld,)
    float* partial      # (P, K) float32 sums of a tile
    double* wide        # (P, K) sums of the tiles of a chunk
    Pairs pairs
    Py_ssize_t tile, ld


cdef size_t _place(Work* work, char* base, Problem q, Py_ssize_t rows, Py_ssize_t capacity,
                   size_t itemsize) noexcept nogil:
    """Lay out buffers for chunks of ``rows`` rows at ``base``, unless it is NULL; returns their bytes."""
    cdef Py_ssize_t tile = min(rows, tile_rows(q.P, itemsize))
    cdef Py_ssize_t ld = (q.K + LANES - 1) // LANES * LANES
    cdef size_t s = aligned_bytes(tile * q.P * itemsize)
    cdef size_t w = aligned_bytes(tile * ld * itemsize)
    cdef size_t scratch = aligned_bytes(2 * ld * itemsize)
    cdef size_t partial = 0, wide = 0
    if itemsize == sizeof(float):
        partial = aligned_bytes(q.K * q.P * sizeof(float))
        wide = aligned_bytes(q.K * q.P * sizeof(double))
    if base != NULL:
        work.tile = tile
        work.ld = ld
        work.features = base
        work.weights = base + s
        work.scratch = base + s + w
        work.partial = <float*>(base + s + w + scratch)
        work.wide = <double*>(base + s + w + scratch + partial)
        base += s + w + scratch + partial + wide
    return s + w + scratch + partial + wide + pairs_place(
        &work.pairs, base, itemsize, capacity, q.K, q.D, q.quadratic == Quadratic.FULL
    )


cdef double _few(Problem q) noexcept nogil:
    """Share of nonzeros below which walking over them is faster than the matrix product.

    Fitted to timings for D = 2..64, K = 10..200 (the scan of the rows and the overhead of BLAS cancel). An
    entry of the product takes 0.06 ns. A pair takes 8 ns, and for each statistic 0.08 ns in a full family
    and 0.33 ns in the others, whose sums are not kept in registers.
    """
    if q.quadratic == Quadratic.FULL:
        return 0.75 * q.P / (q.P + 100.0)
    return 0.18 * q.P / (q.P + 25.0)


cdef void _local_chunk(const floating* x, const floating* coef, Beside given, Py_ssize_t n, Problem q,
                       floating* resp, double* stats, double* entropy, double floor_,
                       Work* work) noexcept nogil:
    """Local and summary step of one chunk; sums start from zero, stats and entropy may be NULL."""
    cdef Py_ssize_t start = 0, ld = work.ld, m, filled
    cdef double few = _few(q)
    cdef bint fresh = True      # no tile has been added to stats by a product
    cdef floating* w = <floating*>work.weights
    cdef floating* s = <floating*>work.features
    if entropy != NULL:
        memset(entropy, 0, q.K * sizeof(double))
    while start < n:
        m = min(work.tile, n - start)
        features(s, x + start * q.D, m, q)
        gemm("T", "N", <int>q.K, <int>m, <int>q.P, coef, <int>q.P, s, <int>q.P, <floating>0, w, <int>ld)
        filled = share_rows(w, resp + start * q.K, m, q, ld, floor_, from_row(given, start), entropy,
                            <floating*>work.scratch)
        if stats != NULL and filled < few * m * q.K:
            collect_pairs(&work.pairs, w, m, q.K, ld, start)
        elif stats != NULL:
            add_product(stats, work.wide, work.partial, s, w, m, ld, fresh, q)
            fresh = False
        start += m
    if stats != NULL:
        _finish(stats, x, work, fresh, q)


cdef void _finish(double* stats, const floating* x, Work* work, bint fresh, Problem q) noexcept nogil:
    """Complete the sums of a chunk of rows x: transpose them, and add the pairs that were collected."""
    if floating is float and not fresh:
        transpose(stats, work.wide, q.K, q.P)
    if fresh or work.pairs.n:
        sum_pairs(stats, x, &work.pairs, fresh, q)


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
    double floor_=RESP_FLOOR,            # IN  shares of less than the row's largest times this are cleared
):
    """Responsibilities of rows, their statistics and their entropies.

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
    cdef Py_ssize_t n_works = max(1, min(n_threads, n_chunks)), chunk = min(n, CHUNK_ROWS)
    cdef Py_ssize_t capacity = <Py_ssize_t>(_few(q) * chunk * q.K) + 1
    cdef size_t sums_bytes = aligned_bytes(n_chunks * size * sizeof(double)) if summary else 0
    cdef size_t entropies_bytes = n_chunks * q.K * sizeof(double) if entropy is not None else 0
    cdef size_t works_bytes = aligned_bytes(n_works * sizeof(Work)), each
    cdef char* block
    cdef Work any_work
    cdef Work* works
    cdef double* sums = NULL
    cdef double* entropies = NULL
    cdef const floating* coef_p
    cdef Beside given
    if n == 0 or q.K == 0:
        if summary:
            stats[:, :] = 0
        if entropy is not None:
            entropy[:] = 0
        return
    coef_p = &coef[0, 0]
    given = beside(mass, weight, log_norm)
    each = _place(&any_work, NULL, q, chunk, capacity, sizeof(floating))
    block = <char*>malloc(works_bytes + n_works * each + sums_bytes + entropies_bytes)
    if block == NULL:
        raise MemoryError("no memory for the work space and the sums of the local step")
    works = <Work*>block
    for c in range(n_works):
        _place(works + c, block + works_bytes + c * each, q, chunk, capacity, sizeof(floating))
    if summary:
        sums = <double*>(block + works_bytes + n_works * each)
    if entropy is not None:
        entropies = <double*>(block + works_bytes + n_works * each + sums_bytes)
    for c in prange(n_chunks, nogil=True, schedule="static", chunksize=1, num_threads=n_threads):
        lo = c * CHUNK_ROWS
        rows = min(CHUNK_ROWS, n - lo)
        _local_chunk(
            &x[lo, 0], coef_p, from_row(given, lo), rows, q, &resp[lo, 0],
            sums + c * size if sums != NULL else NULL,
            entropies + c * q.K if entropies != NULL else NULL, floor_, works + threadid(),
        )
    with nogil:
        if summary:
            sum_chunks(&stats[0, 0], sums, n_chunks, size)
        if entropies != NULL:
            sum_chunks(&entropy[0], entropies, n_chunks, q.K)
    free(block)


cdef void _share_chunk(const floating* table, Beside given, Py_ssize_t n, Problem q, floating* resp,
                       double* entropy, double floor_, floating* w) noexcept nogil:
    """Shares of one chunk of a table; w has room for a tile of rows and the scratch of the softmax."""
    cdef Py_ssize_t ld = (q.K + LANES - 1) // LANES * LANES, start = 0, m, i
    cdef floating* scratch = w + SHARE_ROWS * ld
    if entropy != NULL:
        memset(entropy, 0, q.K * sizeof(double))
    while start < n:
        m = min(SHARE_ROWS, n - start)
        for i in range(m):
            memcpy(w + i * ld, table + (start + i) * q.K, q.K * sizeof(floating))
        share_rows(w, resp + start * q.K, m, q, ld, floor_, from_row(given, start), entropy, scratch)
        start += m


def share_out(
    const floating[:, ::1] table,        # IN  (n, K) log weights
    const double[::1] mass,              # IN  (n,) or None
    const double[::1] weight,            # IN  (n,) or None
    floating[:, ::1] resp,               # OUT (n, K)
    double[::1] entropy,                 # OUT (K,) or None
    double[::1] log_norm,                # OUT (n,) or None
    Py_ssize_t n_nonzero,                # IN
    int n_threads,
    double floor_=RESP_FLOOR,            # IN
):
    """The shares of `local_step` from a table of log weights; other arguments as there."""
    cdef Problem q
    q.K = table.shape[1]
    q.L = min(n_nonzero, q.K)
    cdef Py_ssize_t n = table.shape[0], ld = (q.K + LANES - 1) // LANES * LANES
    cdef Py_ssize_t n_chunks = (n + CHUNK_ROWS - 1) // CHUNK_ROWS, c, lo
    cdef Py_ssize_t n_works = max(1, min(n_threads, n_chunks))
    cdef size_t each = aligned_bytes((SHARE_ROWS + 2) * ld * sizeof(floating))
    cdef double* entropies = NULL
    cdef Beside given
    cdef char* block
    if n == 0 or q.K == 0:
        if entropy is not None:
            entropy[:] = 0
        return
    given = beside(mass, weight, log_norm)
    block = <char*>malloc(n_works * each + n_chunks * q.K * sizeof(double))
    if block == NULL:
        raise MemoryError("no memory for the work space of the shares")
    if entropy is not None:
        entropies = <double*>(block + n_works * each)
    for c in prange(n_chunks, nogil=True, schedule="static", chunksize=1, num_threads=n_threads):
        lo = c * CHUNK_ROWS
        _share_chunk(
            &table[lo, 0], from_row(given, lo), min(CHUNK_ROWS, n - lo), q, &resp[lo, 0],
            entropies + c * q.K if entropies != NULL else NULL, floor_,
            <floating*>(block + threadid() * each),
        )
    if entropies != NULL:
        with nogil:
            sum_chunks(&entropy[0], entropies, n_chunks, q.K)
    free(block)


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
    cdef Py_ssize_t n = x.shape[0], rows = min(n, CHUNK_ROWS), start = 0, m
    cdef char* block
    if n == 0 or q.K == 0:
        stats[:, :] = 0
        return
    block = <char*>malloc(_place(&work, NULL, q, rows, rows * q.K, sizeof(floating)))
    if block == NULL:
        raise MemoryError("no memory for the work space of the summary step")
    with nogil:
        _place(&work, block, q, rows, rows * q.K, sizeof(floating))
        while start < n:
            m = min(rows if sparse else work.tile, n - start)
            if sparse:
                collect_pairs(&work.pairs, &resp[start, 0], m, q.K, q.K, 0)
                sum_pairs(&stats[0, 0], &x[start, 0], &work.pairs, start == 0, q)
            else:
                features(<floating*>work.features, &x[start, 0], m, q)
                add_product(&stats[0, 0], work.wide, work.partial, <floating*>work.features,
                            &resp[start, 0], m, q.K, start == 0, q)
            start += m
        if floating is float and not sparse:
            transpose(&stats[0, 0], work.wide, q.K, q.P)
        free(block)
