"""Histograms whose bins are the nodes of polynomials: sums of Chebyshev polynomials over points.

Points are added in their order by one thread. This function trusts its caller, who allocates all arrays.
"""


def spread_over_nodes(
    const long long[::1] row,           # IN  (n,) the row of ``out`` that each point belongs to
    const double[::1] x,                # IN  (n,) from -1 to 1
    const double[::1] weight,           # IN  (n,) or None: 1 for all
    const double[:, ::1] table,         # IN  (m, m) weights of the nodes for each polynomial
    double[:, ::1] moments,             # IN  (R, m) zeros; overwritten
    double[:, ::1] out,                 # OUT (R, m)
):
    """Weights of m nodes that stand for the points of each row.

    Equivalent to ``moments[r] = sum(weight[i] * T(x[i]) for i with row[i] == r)``, with the Chebyshev
    polynomials ``T(x) = cos(arange(m) * arccos(x))``, and ``out = moments @ table``.
    """
    cdef Py_ssize_t n = x.shape[0], m = table.shape[0], R = out.shape[0], i, j, r
    cdef double w, before, now, after, twice
    cdef double* sums
    with nogil:
        for i in range(n):
            sums = &moments[row[i], 0]
            w = weight[i] if weight is not None else 1.0
            before, now, twice = w, w * x[i], 2.0 * x[i]
            sums[0] += before
            for j in range(1, m):
                sums[j] += now
                after = twice * now - before  # T_{j+1} = 2 x T_j - T_{j-1}
                before, now = now, after
        for r in range(R):
            for i in range(m):
                w = 0.0
                for j in range(m):
                    w += moments[r, j] * table[j, i]
                out[r, i] = w
