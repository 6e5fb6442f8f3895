"""Sums over documents for a range of items, which one thread owns.

See the design note of `_topics.pyx`, into which these functions are inlined.
"""
from libc.string cimport memset

from cython cimport floating


cdef inline void accumulate(const floating* table, Py_ssize_t K, Py_ssize_t lo, Py_ssize_t hi,
                            Py_ssize_t n_docs, const long long* indptr, const int* indices,
                            const double* counts, const double* mass, const double* weight,
                            const double* shares, const double* e, const Py_ssize_t* topics,
                            double* s) noexcept nogil:
    """Add to rows lo to hi of s, documents in order; shares, e and topics as in `Output`."""
    cdef Py_ssize_t d, i, j, k, m, A
    cdef double w, times
    cdef double* out
    cdef const floating* row
    cdef const double* e_d
    cdef const Py_ssize_t* topic
    for d in range(n_docs):
        A = topics[d * (K + 1)]
        times = weight[d] if weight != NULL else 1.0
        topic = topics + d * (K + 1) + 1
        e_d = e + d * K
        for i in range(indptr[d], indptr[d + 1]):
            m = indices[i] if indices != NULL else i
            if m < lo or m >= hi:
                continue
            out = s + m * K
            row = table + m * K
            w = shares[i]
            if w < 0:
                w = -1 - w
                out[<Py_ssize_t>w] += times * counts[i] * (mass[i] if mass != NULL else 1.0)
            elif A == K:
                for k in range(K):
                    out[k] += w * e_d[k] * row[k]
            else:
                for j in range(A):
                    out[topic[j]] += w * e_d[j] * row[topic[j]]


cdef inline void accumulate_listed(Py_ssize_t K, Py_ssize_t L, Py_ssize_t lo, Py_ssize_t hi,
                                   Py_ssize_t nnz, const int* indices, const int* listed,
                                   const double* parts, double* s) noexcept nogil:
    """Add to rows lo to hi of s from lists of at most L shares per entry."""
    cdef Py_ssize_t i, j, m
    for i in range(nnz):
        m = indices[i] if indices != NULL else i
        if m < lo or m >= hi:
            continue
        for j in range(i * L, i * L + L):
            if listed[j] < 0:
                break
            s[m * K + listed[j]] += parts[j]


cdef inline void bounds_of_items(Py_ssize_t* bounds, int n, Py_ssize_t M, Py_ssize_t nnz,
                                 const int* indices, Py_ssize_t* uses) noexcept nogil:
    """Cut items into ranges with about equal numbers of entries."""
    cdef Py_ssize_t i, seen = 0
    cdef int t = 1
    memset(uses, 0, M * sizeof(Py_ssize_t))
    for i in range(nnz):
        uses[indices[i] if indices != NULL else i] += 1
    bounds[0] = 0
    for i in range(M):
        while t < n and seen * n >= t * nnz:
            bounds[t] = i
            t += 1
        seen += uses[i]
    while t <= n:
        bounds[t] = M
        t += 1
