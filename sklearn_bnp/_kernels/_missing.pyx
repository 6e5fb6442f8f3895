"""Rows with missing entries under full Gaussians: log weights, and statistics with conditional moments.

A log weight is ``c + l . x - x' A x / 2``. The missing entries of x are integrated out, or replaced by their
moments, which are those of a normal distribution: with m for missing and s for seen,

    precision A_mm,    mean inv(A_mm) (l_m - A_ms x_s).

Rows are sorted by the pattern of their missing entries: rows ``starts[g]:starts[g + 1]`` have the pattern
``missing[g]``, so that A_mm is factorised once for each pattern and component. In each pattern, some entries
are missing and some are seen, and some row has the pattern.

These functions trust their callers. Where A_mm is not positive definite, results are NaN.
"""
from libc.math cimport NAN, M_PI, log, sqrt
from libc.stdlib cimport free, malloc


cdef struct Work:
    # One pattern: places of missing and seen entries; buffers for one component and row.
    Py_ssize_t D, m, o
    Py_ssize_t* missing     # (m,)
    Py_ssize_t* seen        # (o,)
    double* root            # (m, m) lower Cholesky factor of A_mm
    double* inverse         # (m, m) of A_mm
    double* y               # (m,) root y = l_m - A_ms x_s
    double* x               # (D,) completed row


cdef Work* _make(Py_ssize_t D) noexcept nogil:
    cdef size_t numbers = (2 * D * D + 2 * D) * sizeof(double)
    cdef Work* w = <Work*>malloc(sizeof(Work) + 2 * D * sizeof(Py_ssize_t) + numbers)
    if w == NULL:
        return NULL
    w.D = D
    w.root = <double*>(w + 1)
    w.inverse = w.root + D * D
    w.y = w.inverse + D * D
    w.x = w.y + D
    w.missing = <Py_ssize_t*>(w.x + D)
    w.seen = w.missing + D
    return w


cdef void _enter(Work* w, const unsigned char* missing) noexcept nogil:
    """List the missing and the seen columns of a pattern."""
    cdef Py_ssize_t d
    w.m = 0
    w.o = 0
    for d in range(w.D):
        if missing[d]:
            w.missing[w.m] = d
            w.m += 1
        else:
            w.seen[w.o] = d
            w.o += 1


cdef double _factor(Work* w, const double* a) noexcept nogil:
    """Set the Cholesky factor of A_mm, and return its log determinant; NaN if it is not positive definite."""
    cdef Py_ssize_t i, j, p, m = w.m
    cdef double total, log_det = 0
    for i in range(m):
        for j in range(i + 1):
            total = a[w.missing[i] * w.D + w.missing[j]]
            for p in range(j):
                total -= w.root[i * m + p] * w.root[j * m + p]
            if i > j:
                w.root[i * m + j] = total / w.root[j * m + j]
            elif total > 0:
                w.root[i * m + i] = sqrt(total)
                log_det += log(total)
            else:
                for p in range(m * m):
                    w.root[p] = NAN
                return NAN
    return log_det


cdef void _invert(Work* w) noexcept nogil:
    """Set the inverse of A_mm, both triangles, from its factor."""
    cdef Py_ssize_t i, j, p, m = w.m
    cdef double total
    for j in range(m):                      # columns of inv(root) in y, then back
        for i in range(m):
            total = 1.0 if i == j else 0.0
            for p in range(j, i):
                total -= w.root[i * m + p] * w.y[p]
            w.y[i] = total / w.root[i * m + i] if i >= j else 0.0
        for i in range(m - 1, -1, -1):
            total = w.y[i]
            for p in range(i + 1, m):
                total -= w.root[p * m + i] * w.inverse[p * m + j]
            w.inverse[i * m + j] = total / w.root[i * m + i]


cdef void _solve(Work* w, const double* a, const double* b, const double* z) noexcept nogil:
    """``y = inv(root) (l_m - A_ms z_s)``."""
    cdef Py_ssize_t i, p, m = w.m
    cdef const double* row
    cdef double total
    for i in range(m):
        row = a + w.missing[i] * w.D
        total = b[w.missing[i]]
        for p in range(w.o):
            total -= row[w.seen[p]] * z[w.seen[p]]
        for p in range(i):
            total -= w.root[i * m + p] * w.y[p]
        w.y[i] = total / w.root[i * m + i]


cdef void _complete(Work* w, const double* z) noexcept nogil:
    """Set ``x`` to the seen entries of z and the conditional mean of the missing ones."""
    cdef Py_ssize_t i, p, m = w.m
    cdef double total
    for p in range(w.o):
        w.x[w.seen[p]] = z[w.seen[p]]
    for i in range(m - 1, -1, -1):
        total = w.y[i]
        for p in range(i + 1, m):
            total -= w.root[p * m + i] * w.x[w.missing[p]]
        w.x[w.missing[i]] = total / w.root[i * m + i]


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
    cdef Py_ssize_t G = missing.shape[0], K = a.shape[0], D = a.shape[1], g, k, n, i, p
    cdef double base, total, inner
    cdef const double* row
    cdef const double* own
    cdef Work* w = _make(D)
    if w == NULL:
        raise MemoryError("no memory for rows with missing entries")
    with nogil:
        for g in range(G):
            _enter(w, &missing[g, 0])
            for k in range(K):
                own = &a[k, 0, 0]
                base = c[k] - 0.5 * _factor(w, own)
                for i in range(w.m):
                    base += fix[k, w.missing[i]]
                for n in range(starts[g], starts[g + 1]):
                    row = &z[n, 0]
                    _solve(w, own, &b[k, 0], row)
                    total = base
                    for i in range(w.m):
                        total += 0.5 * w.y[i] * w.y[i]
                    for i in range(w.o):
                        inner = -0.5 * own[w.seen[i] * (D + 1)] * row[w.seen[i]]
                        for p in range(i):
                            inner -= own[w.seen[i] * D + w.seen[p]] * row[w.seen[p]]
                        total += (inner + b[k, w.seen[i]]) * row[w.seen[i]]
                    out[n, k] = total
        free(w)


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
    """
    cdef Py_ssize_t G = missing.shape[0], K = a.shape[0], D = a.shape[1], P = s.shape[1], g, k, n, i, j, p
    cdef double mass, share, entropy
    cdef double* out
    cdef Work* w = _make(D)
    if w == NULL:
        raise MemoryError("no memory for rows with missing entries")
    with nogil:
        for g in range(G):
            _enter(w, &missing[g, 0])
            for k in range(K):
                mass = 0
                for n in range(starts[g], starts[g + 1]):
                    mass += shares[n, k]
                if mass == 0:
                    continue
                out = &s[k, 0]
                entropy = 0.5 * (w.m * (1.0 + log(2.0 * M_PI)) - _factor(w, &a[k, 0, 0]))
                for n in range(starts[g], starts[g + 1]):
                    share = shares[n, k]
                    if share == 0:
                        continue
                    _solve(w, &a[k, 0, 0], &b[k, 0], &z[n, 0])
                    _complete(w, &z[n, 0])
                    p = 0
                    for i in range(D):
                        for j in range(i, D):
                            out[p + j - i] += share * w.x[i] * w.x[j]
                        p += D - i
                    if linear:
                        for i in range(D):
                            out[p + i] += share * w.x[i]
                _invert(w)
                _add_spread(w, &ridge[0], mass, out)
                for i in range(w.m):
                    entropy -= each[w.missing[i]]
                out[P - 3] += mass
                out[P - 2] += mass * entropy
                out[P - 1] += mass
        free(w)


cdef void _add_spread(Work* w, const double* ridge, double mass, double* out) noexcept nogil:
    """Add ``mass`` times the variance of missing entries, without their ridge, to packed squares."""
    cdef Py_ssize_t i, j, row, D = w.D
    for i in range(w.m):
        row = w.missing[i]
        row = row * D - row * (row - 1) // 2 - row      # + column: its place
        out[row + w.missing[i]] -= mass * ridge[w.missing[i]]
        for j in range(i, w.m):
            out[row + w.missing[j]] += mass * w.inverse[i * w.m + j]


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
    cdef Py_ssize_t G = missing.shape[0], D = a.shape[0], g, n, i
    cdef Work* w = _make(D)
    if w == NULL:
        raise MemoryError("no memory for rows with missing entries")
    spread[:, :] = 0
    with nogil:
        for g in range(G):
            _enter(w, &missing[g, 0])
            entropy[g] = 0.5 * (w.m * (1.0 + log(2.0 * M_PI)) - _factor(w, &a[0, 0]))
            for i in range(w.m):
                entropy[g] -= each[w.missing[i]]
            for n in range(starts[g], starts[g + 1]):
                _solve(w, &a[0, 0], &b[0], &z[n, 0])
                _complete(w, &z[n, 0])
                for i in range(D):
                    x[n, i] = w.x[i]
            _invert(w)
            _add_spread(w, &ridge[0], 1.0, &spread[g, 0])
        free(w)
