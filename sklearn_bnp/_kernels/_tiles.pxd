"""Operations on one tile of rows: statistics, products, selection, sums.

They are inlined into the kernels that cimport them. A tile is so small that its statistics stay in the
second-level cache between the two products that use them.
"""
from scipy.linalg.cython_blas cimport dgemm, sgemm

from cython cimport floating

cdef extern from "vector_math.h" nogil:
    const Py_ssize_t LANES
    const double NEGLIGIBLE_d
    const float NEGLIGIBLE_f
    enum:
        QUADRATIC_FULL
        QUADRATIC_DIAG
        QUADRATIC_SPHERICAL
    ctypedef struct Pairs:
        Py_ssize_t n
    size_t aligned_bytes(size_t)
    size_t pairs_place(Pairs*, char*, size_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, int)
    void collect_pairs_d(Pairs*, const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void collect_pairs_f(Pairs*, const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void sum_pairs_d(double*, const double*, Pairs*, int, Py_ssize_t, Py_ssize_t, Py_ssize_t, int,
                     int)
    void sum_pairs_f(double*, const float*, Pairs*, int, Py_ssize_t, Py_ssize_t, Py_ssize_t, int,
                     int)
    void add_wide(double*, const float*, Py_ssize_t, int)
    Py_ssize_t keep_few_d(double*, Py_ssize_t, Py_ssize_t, double*)
    Py_ssize_t keep_few_f(float*, Py_ssize_t, Py_ssize_t, float*)
    Py_ssize_t softmax_rows_d(double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double,
                              const double*, const double*, double*, double*, double*)
    Py_ssize_t softmax_rows_f(float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, float,
                              const double*, const double*, double*, double*, float*)
    void features_full_d(double*, const double*, Py_ssize_t, Py_ssize_t, int)
    void features_full_f(float*, const float*, Py_ssize_t, Py_ssize_t, int)
    void features_diag_d(double*, const double*, Py_ssize_t, Py_ssize_t, int)
    void features_diag_f(float*, const float*, Py_ssize_t, Py_ssize_t, int)
    void features_spherical_d(double*, const double*, Py_ssize_t, Py_ssize_t, int)
    void features_spherical_f(float*, const float*, Py_ssize_t, Py_ssize_t, int)
    void features_linear_d(double*, const double*, Py_ssize_t, Py_ssize_t)
    void features_linear_f(float*, const float*, Py_ssize_t, Py_ssize_t)


# Columns, length of s(x), components, most nonzeros a row, and the layout of s(x).
cdef struct Problem:
    Py_ssize_t D, P, K, L
    int quadratic, linear


cdef inline void features(floating* out, const floating* x, Py_ssize_t n, Problem q) noexcept nogil:
    if floating is double:
        if q.quadratic == QUADRATIC_FULL:
            features_full_d(out, x, n, q.D, q.linear)
        elif q.quadratic == QUADRATIC_DIAG:
            features_diag_d(out, x, n, q.D, q.linear)
        elif q.quadratic == QUADRATIC_SPHERICAL:
            features_spherical_d(out, x, n, q.D, q.linear)
        else:
            features_linear_d(out, x, n, q.D)
    else:
        if q.quadratic == QUADRATIC_FULL:
            features_full_f(out, x, n, q.D, q.linear)
        elif q.quadratic == QUADRATIC_DIAG:
            features_diag_f(out, x, n, q.D, q.linear)
        elif q.quadratic == QUADRATIC_SPHERICAL:
            features_spherical_f(out, x, n, q.D, q.linear)
        else:
            features_linear_f(out, x, n, q.D)


cdef inline void gemm(char* ta, char* tb, int m, int n, int k, const floating* a, int lda,
                      const floating* b, int ldb, floating beta, floating* c, int ldc) noexcept nogil:
    cdef floating one = 1
    if floating is double:
        dgemm(ta, tb, &m, &n, &k, &one, <double*>a, &lda, <double*>b, &ldb, &beta, c, &ldc)
    else:
        sgemm(ta, tb, &m, &n, &k, &one, <float*>a, &lda, <float*>b, &ldb, &beta, c, &ldc)


cdef inline floating kth_largest(floating* v, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
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


cdef inline void keep_top(floating* w, Py_ssize_t n, Py_ssize_t K, Py_ssize_t ld,
                          Py_ssize_t L, floating* scratch) noexcept nogil:
    """Make all but the L largest weights of each row negligible; the first of equal ones stay (Alg. 7.2).

    Rows begin ld numbers apart.
    """
    cdef Py_ssize_t i, k, spare
    cdef floating bar, negligible
    cdef floating* row
    if floating is double:
        negligible = NEGLIGIBLE_d
    else:
        negligible = NEGLIGIBLE_f
    for i in range(n):
        row = w + i * ld
        if L <= 8:
            if floating is double:
                spare = keep_few_d(row, K, L, &bar)
            else:
                spare = keep_few_f(row, K, L, &bar)
        else:
            for k in range(K):
                scratch[k] = row[k]
            bar = kth_largest(scratch, K, L)
            spare = L
            for k in range(K):
                if row[k] < bar:
                    row[k] = negligible
                elif row[k] > bar:
                    spare -= 1
        if spare >= 0:                  # weights equal to the bar: as many as there is room for
            for k in range(K):
                if row[k] == bar:
                    if spare == 0:
                        row[k] = negligible
                    else:
                        spare -= 1


cdef struct Beside:
    # What goes with rows, each (n,): NULL for what is not given, or not wanted.
    const double* mass
    const double* weight
    double* log_norm


cdef inline Beside beside(const double[::1] mass, const double[::1] weight, double[::1] log_norm) noexcept:
    """`Beside` from arrays, each of which may be None."""
    cdef Beside out
    out.mass = NULL
    out.weight = NULL
    out.log_norm = NULL
    if mass is not None:
        out.mass = &mass[0]
    if weight is not None:
        out.weight = &weight[0]
    if log_norm is not None:
        out.log_norm = &log_norm[0]
    return out


cdef inline Beside from_row(Beside given, Py_ssize_t start) noexcept nogil:
    """`Beside` for the rows from ``start`` on."""
    if given.mass != NULL:
        given.mass += start
    if given.weight != NULL:
        given.weight += start
    if given.log_norm != NULL:
        given.log_norm += start
    return given


cdef inline Py_ssize_t share_rows(floating* w, floating* resp, Py_ssize_t n, Problem q, Py_ssize_t ld,
                                  double floor, Beside given, double* entropy,
                                  floating* scratch) noexcept nogil:
    """Shares (n, K) of rows with log weights w (n, ld); w becomes the shares times mass and weight.

    Returns how many of the latter are not zero. ``scratch`` is (2 ld,).
    """
    if q.L < q.K:
        keep_top(w, n, q.K, ld, q.L, scratch)
    if floating is double:
        return softmax_rows_d(w, resp, n, q.K, ld, floor, given.mass, given.weight, entropy,
                              given.log_norm, scratch)
    else:
        return softmax_rows_f(w, resp, n, q.K, ld, <float>floor, given.mass, given.weight, entropy,
                              given.log_norm, scratch)


cdef inline void sum_chunks(double* out, const double* parts, Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Sum of parts (n, size), added in order; zeros if there are none."""
    cdef Py_ssize_t c, i
    for i in range(size):
        out[i] = 0
    for c in range(n):
        for i in range(size):
            out[i] += parts[c * size + i]


cdef inline void collect_pairs(Pairs* pairs, const floating* w, Py_ssize_t n, Py_ssize_t K,
                               Py_ssize_t ld, Py_ssize_t row) noexcept nogil:
    if floating is double:
        collect_pairs_d(pairs, w, n, K, ld, row)
    else:
        collect_pairs_f(pairs, w, n, K, ld, row)


cdef inline void sum_pairs(double* stats, const floating* x, Pairs* pairs, bint fresh,
                           Problem q) noexcept nogil:
    if floating is double:
        sum_pairs_d(stats, x, pairs, fresh, q.K, q.D, q.P, q.quadratic, q.linear)
    else:
        sum_pairs_f(stats, x, pairs, fresh, q.K, q.D, q.P, q.quadratic, q.linear)


cdef inline void add_product(double* stats, double* wide, float* partial, const floating* features,
                             const floating* w, Py_ssize_t n, Py_ssize_t ld, bint fresh,
                             Problem q) noexcept nogil:
    """stats (K, P) += W' S for one tile, or ``=`` if ``fresh``.

    In float32 the sum is added to ``wide`` (P, K) instead, by way of ``partial``: OpenBLAS is faster with P
    columns in float32, and with K columns in float64.
    """
    if floating is double:
        gemm("N", "T", <int>q.P, <int>q.K, <int>n, features, <int>q.P, w, <int>ld,
             <double>0 if fresh else <double>1, stats, <int>q.P)
    else:
        gemm("N", "T", <int>q.K, <int>q.P, <int>n, w, <int>ld, features, <int>q.P, <float>0, partial,
             <int>q.K)
        add_wide(wide, partial, q.K * q.P, fresh)


cdef inline void transpose(double* out, const double* a, Py_ssize_t K, Py_ssize_t P) noexcept nogil:
    """out (K, P) = a (P, K)', in blocks that stay in the first-level cache."""
    cdef Py_ssize_t p, k, start
    for start in range(0, P, 16):
        for k in range(K):
            for p in range(start, min(start + 16, P)):
                out[k * P + p] = a[p * K + k]


cdef inline Py_ssize_t tile_rows(Py_ssize_t P, Py_ssize_t itemsize) noexcept nogil:
    """Rows of a tile: s(x) takes up to 320 KB, but there are enough rows for BLAS to copy ``coef`` seldom.

    There are never more than 256, the length of sums in float32. In float32 there are always 256, because the
    sums of each tile have to be added to those in float64.
    """
    cdef Py_ssize_t rows = (320 * 1024) // (P * itemsize)
    if itemsize == sizeof(float):
        return 256
    return min(256, max(192, rows - rows % 8))
