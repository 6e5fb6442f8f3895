"""Responsibilities, pair counts and most probable paths of Markov chains, sequence by sequence.

Design note
-----------
(a) Rows of likelihoods become alpha, and alpha becomes r, in place, so a call needs no second (T, K) array.
    Scaled recursions need no logarithms (Rabiner 1989, Sec. V.A).
(b) With w_t = r_t / pred_t and pred_t = alpha_{t-1} A, the pair marginals are s_t(k, l) = alpha_t(k) A_kl
    w_{t+1}(l), and r_t = alpha_t * (A w_{t+1}). So the backward pass does not need the likelihoods, and the
    only message from a chunk of a sequence to the chunk before it is one w.
(c) Sequences are cut into tasks, which depend only on their lengths. One thread works through a task, with
    up to four sequences in lockstep (`chain_math.h`) and counts of its own, which are added in order. So no
    bit of the result depends on the number of threads.

A long sequence is worked through in chunks, with alpha of each chunk's last row as its checkpoint:
``forward`` on each chunk with ``first = alpha_before @ trans``; then, from the last chunk to the first,
``forward`` again and ``backward`` with ``after`` = ``before`` of the chunk that follows. One step of a filter
is ``forward`` on a table of one row, with ``first = alpha_before @ trans``.

These functions trust their callers; shapes and values are checked in the Python that calls them. Every
sequence has a row, and rows of likelihoods are scaled, so that the largest is about 1. Likelihoods,
transitions and first weights are 0 or at least e^-200.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport log
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef extern from "chain_math.h" nogil:
    const Py_ssize_t LANES
    const int MOST_LANES
    ctypedef struct Chain:
        Py_ssize_t K, ld, R
        const double* A
        const double* At
        double* table
        const long long* indptr
        const double* first
        const double* after
        double* scale
        double* start
        double* before
        double* data
        const double* weight
    ctypedef struct Lane:
        Py_ssize_t begin, end, d, n, logs
        double inv, sum
    Py_ssize_t lane_size(const Chain*, int)
    void lane_place(Lane*, const Chain*, double*, int)
    void forward_lanes(const Chain*, Lane*, int, double*)
    void backward_lanes(const Chain*, Lane*, int, double*)
    void best_before(const double*, const double*, Py_ssize_t, Py_ssize_t, double*, double*)

cdef Py_ssize_t TASK_ROWS = 2048        # rows of a task, at least


cdef Py_ssize_t _padded(Py_ssize_t K) noexcept nogil:
    """K rounded up to vectors; rows 4096 bytes apart would compete for the same cache lines."""
    cdef Py_ssize_t ld = (K + LANES - 1) // LANES * LANES
    return ld + LANES if ld % 512 == 0 else ld


cdef void _pad(double* out, const double* trans, Py_ssize_t K, Py_ssize_t ld, bint transposed,
               double behind) noexcept nogil:
    """out (K, ld) = trans (K, K) or its transpose, followed by columns of ``behind``."""
    cdef Py_ssize_t k, l
    for k in range(K):
        for l in range(K):
            out[k * ld + l] = trans[l * K + k] if transposed else trans[k * K + l]
        for l in range(K, ld):
            out[k * ld + l] = behind


cdef Py_ssize_t _cut_tasks(const long long* indptr, Py_ssize_t n_seq, Py_ssize_t* cuts) noexcept nogil:
    """Cut sequences into tasks, and return how many there are; task i is sequences cuts[i] to cuts[i + 1].

    Few sequences are spread over tasks, for threads; many are bundled, for lockstep.
    """
    cdef Py_ssize_t least = min(MOST_LANES, max(1, n_seq // 8)), n = 0, d
    cuts[0] = 0
    for d in range(1, n_seq + 1):
        if d == n_seq or (d - cuts[n] >= least and indptr[d] - indptr[cuts[n]] >= TASK_ROWS):
            n += 1
            cuts[n] = d
    return n


cdef int _cut_lanes(const Chain* c, Lane* lane, double* base, Py_ssize_t lo, Py_ssize_t hi,
                    bint backward) noexcept nogil:
    """Consecutive sequences for each lane, with about equal numbers of rows; the longest lane comes first."""
    cdef Py_ssize_t rows = c.indptr[hi] - c.indptr[lo], most = min(MOST_LANES, hi - lo), d, first = lo
    cdef Py_ssize_t size = lane_size(c, backward)
    cdef int n = 0, j
    cdef Lane new
    memset(&new, 0, sizeof(Lane))
    memset(base, 0, MOST_LANES * size * sizeof(double))
    new.inv = 1
    for d in range(lo, hi):
        if d + 1 < hi and (c.indptr[d + 1] - c.indptr[lo]) * most < (n + 1) * rows:
            continue
        new.begin = c.indptr[first]
        new.end = c.indptr[d + 1]
        new.d = d if backward else first
        j = n
        while j > 0 and lane[j - 1].end - lane[j - 1].begin < new.end - new.begin:
            lane[j] = lane[j - 1]
            j -= 1
        lane[j] = new
        n += 1
        first = d + 1
    for j in range(n):
        lane_place(&lane[j], c, base + j * size, backward)
    return n


cdef void _forward_task(const Chain* c, double* work, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    cdef Lane[8] lane
    cdef double* pred = work + MOST_LANES * lane_size(c, False)
    cdef int n = _cut_lanes(c, lane, work, lo, hi, False)
    memset(pred, 0, (MOST_LANES + 1) * c.ld * sizeof(double))
    forward_lanes(c, lane, n, pred)


cdef void _backward_task(const Chain* c, double* work, double* counts, Py_ssize_t lo,
                         Py_ssize_t hi) noexcept nogil:
    cdef Lane[8] lane
    cdef int n = _cut_lanes(c, lane, work, lo, hi, True)
    memset(counts, 0, (c.K + 1) * c.ld * sizeof(double))
    backward_lanes(c, lane, n, counts)


def forward(
    double[:, ::1] table,               # IN OUT (T, K): likelihoods, then alpha, whose rows sum to 1
    const long long[::1] indptr,        # IN  (n_seq + 1,) rows of the sequences
    const double[:, ::1] first,         # IN  (n_seq, K) weights of the state of the first row
    const double[:, ::1] trans,         # IN  (K, K) weights of transitions, from row to column
    double[::1] scale,                  # OUT (T,): c_t, whose logarithms sum to log Z
    int n_threads,
):
    """Filtered state probabilities, in place. Equivalent, for each sequence, to ::

        pred = first                                    # then alpha[t - 1] @ trans
        scale[t] = sum(pred * table[t])
        alpha[t] = pred * table[t] / scale[t]

    From the first row that no path can reach, alpha and scale are 0.
    """
    cdef Py_ssize_t n_seq = first.shape[0], K = table.shape[1], i, n_tasks, size
    cdef Chain c
    if n_seq == 0 or K == 0:
        return
    memset(&c, 0, sizeof(Chain))
    c.K = K
    c.ld = _padded(K)
    c.table = &table[0, 0]
    c.indptr = &indptr[0]
    c.first = &first[0, 0]
    c.scale = &scale[0]
    n_threads = max(1, n_threads)
    size = MOST_LANES * lane_size(&c, False) + (MOST_LANES + 1) * c.ld
    cdef Py_ssize_t* cuts = <Py_ssize_t*>malloc((n_seq + 1) * sizeof(Py_ssize_t))
    cdef double* work = <double*>malloc((K * c.ld + n_threads * size) * sizeof(double))
    if cuts == NULL or work == NULL:
        free(cuts)
        free(work)
        raise MemoryError("no memory for the work space of the forward pass")
    _pad(work, &trans[0, 0], K, c.ld, False, 0.0)
    c.A = work
    n_tasks = _cut_tasks(c.indptr, n_seq, cuts)
    for i in prange(n_tasks, nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads):
        _forward_task(&c, work + K * c.ld + threadid() * size, cuts[i], cuts[i + 1])
    free(cuts)
    free(work)


def backward(
    double[:, ::1] table,               # IN OUT (T, K): alpha, then r
    const long long[::1] indptr,        # IN  (n_seq + 1,)
    const double[:, ::1] first,         # IN  (n_seq, K) as for forward, and so are trans and scale
    const double[:, ::1] trans,         # IN  (K, K)
    const double[::1] scale,            # IN  (T,)
    const double[:, ::1] after,         # IN  (n_seq, K) or None: `before` of the chunk that follows; a row
                                        #     of zeros, or None, where the sequence ends
    double[:, ::1] counts,              # IN OUT (K, K): += expected transitions, those to `after` included
    double[:, ::1] start,               # OUT (n_seq, K) or None: r of first rows
    double[:, ::1] before,              # OUT (n_seq, K) or None: w = r / first of first rows
    double[::1] data,                   # OUT (n_seq,): sum of r log(likelihood)
    int n_threads,
    const double[::1] weight=None,      # IN  (n_seq,) or None: how often each sequence's transitions count
):
    """Responsibilities, in place, and expected transitions. Equivalent, for each sequence, to ::

        r[t] = alpha[t] * (trans @ w[t + 1])            # alpha[t] for the last row
        w[t] = r[t] / pred[t]                           # pred as in forward
        counts += weight * trans * outer(alpha[t], w[t + 1])    # not for the last row
        data += sum(r[t] * log(alpha[t] * scale[t] / pred[t]))

    Hughes (2016), (6.14)-(6.16) and (6.27). States with r < 1e-16 in a row are left out of ``data``.
    """
    cdef Py_ssize_t n_seq = first.shape[0], K = table.shape[1], i, k, l, n_tasks, size, area
    cdef Chain c
    cdef double total
    if n_seq == 0 or K == 0:
        return
    memset(&c, 0, sizeof(Chain))
    c.K = K
    c.ld = _padded(K)
    c.R = _block_rows(c.ld)
    c.table = &table[0, 0]
    c.indptr = &indptr[0]
    c.first = &first[0, 0]
    c.scale = <double*>&scale[0]
    c.data = &data[0]
    if after is not None:
        c.after = &after[0, 0]
    if start is not None:
        c.start = &start[0, 0]
    if before is not None:
        c.before = &before[0, 0]
    if weight is not None:
        c.weight = &weight[0]
    n_threads = max(1, n_threads)
    size = MOST_LANES * lane_size(&c, True)
    area = (K + 1) * c.ld
    cdef Py_ssize_t* cuts = <Py_ssize_t*>malloc((n_seq + 1) * sizeof(Py_ssize_t))
    cdef double* sums = NULL
    cdef double* work = <double*>malloc((2 * K * c.ld + n_threads * size) * sizeof(double))
    if cuts != NULL:
        n_tasks = _cut_tasks(c.indptr, n_seq, cuts)
        sums = <double*>malloc(n_tasks * area * sizeof(double))
    if sums == NULL or work == NULL:
        free(cuts)
        free(work)
        free(sums)
        raise MemoryError("no memory for the work space of the backward pass")
    _pad(work, &trans[0, 0], K, c.ld, False, 0.0)
    _pad(work + K * c.ld, &trans[0, 0], K, c.ld, True, 0.0)
    c.A = work
    c.At = work + K * c.ld
    for i in prange(n_tasks, nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads):
        _backward_task(&c, work + 2 * K * c.ld + threadid() * size, sums + i * area, cuts[i],
                       cuts[i + 1])
    for k in range(K):
        for l in range(K):
            if trans[k, l] > 0:         # elsewhere the sum may have overflowed
                total = 0
                for i in range(n_tasks):
                    total += sums[i * area + k * c.ld + l]
                counts[k, l] += trans[k, l] * total
    free(cuts)
    free(work)
    free(sums)


cdef Py_ssize_t _block_rows(Py_ssize_t ld) noexcept nogil:
    """Rows of a block of the backward pass: blocks of four lanes take half of a second-level cache."""
    return min(64, max(16, 2048 // ld))


def log_sums(const double[::1] scale, const long long[::1] indptr, double[::1] out):
    """``out[d] = sum(log(scale[indptr[d]:indptr[d + 1]]))``, with few logarithms."""
    cdef Py_ssize_t d, t
    cdef double product, total, c
    for d in range(out.shape[0]):
        product = 1
        total = 0
        for t in range(indptr[d], indptr[d + 1]):
            c = scale[t]
            if not 1e-180 < c < 1e180:
                total += log(c) if c > 0 else -float("inf")
            else:
                product *= c
                if not 1e-120 < product < 1e120:
                    total += log(product)
                    product = 1
        out[d] = total + log(product)


ctypedef fused Index:
    uint8_t
    uint16_t
    uint32_t


cdef double _best_path(Index* came, const double* log_table, const double* log_first, const double* A,
                       Py_ssize_t T, Py_ssize_t K, Py_ssize_t ld, double* score,
                       Py_ssize_t* path) noexcept nogil:
    """Best path of one sequence; came (T, K) and score (3, ld) are work space, A is (K, ld)."""
    cdef double* best = score + ld
    cdef double* origin = score + 2 * ld
    cdef Py_ssize_t t, k
    for k in range(K):
        score[k] = log_first[k] + log_table[k]
    for t in range(1, T):
        best_before(score, A, K, ld, best, origin)
        for k in range(K):
            score[k] = best[k] + log_table[t * K + k]
            came[t * K + k] = <Index>origin[k]
    path[T - 1] = 0
    for k in range(1, K):
        if score[k] > score[path[T - 1]]:
            path[T - 1] = k
    for t in range(T - 1, 0, -1):
        path[t - 1] = came[t * K + path[t]]
    return score[path[T - 1]]


def viterbi(
    const double[:, ::1] log_table,     # IN  (T, K) log likelihoods; -inf is allowed here and below
    const long long[::1] indptr,        # IN  (n_seq + 1,)
    const double[:, ::1] log_first,     # IN  (n_seq, K)
    const double[:, ::1] log_trans,     # IN  (K, K)
    Py_ssize_t[::1] path,               # OUT (T,)
    double[::1] score,                  # OUT (n_seq,)
    int n_threads,
):
    """Most probable paths and their log scores; of equal paths, the one with the lower state where they meet.

    A thread needs one byte for each row and state of its longest sequence, and two if there are more than 256
    states.
    """
    cdef Py_ssize_t n_seq = log_first.shape[0], K = log_table.shape[1], ld = _padded(K), d, size
    cdef Py_ssize_t longest = 0, width = 1 if K <= 256 else 2 if K <= 65536 else 4
    cdef Py_ssize_t lo
    cdef char* work
    cdef char* own
    cdef char* came
    if n_seq == 0 or K == 0:
        return
    for d in range(n_seq):
        longest = max(longest, indptr[d + 1] - indptr[d])
    n_threads = max(1, min(n_threads, n_seq))
    size = 3 * ld * sizeof(double) + (longest * K * width + 63) // 64 * 64
    cdef double* A = <double*>malloc(K * ld * sizeof(double))
    work = <char*>malloc(n_threads * size)
    if A == NULL or work == NULL:
        free(A)
        free(work)
        raise MemoryError("no memory for the states that paths come from")
    _pad(A, &log_trans[0, 0], K, ld, False, -float("inf"))
    for d in prange(n_seq, nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads):
        own = work + threadid() * size
        came = own + 3 * ld * sizeof(double)
        lo = indptr[d]
        if width == 1:
            score[d] = _best_path(<uint8_t*>came, &log_table[lo, 0], &log_first[d, 0], A,
                                  indptr[d + 1] - lo, K, ld, <double*>own, &path[lo])
        elif width == 2:
            score[d] = _best_path(<uint16_t*>came, &log_table[lo, 0], &log_first[d, 0], A,
                                  indptr[d + 1] - lo, K, ld, <double*>own, &path[lo])
        else:
            score[d] = _best_path(<uint32_t*>came, &log_table[lo, 0], &log_first[d, 0], A,
                                  indptr[d + 1] - lo, K, ld, <double*>own, &path[lo])
    free(A)
    free(work)
