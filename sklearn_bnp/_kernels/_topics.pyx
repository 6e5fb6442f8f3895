"""The local and summary steps of topic models, document by document.

Design note
-----------
(a) A document is solved in one thread without Python: its likelihoods are gathered once, topic by
    topic, and the fixed point in N_k (Hughes 2016, Alg. 5.1) runs over them. Topics that have died
    out are dropped by index, so that an iteration costs U x (living topics).
(b) A `State` holds the living topics with N and e = exp(E log pi) (up to a factor), from which the shares
    ``r = table e / s`` follow. Every proposal (cold start, restart) is a `State` with a score; the
    best one is kept. Coordinate ascent raises the score; only dropping topics could lower it.
(c) With at most L topics an entry, a masked copy of the gather holds the chosen likelihoods and 0
    elsewhere; the same loops run over it. Choosing anew (Alg. 7.4) first asks, for several entries
    at once, whether the choice has changed at all. The first choice reads the table itself, and only
    what it chose is gathered.
(d) Entries whose products all underflow go to their likeliest topic.
(e) Documents are solved in parallel. The sums over documents are taken afterwards, each thread owning
    a range of items and going through all documents in order, so no bit depends on the threads.

These functions trust their callers; shapes and values are checked in the Python that calls them.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport fabs, log
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from cython cimport floating

from ._tiles cimport kth_largest

cdef extern from "topic_math.h" nogil:
    void count_sums(double*, const double*, Py_ssize_t, double, double*, double*)
    void exp_digamma_all(double*, double*, Py_ssize_t)
    void lgamma_all(double*, double*, Py_ssize_t)
    void topic_weights(double*, double*, Py_ssize_t, double*, double*)
    double log_likelihood(double*, double*, Py_ssize_t, double)
    double topic_score(double*, double*, double*, double*, double*, Py_ssize_t)
    Py_ssize_t document_pass_d(double*, Py_ssize_t*, Py_ssize_t, double*, double*, Py_ssize_t, double*,
                               double*, double*)
    Py_ssize_t document_pass_f(float*, Py_ssize_t*, Py_ssize_t, float*, float*, Py_ssize_t, float*,
                               float*, double*)
    Py_ssize_t document_settle_d(double*, Py_ssize_t*, Py_ssize_t, double*, double*, Py_ssize_t,
                                 double*, double*, double*, double)
    Py_ssize_t document_settle_f(float*, Py_ssize_t*, Py_ssize_t, double*, double*, Py_ssize_t,
                                 double*, double*, double*, double)
    double share_entropy_d(double*, double, double*, double*, Py_ssize_t)
    double share_entropy_f(float*, double, double*, double*, Py_ssize_t)
    void class_maxima_d(double*, double*, Py_ssize_t, double*, double*)
    void class_maxima_f(float*, float*, Py_ssize_t, float*, float*)
    void recount_d(double*, double*, Py_ssize_t*, Py_ssize_t, double*, Py_ssize_t, double*, double*)
    void recount_f(float*, float*, Py_ssize_t*, Py_ssize_t, float*, Py_ssize_t, float*, float*)

cdef Py_ssize_t LANES = 8               # of topic_math.h
cdef Py_ssize_t CLASSES = 32            # 4 * LANES
cdef Py_ssize_t CHUNK_DOCS = 16         # documents whose entropies are summed before they join the total
cdef double DROP_BELOW = 1e-7           # of a document's tokens: topics under it leave (Alg. 7.4)
cdef double TINY = 1e-290               # sums of products under it have lost their digits
cdef double RESTART_ABOVE = 0.1         # tokens of a topic that is worth removing (Alg. 5.2)


cdef struct Call:
    # What is the same for all documents.
    Py_ssize_t K, L, max_iter, n_restarts
    double tol
    double* prior
    double* lgamma_prior


cdef struct State:
    # A topics, each with its offset into the gather; e may be stale by one step against N.
    Py_ssize_t A
    Py_ssize_t* topic
    Py_ssize_t* row
    double* a
    double* lgamma_a
    double* N
    double* log_e
    double* e
    double score


cdef struct Work:
    # Buffers of one thread, and the document that it is at: U entries, rounded up to `padded`.
    Py_ssize_t U, padded, stride, iterations
    double tokens
    void* B                 # (K, stride) gather
    void* mask              # (K, stride) likelihoods of chosen topics, or NULL
    void* c                 # (stride,) counts times mass, in the table's type
    void* s                 # (stride,)
    void* w                 # (stride,) c / s
    void* e                 # (K,) in the table's type
    void* products          # (2 K + CLASSES,)
    double* c_d             # (stride,) counts times mass
    double* s_d
    double* w_d
    double* next_N          # (K,)
    double* states
    Py_ssize_t* items       # (stride,) rows of the table
    Py_ssize_t* hot         # (stride,) where an entry that has lost its digits goes
    Py_ssize_t* chosen      # (stride, L) first choices
    Py_ssize_t* fresh       # (K,)
    Py_ssize_t* topics
    char* gathered          # (K,)
    State now, best


cdef void _carve(State* state, double* numbers, Py_ssize_t* topics, Py_ssize_t K) noexcept nogil:
    state.a = numbers
    state.lgamma_a = numbers + K
    state.N = numbers + 2 * K
    state.log_e = numbers + 3 * K
    state.e = numbers + 4 * K
    state.topic = topics
    state.row = topics + K


cdef bint _allocate(Work* q, Call* call, Py_ssize_t longest, Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t K = call.K, most = (longest + LANES - 1) // LANES * LANES + LANES
    cdef bint sparse = call.L < K
    q.B = malloc(K * most * itemsize)
    q.mask = malloc(K * most * itemsize) if sparse else NULL
    q.c = malloc(most * itemsize)
    q.s = malloc(most * itemsize)
    q.w = malloc(most * itemsize)
    q.e = malloc(K * itemsize)
    q.products = malloc((2 * K + CLASSES) * itemsize)
    q.c_d = <double*>malloc(most * sizeof(double))
    q.s_d = <double*>malloc(most * sizeof(double))
    q.w_d = <double*>malloc(most * sizeof(double))
    q.next_N = <double*>malloc(K * sizeof(double))
    q.states = <double*>malloc(10 * K * sizeof(double))
    q.items = <Py_ssize_t*>malloc(most * sizeof(Py_ssize_t))
    q.hot = <Py_ssize_t*>malloc(most * sizeof(Py_ssize_t))
    q.chosen = <Py_ssize_t*>malloc(most * (call.L if sparse else 1) * sizeof(Py_ssize_t))
    q.fresh = <Py_ssize_t*>malloc(K * sizeof(Py_ssize_t))
    q.topics = <Py_ssize_t*>malloc(4 * K * sizeof(Py_ssize_t))
    q.gathered = <char*>malloc(K)
    if (q.B == NULL or (sparse and q.mask == NULL) or q.c == NULL or q.s == NULL or q.w == NULL
            or q.e == NULL or q.products == NULL or q.c_d == NULL or q.s_d == NULL or q.w_d == NULL
            or q.next_N == NULL or q.states == NULL or q.items == NULL or q.hot == NULL
            or q.chosen == NULL or q.fresh == NULL or q.topics == NULL or q.gathered == NULL):
        return False
    _carve(&q.now, q.states, q.topics, K)
    _carve(&q.best, q.states + 5 * K, q.topics + 2 * K, K)
    return True


cdef void _release(Work* q) noexcept nogil:
    free(q.B)
    free(q.mask)
    free(q.c)
    free(q.s)
    free(q.w)
    free(q.e)
    free(q.products)
    free(q.c_d)
    free(q.s_d)
    free(q.w_d)
    free(q.next_N)
    free(q.states)
    free(q.items)
    free(q.hot)
    free(q.chosen)
    free(q.fresh)
    free(q.topics)
    free(q.gathered)


cdef void _add(State* state, Call* call, Work* q, Py_ssize_t k, double N) noexcept nogil:
    cdef Py_ssize_t j = state.A
    state.topic[j] = k
    state.row[j] = k * q.stride
    state.a[j] = call.prior[k]
    state.lgamma_a[j] = call.lgamma_prior[k]
    state.N[j] = N
    state.A = j + 1


cdef void _move(State* to, Py_ssize_t i, State* state, Py_ssize_t j) noexcept nogil:
    to.topic[i] = state.topic[j]
    to.row[i] = state.row[j]
    to.a[i] = state.a[j]
    to.lgamma_a[i] = state.lgamma_a[j]
    to.N[i] = state.N[j]
    to.log_e[i] = state.log_e[j]
    to.e[i] = state.e[j]


cdef void _copy(State* to, State* state) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(state.A):
        _move(to, j, state, j)
    to.A = state.A
    to.score = state.score


cdef void _drop(State* state, double bar) noexcept nogil:
    """Topics with N under the bar leave, unless all would."""
    cdef Py_ssize_t j, A = 0
    for j in range(state.A):
        A += state.N[j] >= bar
    if A == 0 or A == state.A:
        return
    A = 0
    for j in range(state.A):
        if state.N[j] >= bar:
            _move(state, A, state, j)
            A += 1
    state.A = A


cdef floating* _weights(Work* q, State* state, floating* like) noexcept nogil:
    """e in the type of ``like``."""
    cdef Py_ssize_t j
    cdef floating* e
    if floating is double:
        return state.e
    e = <floating*>q.e
    for j in range(state.A):
        e[j] = <floating>state.e[j]
    return e


cdef void _gather(Work* q, const floating* table, Py_ssize_t K, State* state) noexcept nogil:
    """Columns of the document's rows of the table that are not there yet, transposed."""
    cdef Py_ssize_t m = 0, j, k, u, l
    cdef floating* out
    cdef const floating* rows[8]
    for j in range(state.A):
        k = state.topic[j]
        if not q.gathered[k]:
            q.gathered[k] = 1
            q.fresh[m] = k
            m += 1
            if q.mask != NULL:
                memset(<floating*>q.mask + k * q.stride, 0, q.padded * sizeof(floating))
    if m == 0:
        return
    u = 0
    while u < q.padded:
        for l in range(8):
            rows[l] = table + q.items[min(u + l, q.U - 1)] * K
        for j in range(m):
            k = q.fresh[j]
            out = <floating*>q.B + k * q.stride + u
            for l in range(8):
                out[l] = rows[l][k]
        u += 8
    for j in range(m):
        for u in range(q.U, q.padded):
            (<floating*>q.B)[q.fresh[j] * q.stride + u] = 0


cdef Py_ssize_t _likeliest(Work* q, State* state, Py_ssize_t u, floating* like) noexcept nogil:
    """Position of the topic with the largest product for entry u, by logarithms."""
    cdef Py_ssize_t j, best = 0
    cdef double v, top = 0
    for j in range(state.A):
        v = log(max(<double>(<floating*>q.B)[state.row[j] + u], 1e-300)) + state.log_e[j]
        if j == 0 or v > top:
            top = v
            best = j
    return best


cdef Py_ssize_t _select(floating* p, Py_ssize_t n, Py_ssize_t L, floating* top, floating* scratch,
                        Py_ssize_t* out) noexcept nogil:
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


cdef void _maxima(floating* values, floating* e, Py_ssize_t n, floating* p, floating* top) noexcept nogil:
    if floating is double:
        class_maxima_d(values, e, n, p, top)
    else:
        class_maxima_f(values, e, n, p, top)


cdef void _choose(Work* q, Call* call, State* state, floating* e) noexcept nogil:
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
            _maxima(column, e, state.A, p, top)
            n = _select(p, state.A, call.L, top, column, q.chosen)
            for j in range(n):
                mask[state.row[q.chosen[j]] + u + l] = B[state.row[q.chosen[j]] + u + l]
        u += LANES


cdef void _first_choice(Work* q, Call* call, const floating* table, State* state) noexcept nogil:
    """N after one step of all K topics, chosen in the table itself; only what was chosen stays."""
    cdef Py_ssize_t u, i, j, n, K = call.K
    cdef Py_ssize_t* chosen
    cdef floating* e = _weights(q, state, <floating*>NULL)
    cdef floating* row
    cdef floating* p = <floating*>q.products + K
    cdef floating* top = p + K
    cdef double s
    memset(q.next_N, 0, K * sizeof(double))
    for u in range(q.U):
        chosen = q.chosen + u * call.L
        row = <floating*>table + q.items[u] * K
        _maxima(row, e, K, p, top)
        n = _select(p, K, call.L, top, <floating*>q.products, chosen)
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
    _drop(state, max(DROP_BELOW * q.tokens, 1e-300))
    _gather(q, table, K, state)
    for u in range(q.U):
        chosen = q.chosen + u * call.L
        for i in range(call.L):
            if chosen[i] < 0:
                break
            if q.gathered[chosen[i]]:
                j = chosen[i] * q.stride + u
                (<floating*>q.mask)[j] = (<floating*>q.B)[j]


cdef void _pass(Work* q, State* state, floating* e) noexcept nogil:
    """next_N of the shares that follow from e."""
    cdef floating* B = <floating*>(q.B if q.mask == NULL else q.mask)
    cdef floating* c = <floating*>q.c
    cdef floating* s = <floating*>q.s
    cdef floating* w = <floating*>q.w
    cdef Py_ssize_t lost, u
    if floating is double:
        lost = document_pass_d(B, state.row, state.A, e, c, q.padded, s, w, q.next_N)
    else:
        lost = document_pass_f(B, state.row, state.A, e, c, q.padded, s, w, q.next_N)
    if lost:
        for u in range(q.U):
            if c[u] > 0 and w[u] == 0:
                q.next_N[_likeliest(q, state, u, B)] += c[u]


cdef void _iterate(Work* q, Call* call, State* state, Py_ssize_t max_iter, double tol,
                   floating* like) noexcept nogil:
    """Alg. 5.1 from N on, or Alg. 7.4; leaves e of the last step."""
    cdef Py_ssize_t it, j
    cdef double change
    cdef floating* e
    for it in range(1, max_iter + 1):
        topic_weights(state.N, state.a, state.A, state.log_e, state.e)
        e = _weights(q, state, like)
        if q.mask != NULL and (it <= 5 or it % 10 == 0):
            _choose(q, call, state, e)
        _pass(q, state, e)
        change = 0
        for j in range(state.A):
            change = max(change, fabs(q.next_N[j] - state.N[j]))
            state.N[j] = q.next_N[j]
        q.iterations += 1
        if change < tol:
            break
        if it < max_iter and (it % 20 == 5 or q.mask != NULL):
            _drop(state, DROP_BELOW * q.tokens)


cdef void _settle(Work* q, Call* call, State* state, floating* like) noexcept nogil:
    """Shares, N and score that follow from e, in double."""
    cdef floating* B = <floating*>q.B
    cdef Py_ssize_t lost, u, j
    cdef double score
    if q.mask != NULL:
        _choose(q, call, state, _weights(q, state, like))
        B = <floating*>q.mask
    if floating is double:
        lost = document_settle_d(B, state.row, state.A, state.e, q.c_d, q.padded, q.s_d, q.w_d, state.N,
                                 TINY)
    else:
        lost = document_settle_f(B, state.row, state.A, state.e, q.c_d, q.padded, q.s_d, q.w_d, state.N,
                                 TINY)
    score = log_likelihood(q.c_d, q.s_d, q.padded, TINY)
    if lost:
        for u in range(q.U):
            if q.c_d[u] > 0 and q.s_d[u] <= TINY:
                j = _likeliest(q, state, u, B)
                state.N[j] += q.c_d[u]
                score += q.c_d[u] * (log(max(<double>(<floating*>q.B)[state.row[j] + u], 1e-300))
                                     + state.log_e[j])
    state.score = score + topic_score(state.N, state.a, state.lgamma_a, state.log_e, q.next_N, state.A)


cdef bint _keep(Work* q) noexcept nogil:
    """``now`` becomes ``best`` if its score is higher."""
    if q.best.A > 0 and not q.now.score > q.best.score:
        return False
    _copy(&q.best, &q.now)
    return True


cdef void _all_topics(Work* q, Call* call, State* state) noexcept nogil:
    cdef Py_ssize_t k
    state.A = 0
    for k in range(call.K):
        _add(state, call, q, k, 0.0)


cdef bint _cold(Work* q, Call* call, const floating* table) noexcept nogil:
    """From r proportional to table * prior. True if the result is the best."""
    cdef State* state = &q.now
    cdef Py_ssize_t k
    cdef double top = 0
    _all_topics(q, call, state)
    for k in range(call.K):
        top = max(top, call.prior[k])
    for k in range(call.K):
        state.e[k] = call.prior[k] / top
        state.log_e[k] = log(call.prior[k]) - log(top)
    if q.mask != NULL:
        _first_choice(q, call, table, state)
    else:
        _gather(q, table, call.K, state)
        _pass(q, state, _weights(q, state, <floating*>NULL))
        memcpy(state.N, q.next_N, state.A * sizeof(double))
    if q.tokens > 0:
        _iterate(q, call, state, call.max_iter, call.tol, <floating*>NULL)
    _settle(q, call, state, <floating*>NULL)
    return _keep(q)


cdef bint _warm(Work* q, Call* call, const floating* table, const double* start) noexcept nogil:
    """From N = start. The first step, over the topics that start has, is kept as a candidate: it is
    never worse than what start came from, even where topics are dropped after it."""
    cdef State* state = &q.now
    cdef Py_ssize_t k, j
    state.A = 0
    for k in range(call.K):
        if start[k] > 0:
            _add(state, call, q, k, start[k])
    if state.A == 0:
        return False
    _gather(q, table, call.K, state)
    topic_weights(state.N, state.a, state.A, state.log_e, state.e)
    _settle(q, call, state, <floating*>NULL)
    _keep(q)
    if call.max_iter == 0:
        return True
    _all_topics(q, call, state)
    for j in range(q.best.A):
        state.N[q.best.topic[j]] = q.best.N[j]
    if q.mask != NULL:
        topic_weights(state.N, state.a, state.A, state.log_e, state.e)
        _first_choice(q, call, table, state)
    else:
        _gather(q, table, call.K, state)
    _iterate(q, call, state, call.max_iter, call.tol, <floating*>NULL)
    _settle(q, call, state, <floating*>NULL)
    return _keep(q)


cdef bint _restarts(Work* q, Call* call, floating* like) noexcept nogil:
    """Alg. 5.2, smallest topics first. True if the last state settled is the best."""
    cdef Py_ssize_t n = 0, i, j, A = q.best.A
    cdef Py_ssize_t* order = q.fresh
    cdef double N
    cdef bint accepted = False, last = True
    for j in range(A):
        N = q.best.N[j]
        if N > RESTART_ABOVE and N <= 0.5 * q.tokens:
            i = n
            while i > 0 and q.next_N[i - 1] > N:
                q.next_N[i] = q.next_N[i - 1]
                order[i] = order[i - 1]
                i -= 1
            q.next_N[i] = N
            order[i] = q.best.topic[j]
            n += 1
    for i in range(min(n, call.n_restarts)):
        A = q.best.A
        if A < 2:
            break
        q.now.A = 0
        for j in range(A):
            N = q.best.N[j]
            if q.best.topic[j] != order[i] or N <= RESTART_ABOVE or N > 0.5 * q.tokens:
                _move(&q.now, q.now.A, &q.best, j)
                q.now.A += 1
        if q.now.A == A:
            continue
        _iterate(q, call, &q.now, 3, 0.0, like)
        _settle(q, call, &q.now, like)
        last = _keep(q)
        accepted |= last
    if accepted:
        _copy(&q.now, &q.best)
        _iterate(q, call, &q.now, call.max_iter, call.tol, like)
        _settle(q, call, &q.now, like)
        last = _keep(q)
    return last


cdef struct Output:
    # What one document writes; pointers may be NULL.
    double* doc_counts      # (K,)
    void* resp              # (U, K)
    double* entropy         # (K,)
    double* score
    double* shares          # (U,) c mass / s, or -1 - topic where all goes to one
    double* e               # (K,)
    Py_ssize_t* topics      # (K + 1,) their number first
    int* listed             # (U, L) topics of each entry, then -1
    double* parts           # (U, L) c r of those


cdef void _list_shares(Work* q, Call* call, Output out, floating* like) noexcept nogil:
    cdef State* state = &q.best
    cdef Py_ssize_t* filled = q.items           # the gather is over
    cdef floating* row
    cdef Py_ssize_t u, j
    memset(filled, 0, q.U * sizeof(Py_ssize_t))
    for u in range(q.U):
        if q.hot[u] >= 0:
            out.listed[u * call.L] = <int>state.topic[q.hot[u]]
            out.parts[u * call.L] = q.c_d[u]
            filled[u] = 1
    for j in range(state.A):
        row = <floating*>q.mask + state.row[j]
        for u in range(q.U):
            if row[u] > 0 and q.hot[u] < 0:
                out.listed[u * call.L + filled[u]] = <int>state.topic[j]
                out.parts[u * call.L + filled[u]] = q.w_d[u] * state.e[j] * row[u]
                filled[u] += 1
    for u in range(q.U):
        if filled[u] < call.L:
            out.listed[u * call.L + filled[u]] = -1


cdef void _write(Work* q, Call* call, const double* counts, const double* mass, Output out,
                 floating* like) noexcept nogil:
    cdef State* state = &q.best
    cdef Py_ssize_t u, j, k, K = call.K
    cdef floating* B = <floating*>(q.B if q.mask == NULL else q.mask)
    cdef floating* resp = <floating*>out.resp
    cdef double m
    memset(out.doc_counts, 0, K * sizeof(double))
    for j in range(state.A):
        out.doc_counts[state.topic[j]] = state.N[j]
    if out.score != NULL:
        out.score[0] = state.score if q.tokens > 0 else 0.0
    for u in range(q.U):
        q.hot[u] = -1
        if not q.s_d[u] > TINY:
            q.hot[u] = _likeliest(q, state, u, B)
    if out.shares != NULL:
        out.topics[0] = state.A
        memcpy(out.topics + 1, state.topic, state.A * sizeof(Py_ssize_t))
        memcpy(out.e, state.e, state.A * sizeof(double))
        for u in range(q.U):
            out.shares[u] = q.w_d[u] if q.hot[u] < 0 else <double>(-1 - state.topic[q.hot[u]])
    if out.listed != NULL:
        _list_shares(q, call, out, like)
    if resp == NULL and out.entropy == NULL:
        return
    for u in range(q.U):
        m = mass[u] if mass != NULL else 1.0
        q.w_d[u] = m / q.s_d[u] if q.hot[u] < 0 else 0.0
        q.c_d[u] = counts[u]
    if resp != NULL:
        memset(resp, 0, q.U * K * sizeof(floating))
        for u in range(q.U):
            if q.hot[u] >= 0:
                resp[u * K + state.topic[q.hot[u]]] = <floating>(mass[u] if mass != NULL else 1.0)
        for j in range(state.A):
            k = state.topic[j]
            for u in range(q.U):
                if q.hot[u] < 0:
                    resp[u * K + k] = <floating>(q.w_d[u] * state.e[j] * B[state.row[j] + u])
    if out.entropy != NULL:
        for j in range(state.A):
            if floating is double:
                m = share_entropy_d(B + state.row[j], state.e[j], q.w_d, q.c_d, q.padded)
            else:
                m = share_entropy_f(B + state.row[j], state.e[j], q.w_d, q.c_d, q.padded)
            out.entropy[state.topic[j]] += m
        for u in range(q.U):
            if q.hot[u] >= 0 and mass != NULL and mass[u] > 0:
                out.entropy[state.topic[q.hot[u]]] -= counts[u] * mass[u] * log(mass[u])


cdef void _document(Work* q, Call* call, const floating* table, Py_ssize_t first, Py_ssize_t U,
                    const int* indices, const double* counts, const double* mass,
                    const double* start, bint cold, Output out) noexcept nogil:
    """One document: entries ``first`` to ``first + U`` of the call, which counts and mass begin with."""
    cdef Py_ssize_t u
    cdef double c
    cdef bint last = False
    q.U = U
    q.padded = (U + LANES - 1) // LANES * LANES
    q.stride = q.padded
    if q.stride * sizeof(floating) % 4096 == 0:     # rows would compete for the same cache lines
        q.stride += LANES
    q.tokens = 0
    q.best.A = 0
    memset(q.gathered, 0, call.K)
    for u in range(q.padded):
        c = 0
        if u < U:
            c = counts[u] * (mass[u] if mass != NULL else 1.0)
            q.items[u] = indices[u] if indices != NULL else first + u
        q.c_d[u] = c
        (<floating*>q.c)[u] = <floating>c
        q.tokens += c
        q.w_d[u] = 0
    if U == 0:
        memset(out.doc_counts, 0, call.K * sizeof(double))
        if out.score != NULL:
            out.score[0] = 0
        if out.shares != NULL:
            out.topics[0] = 0
        return
    if start != NULL and q.tokens > 0:
        last = _warm(q, call, table, start)
    if cold or q.best.A == 0:
        last = _cold(q, call, table)
    if call.n_restarts > 0 and q.tokens > 0:
        last = _restarts(q, call, <floating*>NULL) and last
    if not last:
        _settle(q, call, &q.best, <floating*>NULL)
    _write(q, call, counts, mass, out, <floating*>NULL)


cdef void _accumulate(const floating* table, Py_ssize_t K, Py_ssize_t lo, Py_ssize_t hi,
                      Py_ssize_t n_docs, const long long* indptr, const int* indices,
                      const double* weight, const double* mass, const double* shares, const double* e,
                      const Py_ssize_t* topics, double* s) noexcept nogil:
    """Rows lo to hi of s, documents in order; shares, e and topics as in `Output`."""
    cdef Py_ssize_t d, i, j, k, m, A
    cdef double w
    cdef double* out
    cdef const floating* row
    cdef const double* e_d
    cdef const Py_ssize_t* topic
    for d in range(n_docs):
        A = topics[d * (K + 1)]
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
                out[<Py_ssize_t>(-1 - w)] += weight[i] * (mass[i] if mass != NULL else 1.0)
            elif A == K:
                for k in range(K):
                    out[k] += w * e_d[k] * row[k]
            else:
                for j in range(A):
                    out[topic[j]] += w * e_d[j] * row[topic[j]]


cdef void _accumulate_listed(Py_ssize_t K, Py_ssize_t L, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t nnz,
                             const int* indices, const int* listed, const double* parts,
                             double* s) noexcept nogil:
    """Rows lo to hi of s from lists of at most L shares an entry."""
    cdef Py_ssize_t i, j, m
    for i in range(nnz):
        m = indices[i] if indices != NULL else i
        if m < lo or m >= hi:
            continue
        for j in range(i * L, i * L + L):
            if listed[j] < 0:
                break
            s[m * K + listed[j]] += parts[j]


cdef void _bounds(Py_ssize_t* bounds, int n, Py_ssize_t M, Py_ssize_t nnz, const int* indices,
                  Py_ssize_t* uses) noexcept nogil:
    """Ranges of items with about as many entries each."""
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


def document_step(
    const floating[:, ::1] table,       # IN  (M, K) exp(E[log p(item | k)]), rows scaled to [0, 1]
    const long long[::1] indptr,        # IN  (n_docs + 1,) a document's entries
    const int[::1] indices,             # IN  (nnz,) rows of the table; None: entry i is row i
    const double[::1] counts,           # IN  (nnz,) >= 0
    const double[::1] mass,             # IN  (nnz,) or None: responsibility to share out
    const double[::1] prior,            # IN  (K,) a_k = alpha pi_k > 0
    const double[:, ::1] start,         # IN  (n_docs, K) or None: N_dk to begin from
    double[:, ::1] doc_counts,          # OUT (n_docs, K): N_dk
    bint cold,                          # IN  also begin from r proportional to table * prior
    Py_ssize_t max_iter,                # IN
    double tol,                         # IN  in tokens: largest change of any N_dk
    Py_ssize_t n_restarts,              # IN  topics of a document to try without
    Py_ssize_t n_nonzero,               # IN  L: most topics of an entry; K for dense
    floating[:, ::1] resp,              # OUT (nnz, K) or None: r, which sums to mass
    double[:, ::1] s,                   # IN OUT (M, K) or None: += sum of c r
    double[::1] entropy,                # IN OUT (K,) or None: += -sum of c r log r
    double[::1] score,                  # OUT (n_docs,) or None
    int n_threads,
):
    """The local step of documents, and what they leave behind; returns the number of iterations.

    Iterates, for each document, ::

        e = exp(psi(N + prior))
        share = table[indices] * e / (table[indices] @ e)[:, None]
        N = (counts * mass) @ share

    until no N changes by ``tol``. Topics with N below 1e-7 of the document's tokens leave for good.
    The better of the warm and the cold start is kept, by the document's part of the objective::

        score = sum(c r (log table - log r)) + sum(gammaln(N + prior) - gammaln(prior))

    with c = counts * mass and r the shares. A warm start from what this function returned scores at
    least as much as that did, if table, prior and n_nonzero are the same. Removing one of the
    ``n_restarts`` smallest topics of more than 0.1 tokens is kept if the score rises.

    Hughes (2016), Alg. 5.1 (local step), 5.2 (restarts) and 7.4 (n_nonzero).
    """
    cdef Py_ssize_t n_docs = doc_counts.shape[0], M = table.shape[0], nnz, d, c, longest = 0, t
    cdef Py_ssize_t n_chunks = (n_docs + CHUNK_DOCS - 1) // CHUNK_DOCS, iterations = 0, k
    cdef Call call
    cdef Work* works
    cdef bint failed = False, sparse
    cdef Output none
    memset(&none, 0, sizeof(Output))
    call.K = table.shape[1]
    if n_docs == 0 or call.K == 0:
        return 0
    nnz = indptr[n_docs]
    call.L = max(1, min(n_nonzero, call.K))
    call.max_iter = max_iter
    call.n_restarts = n_restarts
    call.tol = tol
    call.prior = <double*>&prior[0]
    sparse = call.L < call.K
    n_threads = max(1, n_threads)
    for d in range(n_docs):
        longest = max(longest, indptr[d + 1] - indptr[d])
    cdef const floating* table_p = &table[0, 0] if nnz else NULL
    cdef const int* indices_p = &indices[0] if indices is not None and nnz else NULL
    cdef const double* counts_p = &counts[0] if nnz else NULL
    cdef const double* mass_p = &mass[0] if mass is not None and nnz else NULL
    cdef const double* start_p = &start[0, 0] if start is not None else NULL
    cdef floating* resp_p = &resp[0, 0] if resp is not None and nnz else NULL
    cdef double* s_p = &s[0, 0] if s is not None and nnz else NULL
    cdef double* score_p = &score[0] if score is not None else NULL
    cdef const long long* indptr_p = &indptr[0]
    cdef double* counts_out = &doc_counts[0, 0]
    cdef Py_ssize_t K = call.K, L = call.L
    call.lgamma_prior = <double*>malloc(K * sizeof(double))
    works = <Work*>calloc(n_threads, sizeof(Work))
    cdef double* parts = <double*>calloc(n_chunks * K, sizeof(double)) if entropy is not None else NULL
    if s_p != NULL and sparse:
        none.listed = <int*>malloc(nnz * L * sizeof(int))
        none.parts = <double*>malloc(nnz * L * sizeof(double))
    elif s_p != NULL:
        none.shares = <double*>malloc(nnz * sizeof(double))
        none.e = <double*>malloc(n_docs * K * sizeof(double))
        none.topics = <Py_ssize_t*>malloc(n_docs * (K + 1) * sizeof(Py_ssize_t))
    cdef Py_ssize_t* bounds = <Py_ssize_t*>malloc((n_threads + 1) * sizeof(Py_ssize_t))
    cdef Py_ssize_t* uses = <Py_ssize_t*>malloc((M if s_p != NULL else 1) * sizeof(Py_ssize_t))
    failed = (call.lgamma_prior == NULL or works == NULL or bounds == NULL or uses == NULL
              or (entropy is not None and parts == NULL)
              or (s_p != NULL and sparse and (none.listed == NULL or none.parts == NULL))
              or (s_p != NULL and not sparse
                  and (none.shares == NULL or none.e == NULL or none.topics == NULL)))
    if not failed:
        for t in range(n_threads):
            failed |= not _allocate(&works[t], &call, longest, sizeof(floating))
    if not failed:
        lgamma_all(call.prior, call.lgamma_prior, K)
        for c in prange(n_chunks, nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads):
            _chunk(&works[threadid()], &call, table_p, c * CHUNK_DOCS,
                   min(n_docs, (c + 1) * CHUNK_DOCS), indptr_p, indices_p, counts_p, mass_p, start_p,
                   cold, counts_out, resp_p, score_p, parts + c * K if parts != NULL else NULL, none)
        if s_p != NULL:
            _bounds(bounds, n_threads, M, nnz, indices_p, uses)
            for t in prange(n_threads, nogil=True, schedule="static", chunksize=1,
                            num_threads=n_threads):
                if sparse:
                    _accumulate_listed(K, L, bounds[t], bounds[t + 1], nnz, indices_p, none.listed,
                                       none.parts, s_p)
                else:
                    _accumulate(table_p, K, bounds[t], bounds[t + 1], n_docs, indptr_p, indices_p,
                                counts_p, mass_p, none.shares, none.e, none.topics, s_p)
        if parts != NULL:
            for c in range(n_chunks):
                for k in range(K):
                    entropy[k] += parts[c * K + k]
    if works != NULL:
        for t in range(n_threads):
            iterations += works[t].iterations
            _release(&works[t])
    free(works)
    free(call.lgamma_prior)
    free(parts)
    free(none.listed)
    free(none.parts)
    free(none.shares)
    free(none.e)
    free(none.topics)
    free(bounds)
    free(uses)
    if failed:
        raise MemoryError("no memory for the local step of documents")
    return iterations


cdef void _chunk(Work* q, Call* call, const floating* table, Py_ssize_t lo, Py_ssize_t hi,
                 const long long* indptr, const int* indices, const double* counts,
                 const double* mass, const double* start, bint cold, double* doc_counts,
                 floating* resp, double* score, double* entropy, Output out) noexcept nogil:
    """Documents lo to hi; ``out`` holds the beginnings of what the sums over documents need."""
    cdef Py_ssize_t d, first, K = call.K
    cdef Output o
    for d in range(lo, hi):
        first = indptr[d]
        o.doc_counts = doc_counts + d * K
        o.resp = resp + first * K if resp != NULL else NULL
        o.entropy = entropy
        o.score = score + d if score != NULL else NULL
        o.shares = out.shares + first if out.shares != NULL else NULL
        o.e = out.e + d * K if out.e != NULL else NULL
        o.topics = out.topics + d * (K + 1) if out.topics != NULL else NULL
        o.listed = out.listed + first * call.L if out.listed != NULL else NULL
        o.parts = out.parts + first * call.L if out.parts != NULL else NULL
        _document(q, call, table, first, indptr[d + 1] - first,
                  indices + first if indices != NULL else NULL, counts + first,
                  mass + first if mass != NULL else NULL,
                  start + d * K if start != NULL else NULL, cold, o)


def count_terms(
    const double[::1] values,           # IN  (nnz,) > 0
    const long long[::1] indptr,        # IN  (K + 1,) group k is values[indptr[k]:indptr[k + 1]]
    const double[::1] a,                # IN  (K,) >= 0
    double[::1] lgamma_sums,            # OUT (K,)
    double[::1] digamma_sums,           # OUT (K,)
    int n_threads,
    const double[::1] weight=None,      # IN  (nnz,) or None
):
    """``sum(weight * gammaln(v + a[k]))`` and ``sum(weight * psi(v + a[k]))`` of each group."""
    cdef Py_ssize_t K = a.shape[0], k, first
    cdef const double* values_p = &values[0] if values.shape[0] else NULL
    cdef const double* weight_p = NULL
    if weight is not None and weight.shape[0]:
        weight_p = &weight[0]
    for k in prange(K, nogil=True, schedule="dynamic", num_threads=max(1, n_threads)):
        first = indptr[k]
        count_sums(<double*>values_p + first, weight_p + first if weight_p != NULL else NULL,
                   indptr[k + 1] - first, a[k], &lgamma_sums[k], &digamma_sums[k])


def exp_digamma(const double[::1] x, double[::1] out):
    """``out = exp(psi(x))`` for 0 < x < 1e38; 0 where that is below 1e-307."""
    if x.shape[0]:
        exp_digamma_all(<double*>&x[0], &out[0], x.shape[0])
