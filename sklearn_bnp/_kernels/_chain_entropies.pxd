"""Entropies of Markov chains whose states are renamed, several to one name.

Inlined into `_forward_backward.pyx`. Most rows belong to one state, or to a few: only states that are
active in a row enter, and only maps that give two of them one name differ there from the entropy of the
chain itself. Maps are listed by the pairs of states that they merge, so that the rest cost nothing.
"""
from libc.math cimport log
from libc.string cimport memset

cdef extern from "chain_math.h" nogil:
    double dot(const double*, const double*, Py_ssize_t)
    double ACTIVE

cdef struct Coarse:
    # The chain and the maps; those that merge k < l are merging[ptr[k K + l]:ptr[k K + l + 1]].
    Py_ssize_t K, P, n_seq
    const double* alpha     # (T, K)
    const double* resp      # (T, K)
    const double* At        # (K, ld) transposed transitions
    Py_ssize_t ld
    const long long* indptr
    const Py_ssize_t* maps  # (P, K)
    Py_ssize_t* ptr         # (K K + 1,)
    Py_ssize_t* merging

cdef struct Active:
    # States of a row that take part, and for a map the first of them with the same name.
    Py_ssize_t n
    Py_ssize_t* state       # (K,)
    Py_ssize_t* group       # (K,)

cdef struct CoarseWork:
    Active now, next
    Py_ssize_t n_touched, stamp
    Py_ssize_t* stamps      # (P,)
    Py_ssize_t* touched     # (P,) maps that merge something here
    double* s               # (K, K) pair marginals of active states
    double* merged          # (K, K) the same after renaming, and (K,) for single rows


cdef inline Py_ssize_t coarse_bytes(const Coarse* c) noexcept nogil:
    return (4 * c.K + 2 * c.P) * sizeof(Py_ssize_t) + 2 * c.K * c.K * sizeof(double)


cdef inline void place_coarse(CoarseWork* q, const Coarse* c, char* base) noexcept nogil:
    cdef Py_ssize_t* index = <Py_ssize_t*>(base + 2 * c.K * c.K * sizeof(double))
    q.s = <double*>base
    q.merged = q.s + c.K * c.K
    q.now.state = index
    q.now.group = index + c.K
    q.next.state = index + 2 * c.K
    q.next.group = index + 3 * c.K
    q.stamps = index + 4 * c.K
    q.touched = q.stamps + c.P
    q.stamp = 0
    memset(q.stamps, 0, c.P * sizeof(Py_ssize_t))


cdef inline Py_ssize_t merged_pairs(Coarse* c) noexcept nogil:
    """Lists the maps by the pairs that they merge; counts them only while ``merging`` is NULL."""
    cdef Py_ssize_t p, k, l, K = c.K, total = 0
    cdef const Py_ssize_t* name
    if c.merging == NULL:
        memset(c.ptr, 0, (K * K + 1) * sizeof(Py_ssize_t))
    for p in range(c.P):
        name = c.maps + p * K
        for k in range(K):
            for l in range(k + 1, K):
                if name[k] == name[l]:
                    if c.merging != NULL:
                        c.merging[c.ptr[k * K + l]] = p
                    c.ptr[k * K + l] += 1
    if c.merging == NULL:               # where each pair's list begins
        for k in range(K * K + 1):
            total += c.ptr[k]
            c.ptr[k] = total - c.ptr[k]
        return total
    for k in range(K * K, 0, -1):       # filling has moved each to the beginning of the next
        c.ptr[k] = c.ptr[k - 1]
    c.ptr[0] = 0
    return 0


cdef inline double phi(double x) noexcept nogil:
    return x * log(x) if x > 0 else 0.0


cdef inline void find_active(Active* a, const double* r, Py_ssize_t K) noexcept nogil:
    cdef Py_ssize_t k, n = 0
    for k in range(K):
        a.state[n] = k
        n += r[k] > ACTIVE
    a.n = n


cdef inline void touch(CoarseWork* q, const Coarse* c, const Active* a) noexcept nogil:
    """Adds the maps that merge two of these states."""
    cdef Py_ssize_t i, j, m, p, pair
    for i in range(a.n):
        for j in range(i + 1, a.n):
            pair = a.state[i] * c.K + a.state[j]
            for m in range(c.ptr[pair], c.ptr[pair + 1]):
                p = c.merging[m]
                if q.stamps[p] != q.stamp:
                    q.stamps[p] = q.stamp
                    q.touched[q.n_touched] = p
                    q.n_touched += 1


cdef inline void find_groups(Active* a, const Py_ssize_t* name) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(a.n):
        j = 0
        while name[a.state[j]] != name[a.state[i]]:
            j += 1
        a.group[i] = j


cdef inline void row_terms(CoarseWork* q, const Coarse* c, const double* r, double sign,
                           double* base, double* extra) noexcept nogil:
    """sign sum phi(r) of the row `now`: for the chain, and what each map changes in it."""
    cdef Py_ssize_t i, m
    cdef double own = 0, total
    for i in range(q.now.n):
        own += phi(r[q.now.state[i]])
    base[0] += sign * own
    q.stamp += 1
    q.n_touched = 0
    touch(q, c, &q.now)
    for m in range(q.n_touched):
        find_groups(&q.now, c.maps + q.touched[m] * c.K)
        memset(q.merged, 0, q.now.n * sizeof(double))
        total = 0
        for i in range(q.now.n):
            q.merged[q.now.group[i]] += r[q.now.state[i]]
        for i in range(q.now.n):
            total += phi(q.merged[i])
        extra[q.touched[m]] += sign * (total - own)


cdef inline void find_pairs(CoarseWork* q, const Coarse* c, Py_ssize_t t) noexcept nogil:
    """s (n, m) of the active states of rows t and t + 1."""
    cdef Py_ssize_t i, j, k, l, n = q.now.n, m = q.next.n
    cdef const double* alpha = c.alpha + t * c.K
    cdef const double* r = c.resp + t * c.K
    cdef const double* r_next = r + c.K
    cdef const double* column
    cdef double pred, w
    if m == 1:                          # what is left out is as small as states that are not active
        for i in range(n):
            q.s[i] = r[q.now.state[i]]
        return
    for j in range(m):
        l = q.next.state[j]
        if n == 1:
            q.s[j] = r_next[l]
            continue
        column = c.At + l * c.ld
        pred = dot(alpha, column, c.K)
        w = r_next[l] / pred if pred > 0 else 0.0
        for i in range(n):
            k = q.now.state[i]
            q.s[i * m + j] = alpha[k] * column[k] * w


cdef inline void pair_terms(CoarseWork* q, const Coarse* c, Py_ssize_t t, double* base,
                            double* extra) noexcept nogil:
    """-sum phi(s) of rows t and t + 1."""
    cdef Py_ssize_t i, j, p, n = q.now.n, m = q.next.n
    cdef double own = 0, total
    find_pairs(q, c, t)
    for i in range(n * m):
        own += phi(q.s[i])
    base[0] -= own
    q.stamp += 1
    q.n_touched = 0
    touch(q, c, &q.now)
    touch(q, c, &q.next)
    for p in range(q.n_touched):
        find_groups(&q.now, c.maps + q.touched[p] * c.K)
        find_groups(&q.next, c.maps + q.touched[p] * c.K)
        memset(q.merged, 0, n * m * sizeof(double))
        for i in range(n):
            for j in range(m):
                q.merged[q.now.group[i] * m + q.next.group[j]] += q.s[i * m + j]
        total = 0
        for i in range(n * m):
            total += phi(q.merged[i])
        extra[q.touched[p]] -= total - own


cdef inline void chunk_entropies(CoarseWork* q, const Coarse* c, Py_ssize_t lo, Py_ssize_t hi,
                                 double* out) noexcept nogil:
    """out (1 + P,): what rows lo to hi add to the entropy of the chain, and what each map changes.

    A chain's entropy is that of its pairs less that of its rows, the first and the last left out.
    """
    cdef Py_ssize_t t, d = 0, above = c.n_seq, middle
    cdef bint is_first, is_last
    cdef Active spare
    memset(out, 0, (1 + c.P) * sizeof(double))
    while above - d > 1:                # the sequence that row lo belongs to
        middle = (d + above) // 2
        if c.indptr[middle] <= lo:
            d = middle
        else:
            above = middle
    find_active(&q.now, c.resp + lo * c.K, c.K)
    for t in range(lo, hi):
        while t >= c.indptr[d + 1]:
            d += 1
        is_first = t == c.indptr[d]
        is_last = t + 1 == c.indptr[d + 1]
        if is_first == is_last:         # a row in between; or the only one, which has no pair
            row_terms(q, c, c.resp + t * c.K, -1.0 if is_first else 1.0, out, out + 1)
        if not is_last or t + 1 < hi:
            find_active(&q.next, c.resp + (t + 1) * c.K, c.K)
        if not is_last:
            pair_terms(q, c, t, out, out + 1)
        spare = q.now
        q.now = q.next
        q.next = spare
