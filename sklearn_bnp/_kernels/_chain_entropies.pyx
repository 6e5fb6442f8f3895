"""Entropies of posterior Markov chains whose states are renamed, several to one name.

A merge of states that is tried on given responsibilities needs them exactly (Hughes 2016, Sec. 6.5.1). Most
rows belong to one state or to a few. So only states that are active in a row are used, and a map changes the
entropy there only if it gives two of them the same name. Maps are listed by the pairs of states that they
merge, so that all others cost nothing. If only changes are wanted, rows that no map changes cost nothing
either.

Chunks of rows are summed in order, so the number of threads does not change a bit. These functions trust
their callers; shapes and values are checked in the Python that calls them.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport log
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport ddot

cdef extern from "entropy_math.h" nogil:
    double entropy_of_shares(double*, const double*, Py_ssize_t)

cdef Py_ssize_t CHUNK_ROWS = 1024       # rows whose entropies are summed before they join the total
cdef double ACTIVE = 1e-13              # a state left out of a row has r log r of at most 3e-12


cdef struct Coarse:
    # The chain and the maps. Maps merging[ptr[k K + l]:ptr[k K + l + 1]] merge states k < l.
    Py_ssize_t K, P, n_seq
    bint changes            # whether only changes are wanted, and not the entropy of the chain itself
    const double* alpha     # (T, K)
    const double* resp      # (T, K)
    const double* At        # (K, K) transposed transitions
    const double* weight    # (n_seq,) or NULL
    const long long* indptr
    Py_ssize_t* leader      # (P, K) the first state of the same name
    Py_ssize_t* ptr         # (K K + 1,)
    Py_ssize_t* merging

cdef struct Active:
    # Active states of a row, and how a map groups them: a group is named by the place of its first state.
    Py_ssize_t n, n_shared
    Py_ssize_t* state       # (K,)
    Py_ssize_t* group       # (K,)
    Py_ssize_t* size        # (K,) size of the group that begins here
    Py_ssize_t* shared      # (K,) places in groups of more than one

cdef struct CoarseWork:
    Active now, next
    Py_ssize_t n_touched, stamp
    Py_ssize_t* slot        # (K,) -1 between calls
    Py_ssize_t* stamps      # (P,)
    Py_ssize_t* touched     # (P,) maps that merge something here
    double* s               # (K, K) pair marginals of active states
    double* f               # (K, K) -phi of these
    double* merged          # (K, K) the same after renaming, where it differs


cdef Py_ssize_t _coarse_bytes(const Coarse* c) noexcept nogil:
    return (9 * c.K + 2 * c.P) * sizeof(Py_ssize_t) + 3 * c.K * c.K * sizeof(double)


cdef void _place_active(Active* a, Py_ssize_t K, Py_ssize_t* base) noexcept nogil:
    a.state = base
    a.group = base + K
    a.size = base + 2 * K
    a.shared = base + 3 * K


cdef void _place_coarse(CoarseWork* q, const Coarse* c, char* base) noexcept nogil:
    cdef Py_ssize_t* index = <Py_ssize_t*>(base + 3 * c.K * c.K * sizeof(double))
    cdef Py_ssize_t k
    q.s = <double*>base
    q.f = q.s + c.K * c.K
    q.merged = q.f + c.K * c.K
    _place_active(&q.now, c.K, index)
    _place_active(&q.next, c.K, index + 4 * c.K)
    q.slot = index + 8 * c.K
    q.stamps = index + 9 * c.K
    q.touched = q.stamps + c.P
    q.stamp = 0
    memset(q.stamps, 0, c.P * sizeof(Py_ssize_t))
    for k in range(c.K):
        q.slot[k] = -1


cdef void _find_leaders(Coarse* c, const Py_ssize_t* maps) noexcept nogil:
    cdef Py_ssize_t p, k, l, K = c.K
    for p in range(c.P):
        for k in range(K):
            l = 0
            while maps[p * K + l] != maps[p * K + k]:
                l += 1
            c.leader[p * K + k] = l


cdef Py_ssize_t _list_maps(Coarse* c) noexcept nogil:
    """List the maps by the pairs that they merge; if ``merging`` is NULL, only count them."""
    cdef Py_ssize_t p, k, l, K = c.K, total = 0
    cdef const Py_ssize_t* leader
    if c.merging == NULL:
        memset(c.ptr, 0, (K * K + 1) * sizeof(Py_ssize_t))
    for p in range(c.P):
        leader = c.leader + p * K
        for k in range(K):
            for l in range(k + 1, K):
                if leader[k] == leader[l]:
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


cdef double _phi(double x) noexcept nogil:
    return x * log(x) if x > 0 else 0.0


cdef void _find_active(Active* a, const double* r, Py_ssize_t K) noexcept nogil:
    cdef Py_ssize_t k, n = 0
    for k in range(K):
        a.state[n] = k
        n += r[k] > ACTIVE
    a.n = n


cdef void _touch(CoarseWork* q, const Coarse* c, const Active* a) noexcept nogil:
    """Add the maps that merge two of these states to the list of touched maps."""
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


cdef void _find_groups(Active* a, const Py_ssize_t* leader, Py_ssize_t* slot) noexcept nogil:
    cdef Py_ssize_t i, k
    for i in range(a.n):
        k = leader[a.state[i]]
        if slot[k] < 0:
            slot[k] = i
            a.size[i] = 0
        a.group[i] = slot[k]
        a.size[slot[k]] += 1
    a.n_shared = 0
    for i in range(a.n):
        slot[leader[a.state[i]]] = -1
        if a.size[a.group[i]] > 1:
            a.shared[a.n_shared] = i
            a.n_shared += 1


cdef void _row_terms(CoarseWork* q, const Coarse* c, const double* r, double weight,
                     double* base, double* extra) noexcept nogil:
    """Add weight * sum(_phi(r)) of the row `now` for the chain, and its change by each map."""
    cdef Py_ssize_t i, m, x
    cdef double change
    q.stamp += 1
    q.n_touched = 0
    _touch(q, c, &q.now)
    if c.changes and q.n_touched == 0:
        return
    for i in range(q.now.n):
        q.f[i] = r[q.now.state[i]]
    base[0] -= weight * entropy_of_shares(q.f, NULL, q.now.n)
    for m in range(q.n_touched):
        _find_groups(&q.now, c.leader + q.touched[m] * c.K, q.slot)
        change = 0
        for x in range(q.now.n_shared):         # a group's first comes first
            i = q.now.shared[x]
            if q.now.group[i] == i:
                q.merged[i] = 0
            q.merged[q.now.group[i]] += r[q.now.state[i]]
            change += q.f[i]
        for x in range(q.now.n_shared):
            i = q.now.shared[x]
            if q.now.group[i] == i:
                change += _phi(q.merged[i])
        extra[q.touched[m]] += weight * change


cdef void _find_pairs(CoarseWork* q, const Coarse* c, Py_ssize_t t) noexcept nogil:
    """s (n, m) of the active states of rows t and t + 1."""
    cdef Py_ssize_t i, j, k, l, n = q.now.n, m = q.next.n
    cdef const double* alpha = c.alpha + t * c.K
    cdef const double* r = c.resp + t * c.K
    cdef const double* r_next = r + c.K
    cdef const double* column
    cdef double pred, w
    cdef int K = <int>c.K, one = 1
    if m == 1:                          # what is left out is as small as states that are not active
        for i in range(n):
            q.s[i] = r[q.now.state[i]]
        return
    for j in range(m):
        l = q.next.state[j]
        if n == 1:
            q.s[j] = r_next[l]
            continue
        column = c.At + l * c.K
        pred = ddot(&K, <double*>alpha, &one, <double*>column, &one)
        w = r_next[l] / pred if pred > 0 else 0.0
        for i in range(n):
            k = q.now.state[i]
            q.s[i * m + j] = alpha[k] * column[k] * w


cdef double _merged_change(CoarseWork* q) noexcept nogil:
    """Change of sum(_phi(s)) by renaming; only rows and columns that share a name are visited."""
    cdef Active* a = &q.now
    cdef Active* b = &q.next
    cdef Py_ssize_t i, j, x, n, m = b.n
    cdef double change = 0
    cdef double* row
    cdef bint whole
    for i in range(a.n):
        whole = a.size[a.group[i]] > 1          # all columns of the row, or those that are shared
        n = m if whole else b.n_shared
        row = q.merged + a.group[i] * m
        if a.group[i] == i:
            for x in range(n):
                row[x if whole else b.shared[x]] = 0
        for x in range(n):
            j = x if whole else b.shared[x]
            row[b.group[j]] += q.s[i * m + j]
            change += q.f[i * m + j]
    for i in range(a.n):
        if a.group[i] == i:
            whole = a.size[i] > 1
            for x in range(m if whole else b.n_shared):
                j = x if whole else b.shared[x]
                if b.group[j] == j:
                    change += _phi(q.merged[i * m + j])
    return change


cdef void _pair_terms(CoarseWork* q, const Coarse* c, Py_ssize_t t, double weight, double* base,
                      double* extra) noexcept nogil:
    """Add -weight * sum(_phi(s)) of rows t and t + 1, and its change by each map."""
    cdef Py_ssize_t i, p, n
    q.stamp += 1
    q.n_touched = 0
    _touch(q, c, &q.now)
    _touch(q, c, &q.next)
    if c.changes and q.n_touched == 0:
        return
    _find_pairs(q, c, t)
    n = q.now.n * q.next.n
    memcpy(q.f, q.s, n * sizeof(double))
    base[0] += weight * entropy_of_shares(q.f, NULL, n)
    for i in range(q.n_touched):
        p = q.touched[i]
        _find_groups(&q.now, c.leader + p * c.K, q.slot)
        _find_groups(&q.next, c.leader + p * c.K, q.slot)
        extra[p] -= weight * _merged_change(q)


cdef void _chunk_entropies(CoarseWork* q, const Coarse* c, Py_ssize_t lo, Py_ssize_t hi,
                           double* out) noexcept nogil:
    """Set out (1 + P,): the part of rows lo to hi in the entropy of the chain, and its change by each map.

    A chain's entropy is that of its pairs minus that of its rows, without the first and the last row.
    """
    cdef Py_ssize_t t, d = 0, above = c.n_seq, middle
    cdef bint is_first, is_last
    cdef double w
    cdef Active spare
    memset(out, 0, (1 + c.P) * sizeof(double))
    while above - d > 1:                # the sequence that row lo belongs to
        middle = (d + above) // 2
        if c.indptr[middle] <= lo:
            d = middle
        else:
            above = middle
    _find_active(&q.now, c.resp + lo * c.K, c.K)
    for t in range(lo, hi):
        while t >= c.indptr[d + 1]:
            d += 1
        is_first = t == c.indptr[d]
        is_last = t + 1 == c.indptr[d + 1]
        w = c.weight[d] if c.weight != NULL else 1.0
        if is_first == is_last:         # a row in between; or the only one, which has no pair
            _row_terms(q, c, c.resp + t * c.K, -w if is_first else w, out, out + 1)
        if not is_last or t + 1 < hi:
            _find_active(&q.next, c.resp + (t + 1) * c.K, c.K)
        if not is_last:
            _pair_terms(q, c, t, w, out, out + 1)
        spare = q.now
        q.now = q.next
        q.next = spare


def coarse_entropies(
    const double[:, ::1] alpha,         # IN  (T, K) from forward
    const double[:, ::1] resp,          # IN  (T, K) from backward
    const long long[::1] indptr,        # IN  (n_seq + 1,)
    const double[:, ::1] trans,         # IN  (K, K)
    const Py_ssize_t[:, ::1] maps,      # IN  (P, K) the new name of each state, any integer
    double[::1] out,                    # OUT (P,)
    int n_threads,
    const double[::1] weight=None,      # IN  (n_seq,) or None: how often each sequence counts
    bint changes=False,                 # IN  subtract the entropy of the chain itself, which is faster
):
    """Sums of the entropies of posterior chains after states have been renamed.

    With s[t] the pair marginals and r[t] the responsibilities, both summed by new name, equivalent to ::

        out = -sum(s * log(s)) + sum(r * log(r) of rows that are neither first nor last)

    or ``-sum(r * log(r))`` for a sequence of one row; Hughes (2016), (6.24). States with r < 1e-13 in a row
    are left out there. The sum over sequences is weighted.
    """
    cdef Py_ssize_t T = resp.shape[0], n_chunks = (T + CHUNK_ROWS - 1) // CHUNK_ROWS, i, p, k, l
    cdef Py_ssize_t size
    cdef Coarse c
    cdef char* work = NULL
    cdef double* sums
    cdef double* At
    cdef CoarseWork* works
    cdef double total = 0
    memset(&c, 0, sizeof(Coarse))
    c.K = resp.shape[1]
    c.P = maps.shape[0]
    c.n_seq = indptr.shape[0] - 1
    out[:] = 0
    if T == 0 or c.P == 0:
        return
    c.changes = changes
    c.alpha = &alpha[0, 0]
    c.resp = &resp[0, 0]
    c.indptr = &indptr[0]
    if weight is not None:
        c.weight = &weight[0]
    n_threads = max(1, min(n_threads, n_chunks))
    size = _coarse_bytes(&c)
    works = <CoarseWork*>malloc(n_threads * sizeof(CoarseWork))
    c.ptr = <Py_ssize_t*>malloc((c.K * c.K + 1) * sizeof(Py_ssize_t))
    # Transitions come first, because how BLAS for old processors rounds depends on the alignment to 16 bytes,
    # and the entropy of a map must not depend on how many maps there are.
    At = <double*>malloc((c.K * c.K + n_chunks * (1 + c.P)) * sizeof(double))
    c.leader = <Py_ssize_t*>malloc(c.P * c.K * sizeof(Py_ssize_t))
    if works != NULL and c.ptr != NULL and At != NULL and c.leader != NULL:
        _find_leaders(&c, &maps[0, 0])
        c.merging = <Py_ssize_t*>malloc((_list_maps(&c) + 1) * sizeof(Py_ssize_t))
        work = <char*>malloc(n_threads * size)
    if c.merging == NULL or work == NULL:
        free(works)
        free(c.ptr)
        free(c.leader)
        free(At)
        free(c.merging)
        free(work)
        raise MemoryError("no memory for the entropies of chains")
    _list_maps(&c)
    sums = At + c.K * c.K
    for k in range(c.K):
        for l in range(c.K):
            At[l * c.K + k] = trans[k, l]
    c.At = At
    for i in range(n_threads):
        _place_coarse(works + i, &c, work + i * size)
    for i in prange(n_chunks, nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads):
        _chunk_entropies(works + threadid(), &c, i * CHUNK_ROWS, min(T, (i + 1) * CHUNK_ROWS),
                         sums + i * (1 + c.P))
    for i in range(n_chunks):
        total += sums[i * (1 + c.P)]
        for p in range(c.P):
            out[p] += sums[i * (1 + c.P) + 1 + p]
    for p in range(c.P):
        out[p] += 0.0 if changes else total
    free(works)
    free(c.ptr)
    free(c.leader)
    free(At)
    free(c.merging)
    free(work)
