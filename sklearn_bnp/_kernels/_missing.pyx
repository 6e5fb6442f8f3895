"""Rows with missing entries under full Gaussians: log weights, and statistics with conditional moments.

A log weight is ``c + l . x - x' A x / 2``. The missing entries of x are integrated out, or replaced by their
moments, which are those of a normal distribution: with m for missing and s for seen,

    precision A_mm,    mean inv(A_mm) (l_m - A_ms x_s).

Rows are sorted by the pattern of their missing entries: rows ``starts[g]:starts[g + 1]`` have the pattern
``missing[g]``, so that A_mm is factorised once for each pattern and component. In each pattern, some entries
are missing and some are seen, and some row has the pattern. The loops are in ``missing_math.h``.

These functions trust their callers. Where A_mm is not positive definite, results are NaN.
"""
from libc.stdlib cimport free, malloc

cdef extern from "missing_math.h" nogil:
    const Py_ssize_t LANES
    const double NO_SHARE
    ctypedef struct Lanes:
        double* sums
    ctypedef struct Rows:
        Py_ssize_t n, G
        const double* z
        const Py_ssize_t* starts
        const unsigned char* missing
    size_t lay_out(Lanes*, Py_ssize_t, Py_ssize_t, void*)
    void take(Lanes*, const double*, const double*, Py_ssize_t)
    void table_of_lanes(Lanes*, const Rows*, const double*, const double*, Py_ssize_t, double*, Py_ssize_t)
    void sums_of_lanes(Lanes*, const Rows*, const double*, Py_ssize_t, const double*, const double*,
                       const double*, Py_ssize_t, bint, Py_ssize_t)
    void completed_by_lane(Lanes*, const Rows*, const double*, const double*, double*, double*, double*,
                           Py_ssize_t)


cdef double* _room(Lanes* w, Py_ssize_t D, Py_ssize_t P, Py_ssize_t more) except NULL:
    """Room for `Lanes`, and after them for so many more numbers."""
    cdef size_t size = lay_out(w, D, P, NULL)
    cdef double* base = <double*>malloc(size + more * sizeof(double))
    if base == NULL:
        raise MemoryError("no memory for rows with missing entries")
    lay_out(w, D, P, base)
    return base


cdef Rows _rows(const double[:, ::1] z, const Py_ssize_t[::1] starts,
                const unsigned char[:, ::1] missing) noexcept:
    cdef Rows rows
    rows.n = z.shape[0]
    rows.G = missing.shape[0]
    rows.z = &z[0, 0]
    rows.starts = &starts[0]
    rows.missing = &missing[0, 0]
    return rows


def missing_table(
    const double[:, ::1] z,             # IN  (n, D) rows, sorted by pattern; NaN is never read
    const Py_ssize_t[::1] starts,       # IN  (G + 1,)
    const unsigned char[:, ::1] missing,    # IN  (G, D) 1 for a missing entry
    const double[:, :, ::1] a,          # IN  (K, D, D)
    const double[:, ::1] b,             # IN  (K, D)
    const double[::1] c,                # IN  (K,)
    const double[:, ::1] fix,           # IN  (K, D) added for each entry that is missing
    double[:, ::1] out,                 # OUT (n, K)
):
    """Log weights of rows. Equivalent to, for each row and component::

        c + fix[m].sum() + b[s] @ z[s] - z[s] @ a[s, s] @ z[s] / 2
          + r @ inv(a[m, m]) @ r / 2 - logdet(a[m, m]) / 2,    r = b[m] - a[m, s] @ z[s]
    """
    cdef Py_ssize_t K = a.shape[0], D = a.shape[1], k, l, d, begin, lanes
    cdef Lanes w
    if z.shape[0] == 0:
        return
    cdef Rows rows = _rows(z, starts, missing)
    cdef double* base = _room(&w, D, D + 1, 0)
    cdef double* own = w.sums               # (D + 1, LANES): fix, then c
    with nogil:
        for begin in range((K + LANES - 1) // LANES):
            k = begin * LANES
            lanes = min(LANES, K - k)
            take(&w, &a[k, 0, 0], &b[k, 0], lanes)
            for l in range(LANES):
                own[D * LANES + l] = c[k + l] if l < lanes else 0
                for d in range(D):
                    own[d * LANES + l] = fix[k + l, d] if l < lanes else 0
            table_of_lanes(&w, &rows, own + D * LANES, own, lanes, &out[0, k], K)
    free(base)


def missing_sums(
    const double[:, ::1] z,             # IN  (n, D)
    const Py_ssize_t[::1] starts,       # IN  (G + 1,)
    const unsigned char[:, ::1] missing,    # IN  (G, D) 1 for a missing entry
    const double[:, ::1] shares,        # IN  (n, K)
    const double[:, :, ::1] a,          # IN  (K, D, D)
    const double[:, ::1] b,             # IN  (K, D)
    const double[::1] ridge,            # IN  (D,)
    const double[::1] each,             # IN  (D,) log density that scaling adds to a seen entry
    bint linear,                        # IN  whether statistics have a linear part
    double[:, ::1] s,                   # IN OUT (K, P): added to
):
    """Add statistics ``[packed xx', x, shows anything, entropy, count]`` of completed rows.

    With x the completed row, equivalent to adding ``shares[n, k]`` times ::

        [triu(x x' + (inv(a[m, m]) - diag(ridge[m]))), x, 1,
         (|m| (1 + log 2 pi) - logdet(a[m, m])) / 2 - each[m].sum(), 1]

    Shares of no more than 1e-16 of the row's largest are left out. A hidden Markov model gives every state a
    share of every row, and most of them are as small as that.
    """
    cdef Py_ssize_t K = a.shape[0], D = a.shape[1], P = s.shape[1], k, l, n, p, begin, lanes
    cdef Lanes w
    if z.shape[0] == 0:
        return
    cdef Rows rows = _rows(z, starts, missing)
    cdef double* base = _room(&w, D, P, z.shape[0])
    cdef double* least = base + lay_out(&w, D, P, base) // sizeof(double)      # (n,)
    with nogil:
        for n in range(z.shape[0]):
            least[n] = 0
            for k in range(K):
                least[n] = max(least[n], NO_SHARE * shares[n, k])
        for begin in range((K + LANES - 1) // LANES):
            k = begin * LANES
            lanes = min(LANES, K - k)
            take(&w, &a[k, 0, 0], &b[k, 0], lanes)
            sums_of_lanes(&w, &rows, &shares[0, k], K, least, &ridge[0], &each[0], lanes, linear, P)
            for l in range(lanes):
                for p in range(P):
                    s[k + l, p] += w.sums[p * LANES + l]
    free(base)


def complete_rows(
    const double[:, ::1] z,             # IN  (n, D)
    const Py_ssize_t[::1] starts,       # IN  (G + 1,)
    const unsigned char[:, ::1] missing,    # IN  (G, D) 1 for a missing entry
    const double[:, ::1] a,             # IN  (D, D)
    const double[::1] b,                # IN  (D,)
    const double[::1] ridge,            # IN  (D,)
    const double[::1] each,             # IN  (D,)
    double[:, ::1] x,                   # OUT (n, D) completed rows
    double[:, ::1] spread,              # OUT (G, D (D + 1) / 2) packed variances of missing entries
    double[::1] entropy,                # OUT (G,) as in `missing_sums`
):
    """Rows completed under one Gaussian; variances and entropies of missing entries as in `missing_sums`."""
    cdef Py_ssize_t D = a.shape[0], P = spread.shape[1]
    cdef Lanes w
    if z.shape[0] == 0:
        return
    cdef Rows rows = _rows(z, starts, missing)
    cdef double* base = _room(&w, D, P, 0)
    with nogil:
        take(&w, &a[0, 0], &b[0], 1)
        completed_by_lane(&w, &rows, &ridge[0], &each[0], &x[0, 0], &spread[0, 0], &entropy[0], P)
    free(base)
