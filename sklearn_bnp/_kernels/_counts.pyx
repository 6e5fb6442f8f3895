"""Evidence of counts with Dirichlet priors: sums of log Gamma over the types, for topics and pairs of them.

These functions trust their callers; shapes and values are checked in the Python that calls them.
"""
from cython.parallel cimport prange

cdef extern from "count_math.h" nogil:
    double lgamma_sum(double*, double*, double*, Py_ssize_t)


def log_gamma_sums(const double[:, ::1] s, const double[::1] lam, double[::1] out, int n_threads):
    """Equivalent to ``out[k] = gammaln(lam + s[k, :V]).sum()`` for ``lam`` (V,) and ``s`` (K, P >= V)."""
    cdef Py_ssize_t k
    for k in prange(s.shape[0], nogil=True, num_threads=n_threads, schedule="static"):
        out[k] = lgamma_sum(<double*>&lam[0], <double*>&s[k, 0], NULL, lam.shape[0])


def pair_log_gamma_sums(const double[:, ::1] s, const double[::1] lam, const Py_ssize_t[::1] first,
                        const Py_ssize_t[::1] second, double[::1] out, int n_threads):
    """Equivalent to ``out[p] = gammaln(lam + s[first[p], :V] + s[second[p], :V]).sum()``."""
    cdef Py_ssize_t p
    for p in prange(first.shape[0], nogil=True, num_threads=n_threads, schedule="static"):
        out[p] = lgamma_sum(<double*>&lam[0], <double*>&s[first[p], 0], <double*>&s[second[p], 0],
                            lam.shape[0])
