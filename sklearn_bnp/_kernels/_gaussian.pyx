"""Operations on many small symmetric positive definite matrices at once, without the GIL.

The statistics of a full Gaussian are rows ``[packed upper triangle of sum r x x', sum r x, sum r]``
(without the middle part for zero-mean families). These kernels make inverse scale matrices of
Normal-Wishart posteriors of them, take log determinants and inverses by LAPACK, and make log normalisers
and packed coefficients. They trust their callers.
"""
from scipy.linalg.cython_lapack cimport dpotrf, dpotri
from scipy.special.cython_special cimport gammaln

from libc.math cimport INFINITY, NAN, log


def scale_matrices(
    const double[:, ::1] s,         # IN  (M, P) statistics
    const double[:, ::1] prior,     # IN  (D, D) prior's own scale matrix
    const double[::1] ridge,        # IN  (D,) added once per observation
    const double[::1] prior_mean,   # IN  (D,) or None for a zero-mean family
    double kappa,                   # IN  prior's pseudo-count of the mean
    double[:, :, ::1] out,          # OUT (M, D, D) upper triangle in C order; the lower is not touched
    double[:, ::1] mean,            # OUT (M, D) posterior mean, or None
):
    """Inverse scale matrices of the posterior of a Normal-Wishart, or Wishart, family.

    Equivalent to ``mean = (kappa m0 + sx) / (kappa + n)`` and
    ``out = prior + sxx + n diag(ridge) + kappa m0 m0' - (kappa + n) mean mean'``; Hughes (2016), (2.66).
    """
    cdef Py_ssize_t M = s.shape[0], P = s.shape[1], D = prior.shape[0], m, i, j, p
    cdef double n, total
    cdef bint linear = prior_mean is not None
    with nogil:
        for m in range(M):
            n = s[m, P - 1]
            total = n + kappa
            if linear:
                p = P - 1 - D
                for i in range(D):
                    mean[m, i] = (kappa * prior_mean[i] + s[m, p + i]) / total
            p = 0
            for i in range(D):
                for j in range(i, D):
                    out[m, i, j] = prior[i, j] + s[m, p + j - i]
                p += D - i
                if linear:
                    for j in range(i, D):
                        out[m, i, j] += (kappa * prior_mean[i] * prior_mean[j]
                                         - total * mean[m, i] * mean[m, j])
                out[m, i, i] += n * ridge[i]


def rough_scales(
    const double[:, ::1] s,         # IN  (M, P) statistics
    const double[:, ::1] prior,     # IN  (D, D) prior's own scale matrix
    const double[::1] ridge,        # IN  (D,) added once per observation
    double rough,                   # IN  share of the largest sum of squares
    unsigned char[::1] some,        # OUT (M,) 1 where rounding may have taken more than the prior adds
):
    """Mark components of which a diagonal entry of ``prior + n diag(ridge)`` is a tiny share of the sums.

    It is compared with ``rough`` times the largest sum of squares. Returns how many there are.
    """
    cdef Py_ssize_t M = s.shape[0], P = s.shape[1], D = prior.shape[0], m, i, p, count = 0
    cdef double n, own, least, largest
    with nogil:
        for m in range(M):
            n = s[m, P - 1]
            least, largest, p = INFINITY, -INFINITY, 0
            for i in range(D):
                own = prior[i, i] + n * ridge[i]
                if own < least:
                    least = own
                if s[m, p] > largest:
                    largest = s[m, p]
                p += D - i
            some[m] = least < rough * largest
            count += some[m]
    return count


def spd_logdet(double[:, :, ::1] a, double[::1] logdet):
    """Log determinants of the (M, D, D) matrices ``a``, of which only the upper triangles are read.

    ``a`` is overwritten by its factors. Returns how many were not positive definite; these have NaN.
    """
    return _factor(a, logdet, False)


def spd_inverse(double[:, :, ::1] a, double[::1] logdet):
    """Set ``a[m]`` to its inverse, both triangles, and log determinants; otherwise like `spd_logdet`."""
    return _factor(a, logdet, True)


cdef Py_ssize_t _factor(double[:, :, ::1] a, double[::1] logdet, bint invert):
    cdef Py_ssize_t M = a.shape[0], m, i, j, bad = 0
    cdef int D = <int>a.shape[1], info = 0
    cdef double total
    cdef double* p
    if D == 0:
        logdet[:] = 0
        return 0
    with nogil:
        for m in range(M):
            p = &a[m, 0, 0]
            dpotrf("L", &D, p, &D, &info)       # our upper triangle is LAPACK's lower one
            if info != 0:
                logdet[m] = NAN
                bad += 1
                continue
            total = 0
            for i in range(D):
                total += log(p[i * D + i])
            logdet[m] = 2 * total
            if invert:
                dpotri("L", &D, p, &D, &info)
                for i in range(D):
                    for j in range(i + 1, D):
                        p[j * D + i] = p[i * D + j]
    return bad


def wishart_log_norms(
    const double[::1] nu,               # IN  (M,) degrees of freedom, > D - 1
    const double[::1] logdet,           # IN  (M,) of the inverse scale matrices
    Py_ssize_t D,                       # IN
    double[::1] out,                    # OUT (M,)
):
    """Log normalisers of Wishart distributions, without terms that depend on D alone.

    Equivalent to ``gammaln((nu[:, None] - arange(D)) / 2).sum(axis=1) + nu / 2 * (D * log(2) - logdet)``.
    """
    cdef Py_ssize_t M = nu.shape[0], m, i
    cdef double half, total, log_two = D * log(2.0)
    with nogil:
        for m in range(M):
            half, total = 0.5 * nu[m], 0
            for i in range(D):
                total += gammaln(half - 0.5 * i)
            out[m] = total + half * log_two - half * logdet[m]


def quadratic_coefficients(
    const double[:, :, ::1] precision,  # IN  (M, D, D) expected precisions
    const double[:, ::1] mean,          # IN  (M, D) or None
    const double[::1] ridge,            # IN  (D,)
    double[:, ::1] out,                 # OUT (M, P): the last column is added to, the others are set
):
    """Packed coefficients c with ``c . s(x) = -(x - m)' L (x - m) / 2 - tr(L diag(ridge)) / 2``."""
    cdef Py_ssize_t M = precision.shape[0], D = precision.shape[1], P = out.shape[1], m, i, j, p
    cdef double dot, trace, square
    with nogil:
        for m in range(M):
            p = 0
            trace = 0
            for i in range(D):
                out[m, p] = -0.5 * precision[m, i, i]
                for j in range(i + 1, D):
                    out[m, p + j - i] = -precision[m, i, j]
                p += D - i
                trace += precision[m, i, i] * ridge[i]
            square = 0
            if mean is not None:
                for i in range(D):
                    dot = 0
                    for j in range(D):
                        dot += precision[m, i, j] * mean[m, j]
                    out[m, p + i] = dot
                    square += dot * mean[m, i]
            out[m, P - 1] += -0.5 * (square + trace)
