"""What is done to one tile of rows: statistics, products, selection, sparse sums.

Inlined into the kernels that cimport them. A tile is small enough for its statistics to stay in the
second-level cache between the two products that use them.
"""
from scipy.linalg.cython_blas cimport dgemm, sgemm

from cython cimport floating

cdef extern from "vector_math.h" nogil:
    double NEGLIGIBLE
    Py_ssize_t keep_few_d(double*, Py_ssize_t, Py_ssize_t, double*)
    Py_ssize_t keep_few_f(float*, Py_ssize_t, Py_ssize_t, float*)
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


# What the quadratic part of s(x) holds; the values are those of `_responsibilities.Quadratic`.
cdef enum QuadraticPart:
    QUADRATIC_NONE = 0
    QUADRATIC_FULL = 1
    QUADRATIC_DIAG = 2
    QUADRATIC_SPHERICAL = 3


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


cdef inline void keep_top(floating* w, Py_ssize_t n, Py_ssize_t K, Py_ssize_t L,
                          floating* scratch) noexcept nogil:
    """All but the L largest weights of each row become negligible; of ties the first stay (Alg. 7.2)."""
    cdef Py_ssize_t i, k, spare
    cdef floating bar
    cdef floating* row
    for i in range(n):
        row = w + i * K
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
                    row[k] = NEGLIGIBLE
                elif row[k] > bar:
                    spare -= 1
        if spare >= 0:                  # weights equal to the bar: as many as there is room for
            for k in range(K):
                if row[k] == bar:
                    if spare == 0:
                        row[k] = NEGLIGIBLE
                    else:
                        spare -= 1


cdef inline void add_sparse(floating* out, const floating* features, const floating* resp, Py_ssize_t n,
                            Py_ssize_t K, Py_ssize_t P, Py_ssize_t* start, Py_ssize_t* rows,
                            floating* values) noexcept nogil:
    """out += R' S over the nonzeros of R (n, K), bucketed by component and taken four at a time.

    Work space: start (K + 1,), rows and values (n K,).
    """
    cdef Py_ssize_t k, i, at
    cdef const floating* r
    cdef floating* o
    for k in range(K + 1):
        start[k] = 0
    for i in range(n):
        r = resp + i * K
        for k in range(K):
            start[k] += r[k] > 0
    at = 0
    for k in range(K + 1):              # start[k]: first place of component k
        i = start[k]
        start[k] = at
        at += i
    for i in range(n):
        r = resp + i * K
        for k in range(K):
            if r[k] > 0:
                rows[start[k]] = i * P
                values[start[k]] = r[k]
                start[k] += 1           # at the end: first place of component k + 1
    i = 0
    for k in range(K):
        o = out + k * P
        while i + 4 <= start[k]:
            if floating is double:
                add_rows4_d(o, features + rows[i], features + rows[i + 1], features + rows[i + 2],
                            features + rows[i + 3], values[i], values[i + 1], values[i + 2],
                            values[i + 3], P)
            else:
                add_rows4_f(o, features + rows[i], features + rows[i + 1], features + rows[i + 2],
                            features + rows[i + 3], values[i], values[i + 1], values[i + 2],
                            values[i + 3], P)
            i += 4
        while i < start[k]:
            if floating is double:
                add_row_d(o, features + rows[i], values[i], P)
            else:
                add_row_f(o, features + rows[i], values[i], P)
            i += 1


cdef inline void summarise_tile(floating* out, const floating* features, const floating* resp, Py_ssize_t n,
                                Problem q, bint sparse, Py_ssize_t* rows, floating* values) noexcept nogil:
    """out (K, P) += R' S for one tile; rows (K + 1 + n K,) and values (n K,) are work space."""
    if sparse:
        add_sparse(out, features, resp, n, q.K, q.P, rows, rows + q.K + 1, values)
    else:
        gemm("N", "T", <int>q.P, <int>q.K, <int>n, features, <int>q.P, resp, <int>q.K,
             <floating>1, out, <int>q.P)


cdef inline void flush(double* stats, floating* partial, Py_ssize_t size) noexcept nogil:
    """stats += partial, which starts again from zero."""
    cdef Py_ssize_t i
    for i in range(size):
        stats[i] += partial[i]
        partial[i] = 0


cdef inline Py_ssize_t tile_rows(Py_ssize_t P, Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t rows = (320 * 1024) // (P * itemsize)
    rows = rows - rows % 8
    return min(256, max(128, rows))
