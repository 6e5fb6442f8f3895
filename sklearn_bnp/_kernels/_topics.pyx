"""The local and summary steps of topic models, document by document.

Design note
-----------
(a) One thread solves a document without Python. The document's likelihoods are gathered once, topic by
    topic, and the fixed-point iteration in N_k (Hughes 2016, Alg. 5.1) runs over them. Topics that have
    died out are dropped from an index, so that an iteration costs U x (living topics).
(b) A `State` holds the living topics with N and e = exp(E log pi) (up to a factor), from which the shares
    ``r = table e / s`` follow. Every attempt (warm start, cold start, restart) is a `State` with a score, and
    the best one is kept. Coordinate ascent raises the score; only dropping topics could lower it.
(c) With at most L topics per entry, a masked copy of the gathered likelihoods holds the chosen ones and 0
    elsewhere, and the same loops run over it. Choosing among topics takes several times as long as summing
    over them. So the first steps are dense, which leaves a few dozen topics.
(d) Entries whose products all underflow go to their most likely topic.
(e) Documents are solved in parallel. The sums over documents are taken afterwards. Each thread owns a range
    of items and goes through all documents in order, so no bit depends on the number of threads.

These functions trust their callers; shapes and values are checked in the Python that calls them.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport log
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from cython cimport floating

from ._document_solver cimport settle, start_cold, start_warm, try_restarts
from ._document_sums cimport accumulate, accumulate_listed, bounds_of_items
from ._documents cimport Call, State, Work, carve, likeliest

cdef extern from "topic_math.h" nogil:
    Py_ssize_t LANES
    double TINY
    void count_sums(double*, const double*, Py_ssize_t, double, double*, double*)
    void lgamma_all(double*, double*, Py_ssize_t)
    double share_entropy_d(double*, double, double*, double*, Py_ssize_t)
    double share_entropy_f(float*, double, double*, double*, Py_ssize_t)

cdef Py_ssize_t CHUNK_DOCS = 16         # documents whose entropies are summed before they join the total


cdef struct Output:
    # Where one document writes its results; pointers may be NULL. Sums count it `weight` times.
    double weight
    double* doc_counts      # (K,)
    void* resp              # (U, K)
    double* entropy         # (K,)
    double* score
    double* shares          # (U,) weight c mass / s, or -1 - topic of an entry that goes to one topic
    double* e               # (K,)
    Py_ssize_t* topics      # (K + 1,) number of living topics, then these
    int* listed             # (U, L) topics of each entry, then -1
    double* parts           # (U, L) weight c r of the listed topics


cdef void _list_shares(Work* q, Call* call, Output out, floating* like) noexcept nogil:
    cdef State* state = &q.best
    cdef Py_ssize_t* filled = q.items           # which the gather no longer needs
    cdef floating* row
    cdef Py_ssize_t u, j
    memset(filled, 0, q.U * sizeof(Py_ssize_t))
    for u in range(q.U):
        if q.hot[u] >= 0:
            out.listed[u * call.L] = <int>state.topic[q.hot[u]]
            out.parts[u * call.L] = out.weight * q.c_d[u]
            filled[u] = 1
    for j in range(state.A):
        row = <floating*>q.mask + state.row[j]
        for u in range(q.U):
            if row[u] > 0 and q.hot[u] < 0:
                out.listed[u * call.L + filled[u]] = <int>state.topic[j]
                out.parts[u * call.L + filled[u]] = out.weight * q.w_d[u] * state.e[j] * row[u]
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
            q.hot[u] = likeliest(q, state, u, B)
    if out.shares != NULL:
        out.topics[0] = state.A
        memcpy(out.topics + 1, state.topic, state.A * sizeof(Py_ssize_t))
        memcpy(out.e, state.e, state.A * sizeof(double))
        for u in range(q.U):
            out.shares[u] = <double>(-1 - state.topic[q.hot[u]])
            if q.hot[u] < 0:
                out.shares[u] = out.weight * q.w_d[u]
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
            out.entropy[state.topic[j]] += out.weight * m
        for u in range(q.U):
            if q.hot[u] >= 0 and mass != NULL and mass[u] > 0:
                m = counts[u] * mass[u] * log(mass[u])
                out.entropy[state.topic[q.hot[u]]] -= out.weight * m


cdef void _document(Work* q, Call* call, const floating* table, Py_ssize_t first, Py_ssize_t U,
                    const int* indices, const double* counts, const double* mass,
                    const double* start, bint cold, Output out) noexcept nogil:
    """One document: entries ``first`` to ``first + U`` of the call; counts and mass start at ``first``."""
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
        last = start_warm(q, call, table, start)
    if cold or q.best.A == 0:
        last = start_cold(q, call, table)
    if call.n_restarts > 0 and q.tokens > 0:
        last = try_restarts(q, call, <floating*>NULL) and last
    if not last:
        settle(q, call, &q.best, True, <floating*>NULL)
    _write(q, call, counts, mass, out, <floating*>NULL)


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
    double[:, ::1] s,                   # IN OUT (M, K) or None: += sum of weight c r
    double[::1] entropy,                # IN OUT (K,) or None: += -sum of weight c r log r
    double[::1] score,                  # OUT (n_docs,) or None
    int n_threads,
    const double[::1] weight=None,      # IN  (n_docs,) or None: how often each document counts in sums
    const int[::1] places=None,         # IN  (nnz,) or None: most topics of each entry, 1 to n_nonzero
):
    """The local step of documents, their statistics and entropies; returns the number of iterations.

    For each document, it iterates ::

        e = exp(psi(N + prior))
        share = table[indices] * e / (table[indices] @ e)[:, None]
        N = (counts * mass) @ share

    until no N changes by ``tol``. Topics with N below 1e-7 of the document's tokens are dropped for good.
    The better of the warm and the cold start is kept, judged by the document's part of the objective::

        score = sum(c r (log table - log r)) + sum(gammaln(N + prior) - gammaln(prior))

    with c = counts * mass and r the shares. A warm start from counts that this function returned scores at
    least as high as before, if table, prior, n_nonzero and places are the same. In a restart, one of the
    ``n_restarts`` smallest topics of more than 0.1 tokens is removed, which is kept if the score rises.

    Hughes (2016), Alg. 5.1 (local step), 5.2 (restarts) and 7.4 (n_nonzero).
    """
    cdef Py_ssize_t n_docs = doc_counts.shape[0], M = table.shape[0], nnz, d, c, longest = 0, t, size
    cdef Py_ssize_t n_chunks = (n_docs + CHUNK_DOCS - 1) // CHUNK_DOCS, iterations = 0, k
    cdef Call call
    cdef Work* works
    cdef char* arena = NULL
    cdef bint failed, sparse
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
    sparse = call.sparse = call.L < call.K or places is not None
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
    cdef const double* weight_p = NULL
    if weight is not None:
        weight_p = &weight[0]
    cdef const int* places_p = &places[0] if places is not None and nnz else NULL
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
        size = carve(&works[0], &call, NULL, longest, sizeof(floating))
        arena = <char*>malloc(size * n_threads + 64)
        failed = arena == NULL
        for t in range(n_threads if not failed else 0):
            carve(&works[t], &call, arena + t * size, longest, sizeof(floating))
    if not failed:
        lgamma_all(call.prior, call.lgamma_prior, K)
        for c in prange(n_chunks, nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads):
            _chunk(&works[threadid()], &call, table_p, c * CHUNK_DOCS,
                   min(n_docs, (c + 1) * CHUNK_DOCS), indptr_p, indices_p, counts_p, mass_p, start_p,
                   cold, counts_out, resp_p, score_p, parts + c * K if parts != NULL else NULL,
                   weight_p, places_p, none)
        if s_p != NULL:
            bounds_of_items(bounds, n_threads, M, nnz, indices_p, uses)
            for t in prange(n_threads, nogil=True, schedule="static", chunksize=1,
                            num_threads=n_threads):
                if sparse:
                    accumulate_listed(K, L, bounds[t], bounds[t + 1], nnz, indices_p, none.listed,
                                      none.parts, s_p)
                else:
                    accumulate(table_p, K, bounds[t], bounds[t + 1], n_docs, indptr_p, indices_p,
                               counts_p, mass_p, weight_p, none.shares, none.e, none.topics, s_p)
        if parts != NULL:
            for c in range(n_chunks):
                for k in range(K):
                    entropy[k] += parts[c * K + k]
    if not failed:
        for t in range(n_threads):
            iterations += works[t].iterations
    free(arena)
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
                 floating* resp, double* score, double* entropy, const double* weight,
                 const int* places, Output out) noexcept nogil:
    """Documents lo to hi; ``out`` points to where the results of document 0 are."""
    cdef Py_ssize_t d, first, K = call.K
    cdef Output o
    for d in range(lo, hi):
        first = indptr[d]
        q.places = places + first if places != NULL else NULL
        o.weight = weight[d] if weight != NULL else 1.0
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
