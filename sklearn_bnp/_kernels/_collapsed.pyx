"""The topics of new documents, where each token is shared out by what the others of its document have.

Design note
-----------
(a) The topics are given, and a document's shares pi_d are integrated out. Given the topics of the others, a
    token has topic k with probability proportional to p(token | k) (n_k + alpha_k), for n_k of the others.
    The fixed point has expected counts in the place of n_k: collapsed variational Bayes of order zero
    (CVB0; Asuncion et al. 2009, Sec. 3.3, with topics that stay). For documents of one token it is exact.
(b) All shares of a document move at once, so that the order of its entries does not matter. Two tokens that
    pull each other into different topics would swap places for ever. Every other step therefore goes
    half of the way: what alternates dies out at once, and what creeps loses a quarter of its speed.
(c) Of many topics a document has few. The others hold on to what they have, and only every so many steps all
    topics move; a document has converged when such a step hardly moves any.
(d) A document's likelihoods lie topic by topic, (K, U), so that loops run over entries; see `_topics.pyx`.
    Documents are solved in parallel, each by one thread.

These functions trust their callers; shapes and values are checked in the Python that calls them.

References
----------
A. Asuncion, M. Welling, P. Smyth and Y. W. Teh, On smoothing and inference for topic models, UAI 2009.
"""
from cython.parallel cimport prange, threadid
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef extern from "collapsed_math.h" nogil:
    Py_ssize_t LANES
    double collapsed_step(const double*, double*, const double*, const double*, const double*,
                          const double*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t, double, double*,
                          double*)
    void add_shares(const double*, const Py_ssize_t*, Py_ssize_t, Py_ssize_t, double*)

cdef Py_ssize_t CHUNK_DOCS = 16         # documents that a thread takes at a time
cdef Py_ssize_t FIRST_STEPS = 4         # steps of all topics at the beginning, when counts still grow
cdef Py_ssize_t FEW_STEPS = 7           # most steps of a few topics between two steps of all
cdef double HELD_BELOW = 0.02           # tokens of a topic that may wait


cdef struct Work:
    # Buffers of one thread, for a document of U entries, rounded up to a multiple of LANES.
    double* B               # (K, U) likelihoods
    double* r               # (K, U) shares
    double* c               # (U,) counts
    double* own             # (U,) what one token of the entry counts
    double* s               # (U,)
    double* room            # (U,) what the topics that move have of each entry
    Py_ssize_t* topic       # (K,) topics that move


cdef void _start(Work* q, const double* table, const int* indices, Py_ssize_t first,
                 const double* counts, const double* prior, Py_ssize_t n, Py_ssize_t U, Py_ssize_t K,
                 double* N) noexcept nogil:
    """Gather the likelihoods of n entries, and share each out as if it were alone."""
    cdef Py_ssize_t u, k
    cdef const double* row
    cdef double total
    memset(q.B, 0, K * U * sizeof(double))
    memset(q.r, 0, K * U * sizeof(double))
    memset(N, 0, K * sizeof(double))
    for u in range(U):
        q.c[u] = counts[u] if u < n else 0.0
        q.own[u] = min(q.c[u], 1.0)
    for u in range(n):
        row = table + (indices[u] if indices != NULL else first + u) * K
        total = 0
        for k in range(K):
            q.B[k * U + u] = row[k]
            q.r[k * U + u] = row[k] * prior[k]
            total += row[k] * prior[k]
        for k in range(K):
            q.r[k * U + u] /= total
            N[k] += q.c[u] * q.r[k * U + u]


cdef Py_ssize_t _choose(Work* q, const double* N, double bar, Py_ssize_t K, Py_ssize_t U) noexcept nogil:
    """Let topics with at least so many tokens move; returns how many these are."""
    cdef Py_ssize_t k, u, A = 0
    for k in range(K):
        if N[k] >= bar:
            q.topic[A] = k
            A += 1
    if A < K:
        add_shares(q.r, q.topic, A, U, q.room)
    else:
        for u in range(U):
            q.room[u] = 1.0
    return A


cdef void _document(Work* q, const double* table, const int* indices, Py_ssize_t first,
                    const double* counts, const double* prior, Py_ssize_t n, Py_ssize_t K,
                    Py_ssize_t max_iter, double tol, double* N, double* resp) noexcept nogil:
    cdef Py_ssize_t it, u, k, A, since = 0, U = (n + LANES - 1) // LANES * LANES
    cdef double moved
    _start(q, table, indices, first, counts, prior, n, U, K, N)
    A = _choose(q, N, 0.0, K, U)
    for it in range(max_iter if n > 1 or (n == 1 and counts[0] > 1) else 0):   # one token alone is done
        moved = collapsed_step(q.B, q.r, prior, q.c, q.own, q.room, q.topic, A, U,
                               0.5 if it % 2 else 1.0, q.s, N)
        since += 1
        if A == K and moved < tol:
            break
        if A < K and (moved < tol or since > FEW_STEPS):
            A = _choose(q, N, 0.0, K, U)
        elif A == K and it + 1 >= FIRST_STEPS:
            A = _choose(q, N, HELD_BELOW, K, U)
            since = 0
    if resp != NULL:
        for u in range(n):
            for k in range(K):
                resp[u * K + k] = q.r[k * U + u]


def collapsed_shares(
    const double[:, ::1] table,         # IN  (M, K) p(item | k), rows scaled to a largest value of 1
    const long long[::1] indptr,        # IN  (n_docs + 1,) a document's entries
    const int[::1] indices,             # IN  (nnz,) rows of the table; None: entry i is row i
    const double[::1] counts,           # IN  (nnz,) >= 0
    const double[::1] prior,            # IN  (K,) a_k = alpha pi_k >= 1e-290
    double[:, ::1] doc_counts,          # OUT (n_docs, K): N_dk
    double[:, ::1] resp,                # OUT (nnz, K) or None: r, rows sum to 1
    Py_ssize_t max_iter,                # IN
    double tol,                         # IN  in tokens: most that a step may move of any topic
    int n_threads,
):
    """Topics of the tokens of documents under given topics, by CVB0.

    For each document, it starts from ``r = table[indices] * prior`` and iterates ::

        N = counts @ r
        weight = table[indices] * (N - minimum(counts, 1)[:, None] * r + prior)
        step = weight / weight.sum(axis=1, keepdims=True) - r
        r += step or step / 2, in turns

    until ``(counts @ abs(step)).max() < tol``, but after some steps only topics of more than a trace move in
    most of the steps. Each token of an entry leaves itself out; the others of an
    entry that counts several times stay in.
    """
    cdef Py_ssize_t n_docs = doc_counts.shape[0], K = table.shape[1], d, c, t, longest = 0, nnz
    cdef Py_ssize_t n_chunks = (n_docs + CHUNK_DOCS - 1) // CHUNK_DOCS, size
    cdef Work* works
    cdef double* arena
    cdef Py_ssize_t* topics
    if n_docs == 0:
        return
    nnz = indptr[n_docs]
    n_threads = max(1, n_threads)
    for d in range(n_docs):
        longest = max(longest, indptr[d + 1] - indptr[d])
    longest = (longest + LANES - 1) // LANES * LANES
    cdef const double* table_p = &table[0, 0] if nnz else NULL
    cdef const int* indices_p = &indices[0] if indices is not None and nnz else NULL
    cdef const double* counts_p = &counts[0] if nnz else NULL
    cdef double* resp_p = &resp[0, 0] if resp is not None and nnz else NULL
    size = longest * (2 * K + 4)
    works = <Work*>malloc(n_threads * sizeof(Work))
    arena = <double*>malloc(max(1, n_threads * size) * sizeof(double))
    topics = <Py_ssize_t*>malloc(n_threads * K * sizeof(Py_ssize_t))
    if works == NULL or arena == NULL or topics == NULL:
        free(works)
        free(arena)
        free(topics)
        raise MemoryError("no memory for the topics of documents")
    for t in range(n_threads):
        works[t].B = arena + t * size
        works[t].r = works[t].B + K * longest
        works[t].c = works[t].r + K * longest
        works[t].own = works[t].c + longest
        works[t].s = works[t].own + longest
        works[t].room = works[t].s + longest
        works[t].topic = topics + t * K
    for c in prange(n_chunks, nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads):
        _chunk(&works[threadid()], table_p, indices_p, counts_p, &prior[0], &indptr[0],
               c * CHUNK_DOCS, min(n_docs, (c + 1) * CHUNK_DOCS), K, max_iter, tol,
               &doc_counts[0, 0], resp_p)
    free(works)
    free(arena)
    free(topics)


cdef void _chunk(Work* q, const double* table, const int* indices, const double* counts,
                 const double* prior, const long long* indptr, Py_ssize_t lo, Py_ssize_t hi,
                 Py_ssize_t K, Py_ssize_t max_iter, double tol, double* doc_counts,
                 double* resp) noexcept nogil:
    """Documents lo to before hi."""
    cdef Py_ssize_t d, first
    for d in range(lo, hi):
        first = indptr[d]
        _document(q, table, indices + first if indices != NULL else NULL, first, counts + first, prior,
                  indptr[d + 1] - first, K, max_iter, tol, doc_counts + d * K,
                  resp + first * K if resp != NULL else NULL)
