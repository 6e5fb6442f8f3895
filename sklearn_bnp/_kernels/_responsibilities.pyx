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
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemm, sgemm

from cython cimport floating

import numpy as np

cdef extern from "vector_math.h" nogil:
    Py_ssize_t softmax_rows_d(double*, Py_ssize_t, Py_ssize_t, double, const double*, const double*,
                              double*, double*, double*)
    Py_ssize_t softmax_rows_f(float*, Py_ssize_t, Py_ssize_t, float, const double*, const double*,
                              double*, double*, float*)
    void add_rows4_d(double*, const double*, const double*, const double*, const double*,
                     double, double, double, double, Py_ssize_t)
    void add_rows4_f(float*, const float*, const float*, const float*, const float*,
                     float, float, float, float, Py_ssize_t)
    void add_row_d(double*, const double*, double, Py_ssize_t)
    void add_row_f(float*, const float*, float, Py_ssize_t)
    void features_full_d(double*, const double*, Py_ssize_t, Py_ssize_t, int)
    void features_full_f(float*, const float*, Py_ssize_t, Py_ssize_t, int)
    void features_diag_d(double*, const double*, Py_ssize_t, Py_ssize_t, int)
    void features_diag_f(float*, const float*, Py_ssize_t, Py_ssize_t, int)
    void features_spherical_d(double*, const double*, Py_ssize_t, Py_ssize_t, int)
    void features_spherical_f(float*, const float*, Py_ssize_t, Py_ssize_t, int)
    void features_linear_d(double*, const double*, Py_ssize_t, Py_ssize_t)
    void features_linear_f(float*, const float*, Py_ssize_t, Py_ssize_t)

# What the quadratic part of s(x) holds.
cpdef enum Quadratic:
    NONE = 0        # s(x) = [x, 1]
    FULL = 1        # packed upper triangle of x x', row by row
    DIAG = 2        # x * x
    SPHERICAL = 3   # |x|^2

cdef Py_ssize_t CHUNK_ROWS = 1024
cdef Py_ssize_t TILE_BYTES = 512 * 1024     # of statistics: half to all of a core's second-level cache
cdef double RESP_FLOOR = 1e-16              # relative to the row's largest: below the last bit of a sum
cdef double SPARSE_BELOW = 0.4              # share of nonzeros under which walking beats the product


cdef struct Problem:
    Py_ssize_t n, D, P, K, L
    int quadratic, linear


def n_statistics(Py_ssize_t D, int quadratic, bint linear):
    """Length of s(x) for rows of D columns."""
    return _n_statistics(D, quadratic, linear)


cdef Py_ssize_t _n_statistics(Py_ssize_t D, int quadratic, bint linear) noexcept nogil:
    cdef Py_ssize_t P = 1
    if quadratic == NONE:
        return D + 1
    if linear:
        P += D
    if quadratic == FULL:
        return P + D * (D + 1) // 2
    return P + (D if quadratic == DIAG else 1)


cdef void _features(floating* out, const floating* x, Py_ssize_t n, Problem q) noexcept nogil:
    if floating is double:
        if q.quadratic == FULL:
            features_full_d(out, x, n, q.D, q.linear)
        elif q.quadratic == DIAG:
            features_diag_d(out, x, n, q.D, q.linear)
        elif q.quadratic == SPHERICAL:
            features_spherical_d(out, x, n, q.D, q.linear)
        else:
            features_linear_d(out, x, n, q.D)
    else:
        if q.quadratic == FULL:
            features_full_f(out, x, n, q.D, q.linear)
        elif q.quadratic == DIAG:
            features_diag_f(out, x, n, q.D, q.linear)
        elif q.quadratic == SPHERICAL:
            features_spherical_f(out, x, n, q.D, q.linear)
        else:
            features_linear_f(out, x, n, q.D)


cdef inline void _gemm(char* ta, char* tb, int m, int n, int k, const floating* a, int lda,
                       const floating* b, int ldb, floating beta, floating* c, int ldc) noexcept nogil:
    cdef floating one = 1
    if floating is double:
        dgemm(ta, tb, &m, &n, &k, &one, <double*>a, &lda, <double*>b, &ldb, &beta, c, &ldc)
    else:
        sgemm(ta, tb, &m, &n, &k, &one, <float*>a, &lda, <float*>b, &ldb, &beta, c, &ldc)


cdef floating _kth_largest(floating* v, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """The k-th largest of v (k from 1), by Hoare's quickselect; v is reordered."""
    cdef Py_ssize_t lo = 0, hi = n - 1, i, j, want = k - 1
    cdef floating pivot, t
    while lo < hi:
        pivot = v[(lo + hi) // 2]
        i = lo
        j = hi
        while i <= j:
            while v[i] > pivot:
                i += 1
            while v[j] < pivot:
                j -= 1
            if i <= j:
                t = v[i]
                v[i] = v[j]
                v[j] = t
                i += 1
                j -= 1
        if want <= j:
            hi = j
        elif want >= i:
            lo = i
        else:
            break
    return v[want]


cdef floating _threshold(const floating* w, Py_ssize_t K, Py_ssize_t L, floating* scratch) noexcept nogil:
    """The L-th largest weight of a row: insertion into a short sorted list, or quickselect."""
    cdef Py_ssize_t k, j
    if L > 8:
        for k in range(K):
            scratch[k] = w[k]
        return _kth_largest(scratch, K, L)
    for j in range(L):
        scratch[j] = w[j]
        k = j
        while k > 0 and scratch[k] > scratch[k - 1]:
            scratch[k], scratch[k - 1] = scratch[k - 1], scratch[k]
            k -= 1
    for j in range(L, K):
        if w[j] > scratch[L - 1]:
            k = L - 1
            while k > 0 and w[j] > scratch[k - 1]:
                scratch[k] = scratch[k - 1]
                k -= 1
            scratch[k] = w[j]
    return scratch[L - 1]


cdef void _keep_top(floating* w, Py_ssize_t n, Py_ssize_t K, Py_ssize_t L, floating* scratch) noexcept nogil:
    """All but the L largest weights of each row are set to -inf; of ties the first stay (Alg. 7.2)."""
    cdef Py_ssize_t i, k, above
    cdef floating bar
    cdef floating* row
    for i in range(n):
        row = w + i * K
        bar = _threshold(row, K, L, scratch)
        above = 0
        for k in range(K):
            above += row[k] > bar
        above = L - above           # how many that equal the bar may stay
        for k in range(K):
            if row[k] < bar:
                row[k] = -1e30
            elif row[k] == bar:
                if above > 0:
                    above -= 1
                else:
                    row[k] = -1e30


cdef void _add_sparse(floating* out, const floating* features, const floating* resp, Py_ssize_t n,
                      Py_ssize_t K, Py_ssize_t P, Py_ssize_t* rows) noexcept nogil:
    """out += R' S over the nonzeros of R (n, K), four rows of a component at a time."""
    cdef Py_ssize_t k, i, m
    cdef const floating* r
    for k in range(K):
        m = 0
        r = resp + k
        for i in range(n):
            rows[m] = i
            m += r[i * K] > 0
        i = 0
        while i + 4 <= m:
            if floating is double:
                add_rows4_d(out + k * P, features + rows[i] * P, features + rows[i + 1] * P,
                            features + rows[i + 2] * P, features + rows[i + 3] * P,
                            r[rows[i] * K], r[rows[i + 1] * K], r[rows[i + 2] * K],
                            r[rows[i + 3] * K], P)
            else:
                add_rows4_f(out + k * P, features + rows[i] * P, features + rows[i + 1] * P,
                            features + rows[i + 2] * P, features + rows[i + 3] * P,
                            r[rows[i] * K], r[rows[i + 1] * K], r[rows[i + 2] * K],
                            r[rows[i + 3] * K], P)
            i += 4
        while i < m:
            if floating is double:
                add_row_d(out + k * P, features + rows[i] * P, r[rows[i] * K], P)
            else:
                add_row_f(out + k * P, features + rows[i] * P, r[rows[i] * K], P)
            i += 1


cdef void _summarise(double* stats, floating* partial, const floating* features, const floating* resp,
                     Py_ssize_t n, Problem q, bint sparse, Py_ssize_t* rows) noexcept nogil:
    """stats (K, P) += R' S for one tile."""
    cdef Py_ssize_t i
    if floating is double:
        if sparse:
            _add_sparse(stats, features, resp, n, q.K, q.P, rows)
        else:
            _gemm("N", "T", <int>q.P, <int>q.K, <int>n, features, <int>q.P, resp, <int>q.K,
                  <double>1, stats, <int>q.P)
    else:
        memset(partial, 0, q.K * q.P * sizeof(floating))
        if sparse:
            _add_sparse(partial, features, resp, n, q.K, q.P, rows)
        else:
            _gemm("N", "T", <int>q.P, <int>q.K, <int>n, features, <int>q.P, resp, <int>q.K,
                  <float>0, partial, <int>q.P)
        for i in range(q.K * q.P):
            stats[i] += partial[i]


cdef Py_ssize_t _tile_rows(Py_ssize_t P, Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t rows = TILE_BYTES // (P * itemsize)
    rows = rows - rows % 8
    return min(256, max(64, rows))


cdef int _local_chunk(const floating* x, const floating* coef, const double* mass, const double* weight,
                      Py_ssize_t n, Problem q, floating* resp, double* stats, double* entropy,
                      double* log_norm) noexcept nogil:
    """Local and summary step of one chunk; stats and entropy may be NULL. Returns -1 without memory."""
    cdef Py_ssize_t tile = min(n, _tile_rows(q.P, sizeof(floating)))
    cdef floating* features = <floating*>malloc(tile * q.P * sizeof(floating))
    cdef floating* scratch = <floating*>malloc((q.K + 8) * sizeof(floating))
    cdef floating* weighted = NULL
    cdef floating* partial = NULL
    cdef Py_ssize_t* rows = <Py_ssize_t*>malloc((tile + 1) * sizeof(Py_ssize_t))
    cdef Py_ssize_t start, m, i, k, filled
    cdef double a
    cdef floating* r
    cdef int status = 0
    if stats != NULL and (mass != NULL or weight != NULL):
        weighted = <floating*>malloc(tile * q.K * sizeof(floating))
    if stats != NULL and floating is float:
        partial = <floating*>malloc(q.K * q.P * sizeof(floating))
    if (features == NULL or scratch == NULL or rows == NULL
            or (stats != NULL and (mass != NULL or weight != NULL) and weighted == NULL)
            or (stats != NULL and floating is float and partial == NULL)):
        status = -1
    start = 0
    while start < n and status == 0:
        m = min(tile, n - start)
        r = resp + start * q.K
        _features(features, x + start * q.D, m, q)
        _gemm("T", "N", <int>q.K, <int>m, <int>q.P, coef, <int>q.P, features, <int>q.P,
              <floating>0, r, <int>q.K)
        if q.L < q.K:
            _keep_top(r, m, q.K, q.L, scratch)
        if floating is double:
            filled = softmax_rows_d(r, m, q.K, RESP_FLOOR, NULL if mass == NULL else mass + start,
                                    NULL if weight == NULL else weight + start, entropy,
                                    NULL if log_norm == NULL else log_norm + start, scratch)
        else:
            filled = softmax_rows_f(r, m, q.K, <float>RESP_FLOOR, NULL if mass == NULL else mass + start,
                                    NULL if weight == NULL else weight + start, entropy,
                                    NULL if log_norm == NULL else log_norm + start, scratch)
        if stats != NULL:
            if weighted != NULL:
                for i in range(m):
                    a = 1.0
                    if mass != NULL:
                        a = mass[start + i]
                    if weight != NULL:
                        a = a * weight[start + i]
                    for k in range(q.K):
                        weighted[i * q.K + k] = <floating>(a * r[i * q.K + k])
                r = weighted
            _summarise(stats, partial, features, r, m, q, filled < SPARSE_BELOW * m * q.K, rows)
        start += m
    free(features)
    free(scratch)
    free(weighted)
    free(partial)
    free(rows)
    return status


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
    q.n = x.shape[0]
    q.D = x.shape[1]
    q.K = coef.shape[0]
    q.P = coef.shape[1]
    q.L = min(n_nonzero, q.K)
    q.quadratic = quadratic
    q.linear = linear
    cdef bint summary = stats is not None
    cdef Py_ssize_t n_chunks = max(1, (q.n + CHUNK_ROWS - 1) // CHUNK_ROWS), c, i, lo, rows
    cdef Py_ssize_t size = q.K * q.P
    cdef double* sums = NULL
    cdef double* entropies = NULL
    cdef int failures = 0
    cdef const double* mass_p = NULL
    cdef const double* weight_p = NULL
    cdef double* norm_p = NULL
    cdef const floating* coef_p
    if q.n == 0 or q.K == 0:
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
        rows = min(CHUNK_ROWS, q.n - lo)
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
    q.n = x.shape[0]
    q.D = x.shape[1]
    q.quadratic = quadratic
    q.linear = linear
    if q.n:
        with nogil:
            _features(&out[0, 0], &x[0, 0], q.n, q)


def summarise(const floating[:, ::1] x, const floating[:, ::1] resp, Quadratic quadratic, bint linear,
              double[:, ::1] stats, bint sparse):
    """``stats = resp.T @ s(x)`` (K, P); ``sparse`` walks over the nonzeros of ``resp`` instead."""
    cdef Problem q
    q.n = x.shape[0]
    q.D = x.shape[1]
    q.K = resp.shape[1]
    q.P = stats.shape[1]
    q.L = q.K
    q.quadratic = quadratic
    q.linear = linear
    cdef Py_ssize_t tile = _tile_rows(q.P, sizeof(floating)), start = 0, m
    features_a = np.empty((tile, q.P), dtype=np.float64 if floating is double else np.float32)
    partial_a = np.empty((q.K, q.P), dtype=np.float64 if floating is double else np.float32)
    rows_a = np.empty(tile + 1, dtype=np.intp)
    cdef floating[:, ::1] features = features_a
    cdef floating[:, ::1] partial = partial_a
    cdef Py_ssize_t[::1] rows = rows_a
    stats[:, :] = 0
    with nogil:
        while start < q.n:
            m = min(tile, q.n - start)
            _features(&features[0, 0], &x[start, 0], m, q)
            _summarise(&stats[0, 0], &partial[0, 0], &features[0, 0], &resp[start, 0], m, q, sparse,
                       &rows[0])
            start += m
