"""The largest products of each entry: responsibilities with at most L nonzeros (Hughes 2016, Alg. 7.4).

See the design note of `_topics.pyx`, into which all this is inlined.
"""
from libc.string cimport memcpy, memset

from cython cimport floating

from ._documents cimport Call, State, Work, drop_topics, gather, typed_weights
from ._tiles cimport kth_largest

cdef extern from "topic_math.h" nogil:
    Py_ssize_t LANES
    Py_ssize_t CLASSES
    double DROP_BELOW
    void class_maxima_d(double*, double*, Py_ssize_t, double*, double*)
    void class_maxima_f(float*, float*, Py_ssize_t, float*, float*)
    void recount_d(double*, double*, Py_ssize_t*, Py_ssize_t, double*, Py_ssize_t, double*, double*)
    void recount_f(float*, float*, Py_ssize_t*, Py_ssize_t, float*, Py_ssize_t, float*, float*)


cdef inline Py_ssize_t largest(floating* p, Py_ssize_t n, Py_ssize_t L, floating* top,
                               floating* scratch, Py_ssize_t* out) noexcept nogil:
    """Indices of the L largest positive p, of ties the first. ``top``: largest of n's residues."""
    cdef Py_ssize_t filled = 0, i, l, k, spare
    cdef floating v, bar = 0
    cdef floating best[16]
    if L > 16:
        for k in range(n):
            if p[k] > 0:
                scratch[filled] = p[k]
                filled += 1
        spare = 0
        if filled > L:
            bar = kth_largest(scratch, filled, L)
            spare = L
            for k in range(n):
                spare -= p[k] > bar
        filled = 0
        for k in range(n):
            if p[k] > bar:
                out[filled] = k
                filled += 1
            elif p[k] == bar and spare > 0:
                out[filled] = k
                filled += 1
                spare -= 1
        return filled
    # the L-th largest of the residues' maxima is reached by L products, in L residues
    for l in range(CLASSES):
        v = top[l]
        if filled == L and not v > best[L - 1]:
            continue
        i = filled if filled < L else L - 1
        while i > 0 and best[i - 1] < v:
            best[i] = best[i - 1]
            i -= 1
        best[i] = v
        filled = min(filled + 1, L)
    bar = best[L - 1]
    filled = 0
    for l in range(CLASSES):
        if not (top[l] >= bar and top[l] > 0):
            continue
        k = l
        while k < n:
            v = p[k]
            if v > 0 and v >= bar and (filled < L or v > best[L - 1]
                                       or (v == best[L - 1] and k < out[L - 1])):
                i = filled if filled < L else L - 1
                while i > 0 and (best[i - 1] < v or (best[i - 1] == v and out[i - 1] > k)):
                    best[i] = best[i - 1]
                    out[i] = out[i - 1]
                    i -= 1
                best[i] = v
                out[i] = k
                filled = min(filled + 1, L)
            k += CLASSES
    return filled


cdef inline void products_of(floating* values, floating* e, Py_ssize_t n, floating* p,
                             floating* top) noexcept nogil:
    """p = values * e, and the largest of each residue class of indices."""
    if floating is double:
        class_maxima_d(values, e, n, p, top)
    else:
        class_maxima_f(values, e, n, p, top)


cdef inline void choose(Work* q, Call* call, State* state, floating* e) noexcept nogil:
    """The mask: for each entry the L largest of the state's products."""
    cdef Py_ssize_t u = 0, l, j, n
    cdef floating* B = <floating*>q.B
    cdef floating* mask = <floating*>q.mask
    cdef floating* column = <floating*>q.products
    cdef floating* p = column + call.K
    cdef floating* top = p + call.K
    cdef floating kept[8]
    cdef floating found[8]
    while u < q.U:
        if floating is double:
            recount_d(B + u, mask + u, state.row, state.A, e, call.L, kept, found)
        else:
            recount_f(B + u, mask + u, state.row, state.A, e, call.L, kept, found)
        for l in range(min(LANES, q.U - u)):
            if kept[l] == found[l] and kept[l] <= call.L:
                continue
            for j in range(state.A):
                column[j] = B[state.row[j] + u + l]
                mask[state.row[j] + u + l] = 0
            products_of(column, e, state.A, p, top)
            n = largest(p, state.A, call.L, top, column, q.chosen)
            for j in range(n):
                mask[state.row[q.chosen[j]] + u + l] = B[state.row[q.chosen[j]] + u + l]
        u += LANES


cdef inline void first_choice(Work* q, Call* call, const floating* table, State* state) noexcept nogil:
    """N after one step of all K topics, chosen in the table itself; only what was chosen stays."""
    cdef Py_ssize_t u, i, j, n, K = call.K
    cdef Py_ssize_t* chosen
    cdef floating* e = typed_weights(q, state, <floating*>NULL)
    cdef floating* row
    cdef floating* p = <floating*>q.products + K
    cdef floating* top = p + K
    cdef double s
    memset(q.next_N, 0, K * sizeof(double))
    for u in range(q.U):
        chosen = q.chosen + u * call.L
        row = <floating*>table + q.items[u] * K
        products_of(row, e, K, p, top)
        n = largest(p, K, call.L, top, <floating*>q.products, chosen)
        s = 0
        for i in range(n):
            s += p[chosen[i]]
        for i in range(n):
            q.next_N[chosen[i]] += q.c_d[u] * p[chosen[i]] / s
        if n == 0:                          # without digits: any topic that it may have
            for j in range(K):
                if row[j] > row[chosen[0]] or j == 0:
                    chosen[0] = j
            q.next_N[chosen[0]] += q.c_d[u]
            n = 1
        if n < call.L:
            chosen[n] = -1
    memcpy(state.N, q.next_N, K * sizeof(double))
    drop_topics(state, max(DROP_BELOW * q.tokens, 1e-300))
    gather(q, table, K, state)
    for u in range(q.U):
        chosen = q.chosen + u * call.L
        for i in range(call.L):
            if chosen[i] < 0:
                break
            if q.gathered[chosen[i]]:
                j = chosen[i] * q.stride + u
                (<floating*>q.mask)[j] = (<floating*>q.B)[j]
