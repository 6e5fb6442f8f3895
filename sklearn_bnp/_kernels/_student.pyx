"""Log predictive densities of Gaussian families, each row without its own share of the component.

The posterior of a component with n rows has ``dof0 + each * n`` degrees of freedom and, with means,
``kappa0 + n`` observations of its mean. With the squared distance q of a row from the mean under the inverse
scale B, and the share r of the row, what is left of the component has

    kappa' = kappa - r,    t = kappa / kappa',    u = 1 - r t q,    q' = t^2 q / u,    |B'| = |B| u,

by the lemma of rank-one determinants and the formula of Sherman and Morrison. These functions trust their
callers. The rows' terms ``-log |B| / 2`` and ``-m log(pi) / 2`` are left to them.
"""
from libc.math cimport log
from libc.stdlib cimport calloc, free

from cython cimport floating

cdef extern from "student_math.h" nogil:
    enum:
        TILE        # rows
    double lgamma_positive(double)
    void student_rows(const double*, double*, Py_ssize_t, Py_ssize_t, const double*, const double*,
                      const double*)
    void log_columns(const double*, const double*, const double*, Py_ssize_t, double, double*)
    double log_columns_without(const double*, const double*, const double*, Py_ssize_t, double, double,
                               double, double, double*)

# Least share of the inverse scale that is left: without rounding it is always above 0.
cdef double LEAST_LEFT = 1e-10


cdef struct Family:
    double dof0, kappa0, each, m
    bint linear


cdef inline double _ends(double dof, double m) noexcept nogil:
    """``log Gamma((dof + m) / 2) - log Gamma(dof / 2)``"""
    return lgamma_positive(0.5 * (dof + m)) - lgamma_positive(0.5 * dof)


cdef inline double _shrink(double kappa, Family p) noexcept nogil:
    return kappa / (kappa + 1.0) if p.linear else 1.0


cdef inline double _times(double n, double left, Family p) noexcept nogil:
    """t"""
    return (p.kappa0 + n) / (p.kappa0 + left) if p.linear else 1.0


cdef double _without(double q, double r, double n, Family p) noexcept nogil:
    """Log density of a row at distance q whose share is r."""
    cdef double left = max(n - r, 0.0), dof = p.dof0 + p.each * left
    cdef double t = _times(n, left, p), shrink = _shrink(p.kappa0 + left, p)
    cdef double u = max(1.0 - r * t * q, LEAST_LEFT)
    cdef double out = _ends(dof, p.m) + 0.5 * p.m * log(shrink) - 0.5 * p.each * log(u)
    return out - 0.5 * (dof + p.m) * log(1.0 + shrink * t * t * q / u)


cdef double _columns_without(const double* x, const double* mean, const double* inverse, Py_ssize_t D,
                             double r, double n, Family p) noexcept nogil:
    """Log density of a row of D columns whose share is r, each with a scale of its own."""
    cdef double left = max(n - r, 0.0), dof = p.dof0 + left, logs = 0, sums
    cdef double t = _times(n, left, p), shrink = _shrink(p.kappa0 + left, p)
    sums = log_columns_without(x, mean, inverse, D, shrink, r, t, LEAST_LEFT, &logs)
    return D * (_ends(dof, 1) + 0.5 * log(shrink)) - 0.5 * logs - 0.5 * (dof + 1) * sums


def student_without(
    const double[:, ::1] square,    # IN  (n, K) squared distances, none of them negative
    const floating[:, ::1] shares,  # IN  (n, K) how much of each row each component has
    const double[::1] count,        # IN  (K,) rows of components
    double m,                       # IN  dimensions of a row
    double each,                    # IN  degrees of freedom that a row adds: 1, or m if all have one variance
    double dof0,                    # IN  of the prior
    double kappa0,                  # IN  of the prior
    bint linear,                    # IN  whether components have means
    double least,                   # IN  smaller shares are not taken out
    double[:, ::1] out,             # OUT (n, K) log densities
):
    """Densities of rows whose dimensions have one inverse scale; ``|B|`` has the power ``each``."""
    cdef Py_ssize_t n = square.shape[0], K = square.shape[1], i, k
    cdef double dof, shrink
    cdef Family p
    cdef double* c
    if n == 0 or K == 0:
        return
    p.dof0, p.kappa0, p.each, p.m, p.linear = dof0, kappa0, each, m, linear
    c = <double*>calloc(3 * K, sizeof(double))
    if c == NULL:
        raise MemoryError("no memory for the constants of the predictive densities")
    with nogil:
        for k in range(K):
            dof = dof0 + each * count[k]
            shrink = _shrink(kappa0 + count[k], p)
            c[k] = _ends(dof, m) + 0.5 * m * log(shrink)
            c[K + k] = 0.5 * (dof + m)
            c[2 * K + k] = shrink
        student_rows(&square[0, 0], &out[0, 0], n, K, c, c + K, c + 2 * K)
        for i in range(n):
            for k in range(K):
                if shares[i, k] > least:
                    out[i, k] = _without(square[i, k], shares[i, k], count[k], p)
        free(c)


def student_columns_without(
    const double[:, ::1] x,         # IN  (n, D)
    const double[:, ::1] mean,      # IN  (K, D)
    const double[:, ::1] inverse,   # IN  (K, D) of the columns' scales b
    const floating[:, ::1] shares,  # IN  (n, K) how much of each row each component has
    const double[::1] count,        # IN  (K,) rows of components
    double dof0,                    # IN  of the prior
    double kappa0,                  # IN  of the prior
    bint linear,                    # IN  whether components have means
    double least,                   # IN  smaller shares are not taken out
    double[:, ::1] out,             # OUT (n, K) log densities
):
    """Densities of rows whose columns have scales of their own: sums over columns."""
    cdef Py_ssize_t n = x.shape[0], D = x.shape[1], K = mean.shape[0], t, first, last, i, k, d
    cdef double dof
    cdef double[TILE] sums
    cdef double* tile
    cdef double* c
    cdef Family p
    p.dof0, p.kappa0, p.each, p.m, p.linear = dof0, kappa0, 1, 1, linear
    if n == 0 or D == 0:
        out[:, :] = 0
        return
    tile = <double*>calloc(D * TILE + 2 * K, sizeof(double))
    if tile == NULL:
        raise MemoryError("no memory for the columns of the predictive densities")
    c = tile + D * TILE
    with nogil:
        for k in range(K):
            c[k] = _shrink(kappa0 + count[k], p)
            c[K + k] = D * (_ends(dof0 + count[k], 1) + 0.5 * log(c[k]))
        for t in range((n + TILE - 1) // TILE):
            first = t * TILE
            last = min(first + TILE, n)
            for d in range(D):
                for i in range(first, last):
                    tile[d * TILE + i - first] = x[i, d]
            for k in range(K):
                dof = dof0 + count[k]
                log_columns(tile, &mean[k, 0], &inverse[k, 0], D, c[k], sums)
                for i in range(first, last):
                    if shares[i, k] > least:
                        out[i, k] = _columns_without(
                            &x[i, 0], &mean[k, 0], &inverse[k, 0], D, shares[i, k], count[k], p
                        )
                    else:
                        out[i, k] = c[K + k] - 0.5 * (dof + 1) * sums[i - first]
    free(tile)
