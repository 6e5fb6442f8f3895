"""The fixed point of a document, its starts and its restarts (Hughes 2016, Alg. 5.1, 5.2, 7.4).

See the design note of `_topics.pyx`, into which these functions are inlined.
"""
from libc.math cimport fabs, log
from libc.string cimport memcpy

from cython cimport floating

from ._documents cimport (
    Call, State, Work, add_topic, copy_state, drop_topics, gather, likeliest, move_topic, typed_weights,
)
from ._topic_choice cimport choose

cdef extern from "topic_math.h" nogil:
    double DROP_BELOW
    Py_ssize_t DROP_STEPS
    double DROP_LATER_BELOW
    double DROP_AT_MOST
    double TINY
    double RESTART_ABOVE
    Py_ssize_t DENSE_STEPS
    Py_ssize_t CHOOSE_EVERY
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


cdef inline void shares_pass(Work* q, State* state, floating* e, bint masked) noexcept nogil:
    """Set next_N from the shares that follow from e."""
    cdef floating* B = <floating*>(q.mask if masked else q.B)
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
                q.next_N[likeliest(q, state, u, B)] += c[u]


cdef inline void iterate(Work* q, Call* call, State* state, Py_ssize_t max_iter, double tol,
                         Py_ssize_t dense_steps, floating* like) noexcept nogil:
    """Iterate Alg. 5.1 from N, and leave e of the last step. With L < K, shares are L-sparse after
    ``dense_steps``: while many topics live, a dense step costs less than choosing among them."""
    cdef Py_ssize_t it, j, since
    cdef double change, least = min(DROP_LATER_BELOW * q.tokens, DROP_AT_MOST)
    cdef floating* e
    cdef bint sparse = q.mask != NULL
    for it in range(1, max_iter + 1):
        topic_weights(state.N, state.a, state.A, state.log_e, state.e)
        e = typed_weights(q, state, like)
        since = it - dense_steps
        if sparse and since > 0 and since % CHOOSE_EVERY == 1:
            choose(q, call, state, e)
        shares_pass(q, state, e, sparse and since > 0)
        change = 0
        for j in range(state.A):
            change = max(change, fabs(q.next_N[j] - state.N[j]))
            state.N[j] = q.next_N[j]
        q.iterations += 1
        if change < tol:
            if not sparse or since > 0:
                break
            dense_steps = it
        if it < max_iter:
            drop_topics(state, DROP_BELOW * q.tokens if it < DROP_STEPS else least)
    drop_topics(state, least)


cdef inline void settle(Work* q, Call* call, State* state, bint anew, floating* like) noexcept nogil:
    """Set shares, N and score from e, in double; topics are chosen anew or as in the last step."""
    cdef floating* B = <floating*>q.B
    cdef Py_ssize_t lost, u, j
    cdef double score
    if q.mask != NULL:
        if anew:
            choose(q, call, state, typed_weights(q, state, like))
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
                j = likeliest(q, state, u, B)
                state.N[j] += q.c_d[u]
                score += q.c_d[u] * (log(max(<double>(<floating*>q.B)[state.row[j] + u], 1e-300))
                                     + state.log_e[j])
    state.score = score + topic_score(state.N, state.a, state.lgamma_a, state.log_e, q.next_N, state.A)


cdef inline bint keep_better(Work* q) noexcept nogil:
    """Copy ``now`` to ``best`` if its score is higher."""
    if q.best.A > 0 and not q.now.score > q.best.score:
        return False
    copy_state(&q.best, &q.now)
    return True


cdef inline bint keep_if_better(Work* q, Call* call, floating* like) noexcept nogil:
    """`keep_better` for a state whose topics were chosen with an earlier e; they are chosen anew first."""
    if q.mask != NULL and q.now.score > q.best.score:
        settle(q, call, &q.now, True, like)
    return keep_better(q)


cdef inline void take_all_topics(Work* q, Call* call, State* state) noexcept nogil:
    cdef Py_ssize_t k
    state.A = 0
    for k in range(call.K):
        add_topic(state, call, q, k, 0.0)


cdef inline bint start_cold(Work* q, Call* call, const floating* table) noexcept nogil:
    """Start from r proportional to table * prior. True if the result is the best."""
    cdef State* state = &q.now
    cdef Py_ssize_t k
    cdef double top = 0
    take_all_topics(q, call, state)
    for k in range(call.K):
        top = max(top, call.prior[k])
    for k in range(call.K):
        state.e[k] = call.prior[k] / top
        state.log_e[k] = log(call.prior[k]) - log(top)
    gather(q, table, call.K, state)
    shares_pass(q, state, typed_weights(q, state, <floating*>NULL), False)
    memcpy(state.N, q.next_N, state.A * sizeof(double))
    if q.tokens > 0:
        iterate(q, call, state, call.max_iter, call.tol, DENSE_STEPS, <floating*>NULL)
    settle(q, call, state, True, <floating*>NULL)
    return keep_better(q)


cdef inline bint start_warm(Work* q, Call* call, const floating* table, const double* start) noexcept nogil:
    """Start from N = start. The result of the first step, over the topics of start, is a candidate: its score
    is never lower than that of the state with these counts, even if topics are dropped afterwards."""
    cdef State* state = &q.now
    cdef Py_ssize_t k, j
    state.A = 0
    for k in range(call.K):
        if start[k] > 0:
            add_topic(state, call, q, k, start[k])
    if state.A == 0:
        return False
    gather(q, table, call.K, state)
    topic_weights(state.N, state.a, state.A, state.log_e, state.e)
    settle(q, call, state, True, <floating*>NULL)
    keep_better(q)
    if call.max_iter == 0:
        return True
    take_all_topics(q, call, state)
    for j in range(q.best.A):
        state.N[q.best.topic[j]] = q.best.N[j]
    gather(q, table, call.K, state)
    iterate(q, call, state, call.max_iter, call.tol, DENSE_STEPS, <floating*>NULL)
    settle(q, call, state, True, <floating*>NULL)
    return keep_better(q)


cdef inline bint try_restarts(Work* q, Call* call, floating* like) noexcept nogil:
    """Alg. 5.2, smallest topics first. True if the last state that was settled is the best."""
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
                move_topic(&q.now, q.now.A, &q.best, j)
                q.now.A += 1
        if q.now.A == A:
            continue
        iterate(q, call, &q.now, 3, 0.0, 0, like)
        settle(q, call, &q.now, False, like)
        last = keep_if_better(q, call, like)
        accepted |= last
    if accepted:
        copy_state(&q.now, &q.best)
        iterate(q, call, &q.now, call.max_iter, call.tol, 0, like)
        settle(q, call, &q.now, True, like)
        last = keep_better(q)
    return last
