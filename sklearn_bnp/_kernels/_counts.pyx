"""Functions of counts with Dirichlet priors: evidence of components and of pairs, expected logarithms.

Types are taken in tiles. One thread computes each number, tile by tile, so the number of threads does not
change a bit. Statistics ``s`` (K, P) have P >= V columns, the first V of which are counts, so that rows
``[x, 1]`` of statistics need no copy. Arguments lam + s are normal numbers below 1e300.

These functions trust their callers; shapes and values are checked in the Python that calls them.
"""
from cython.parallel cimport prange, threadid
from libc.stdlib cimport free, malloc

cdef extern from "count_math.h" nogil:
    ctypedef struct Factors:
        pass
    Py_ssize_t TILE
    void tabulate_types(const double*, Py_ssize_t, double*, Factors*)
    double lgamma_rise(const double*, const double*, const Factors*, const double*, const double*,
                       Py_ssize_t)
    void log_rise_row(const double*, const double*, Py_ssize_t, double*)
    double digamma_total(const double*, const double*, Py_ssize_t)
    void digamma_row(const double*, const double*, Py_ssize_t, double, double*)
    void exp_digamma_row(const double*, const double*, Py_ssize_t, double, double*)
    void eight_columns(const double*, Py_ssize_t, Py_ssize_t, double*, Py_ssize_t)

cdef Py_ssize_t BLOCK = 1024            # pairs that use a tile before the next one is begun
cdef Py_ssize_t TABLE_TILE = 256        # types of which eight rows are transposed at a time


cdef struct Types:
    # Pseudo-counts, and functions of these.
    Py_ssize_t V
    const double* lam
    double* base            # (V,)
    Factors* factors        # one for each tile


cdef int _tabulate(Types* types, const double[::1] lam) except -1:
    """Fill ``types``, whose ``base`` and ``factors`` the caller frees."""
    cdef Py_ssize_t i, V = lam.shape[0], n_tiles = (V + TILE - 1) // TILE
    types.V = V
    types.lam = &lam[0]
    types.base = <double*>malloc(V * sizeof(double))
    types.factors = <Factors*>malloc(n_tiles * sizeof(Factors))
    if types.base == NULL or types.factors == NULL:
        free(types.base)
        free(types.factors)
        raise MemoryError("no memory for functions of the prior's pseudo-counts")
    for i in range(n_tiles):
        tabulate_types(types.lam + i * TILE, min(TILE, V - i * TILE), types.base + i * TILE,
                       types.factors + i)
    return 0


cdef void _log_rising_factorials(const Types* types, const double* s, Py_ssize_t P,
                                 const Py_ssize_t* first, const Py_ssize_t* second, Py_ssize_t n,
                                 double* out) noexcept nogil:
    """Log rising factorials of n rows, or of sums of two rows each; ``second`` may be NULL."""
    cdef Py_ssize_t i, v, p
    cdef const double* other = NULL
    for p in range(n):
        out[p] = 0
    for i in range((types.V + TILE - 1) // TILE):
        v = i * TILE
        for p in range(n):
            if second != NULL:
                other = s + second[p] * P + v
            out[p] += lgamma_rise(types.lam + v, types.base + v, types.factors + i,
                                  s + first[p] * P + v, other, min(TILE, types.V - v))


def log_gamma_sums(
    const double[:, ::1] s,             # IN  (K, P)
    const double[::1] lam,              # IN  (V,) > 0
    double[::1] out,                    # OUT (K,)
    int n_threads,
):
    """Equivalent to ``out[k] = sum(gammaln(lam + s[k, :V]) - gammaln(lam))``."""
    cdef Py_ssize_t k, zero = 0, K = s.shape[0], P = s.shape[1]
    cdef Types types
    if K == 0:
        return
    _tabulate(&types, lam)
    cdef const double* s_p = &s[0, 0]
    for k in prange(K, nogil=True, schedule="static", num_threads=n_threads):
        _log_rising_factorials(&types, s_p + k * P, P, &zero, NULL, 1, &out[k])
    free(types.base)
    free(types.factors)


def pair_log_gamma_sums(
    const double[:, ::1] s,             # IN  (K, P)
    const double[::1] lam,              # IN  (V,) > 0
    const Py_ssize_t[::1] first,        # IN  (M,) rows of s
    const Py_ssize_t[::1] second,       # IN  (M,)
    double[::1] out,                    # OUT (M,)
    int n_threads,
):
    """Equivalent to ``out[m] = sum(gammaln(lam + s[first[m], :V] + s[second[m], :V]) - gammaln(lam))``.

    The rows of a block stay in the second-level cache for a tile, best if pairs are sorted by ``first``.
    """
    cdef Py_ssize_t b, M = out.shape[0], P = s.shape[1]
    # shorter if there are fewer blocks than threads; a pair's sum does not depend on its block
    cdef Py_ssize_t block = max(1, min(BLOCK, (M + n_threads - 1) // n_threads))
    cdef Types types
    if M == 0:
        return
    _tabulate(&types, lam)
    cdef const double* s_p = &s[0, 0]
    for b in prange((M + block - 1) // block, nogil=True, schedule="dynamic", num_threads=n_threads):
        _log_rising_factorials(&types, s_p, P, &first[b * block], &second[b * block],
                               min(block, M - b * block), &out[b * block])
    free(types.base)
    free(types.factors)


def log_rises(
    const double[::1] a,                # IN  (n,) > 0
    const double[::1] x,                # IN  (n,) >= 0
    double[::1] out,                    # OUT (n,)
):
    """Equivalent to ``out[:] = gammaln(a + x) - gammaln(a)``."""
    if a.shape[0]:
        log_rise_row(&a[0], &x[0], a.shape[0], &out[0])


def digamma_rows(
    const double[:, ::1] s,             # IN  (K, P)
    const double[::1] lam,              # IN  (V,) > 0
    double[:, ::1] out,                 # OUT (K, >= V): columns from V on are not changed
    int n_threads,
):
    """Equivalent to ``out[k, :V] = psi(lam + s[k, :V]) - psi(sum(lam + s[k, :V]))``."""
    cdef Py_ssize_t k, V = lam.shape[0]
    for k in prange(s.shape[0], nogil=True, schedule="static", num_threads=n_threads):
        digamma_row(&lam[0], &s[k, 0], V, digamma_total(&lam[0], &s[k, 0], V), &out[k, 0])


cdef void _table_tile(const double* s, Py_ssize_t K, Py_ssize_t P, const double* lam, Py_ssize_t n,
                      const double* less, double* rows, double* out) noexcept nogil:
    """Rows of the table for n types; ``rows`` has room for eight columns of them."""
    cdef Py_ssize_t k, j, v
    for k in range(0, K, 8):
        for j in range(min(8, K - k)):
            exp_digamma_row(lam, s + (k + j) * P, n, less[k + j], rows + j * TABLE_TILE)
        if k + 8 <= K:
            eight_columns(rows, TABLE_TILE, n, out + k, K)
        else:
            for v in range(n):
                for j in range(K - k):
                    out[v * K + k + j] = rows[j * TABLE_TILE + v]


def exp_digamma_table(
    const double[:, ::1] s,             # IN  (K, P)
    const double[::1] lam,              # IN  (V,) > 0
    double[:, ::1] out,                 # OUT (V, K)
    int n_threads,
):
    """Equivalent to ``out[v, k] = exp(psi(lam_v + s[k, v]) - psi(sum(lam + s[k, :V])))``.

    Values below about 1e-307 are set to that.
    """
    cdef Py_ssize_t k, t, K = s.shape[0], P = s.shape[1], V = lam.shape[0]
    cdef Py_ssize_t n_tiles = (V + TABLE_TILE - 1) // TABLE_TILE
    if K == 0:
        return
    cdef double* less = <double*>malloc(K * sizeof(double))
    cdef double* rows = <double*>malloc(max(1, n_threads) * 8 * TABLE_TILE * sizeof(double))
    cdef bint failed = less == NULL or rows == NULL
    cdef const double* s_p = &s[0, 0]
    if not failed:
        for k in prange(K, nogil=True, schedule="static", num_threads=n_threads):
            less[k] = digamma_total(&lam[0], s_p + k * P, V)
        for t in prange(n_tiles, nogil=True, schedule="static", num_threads=n_threads):
            _table_tile(s_p + t * TABLE_TILE, K, P, &lam[t * TABLE_TILE],
                        min(TABLE_TILE, V - t * TABLE_TILE), less,
                        rows + threadid() * 8 * TABLE_TILE, &out[t * TABLE_TILE, 0])
    free(less)
    free(rows)
    if failed:
        raise MemoryError("no memory for the table of expected logarithms")
