/* Forward-backward over rows of several sequences in lockstep.
 *
 * Design note
 * (a) Everything is a small matrix product: rows times transitions in the recursions, and sums over
 *     rows of outer products for the counts. `multiply` keeps a block of the result in registers; BLAS
 *     would spend more time on its call and its copies than on the product.
 * (b) One sequence is bound to the latency of its steps. Up to MOST_LANES sequences that go in
 *     lockstep share each load of the transitions and fill the gaps of one another.
 * (c) Rows of K numbers are worked on in buffers of ld >= K, a multiple of LANES, with zeros behind.
 * (d) Forward keeps u, which is alpha before it is divided by its sum, so that sum and division are not
 *     on the way from one step to the next: the next prediction is (u A) * (1 / sum u).
 * (e) Backward needs no likelihoods, as B_t / c_t = alpha_t / pred_t with pred_t = alpha_{t-1} A. It goes
 *     in blocks of rows, whose pred and B / c are found beforehand, many rows at a time.
 * (f) Predictions below TINY count as 0 in both directions, lest a ratio overflow. If transitions and
 *     likelihoods are 0 or at least e^-200, nothing that matters comes near it: alpha >= e^-400 / K.
 * (g) `chain_loops.h` is included once for each width of vectors. Compilers take vectors that are
 *     wider than the function's target apart *before* they clone it, so MULTIVERSION, which serves
 *     loops that the compiler itself turns into vectors, would get us the narrow ones in all clones.
 */
#ifndef SKLEARN_BNP_CHAIN_MATH_H
#define SKLEARN_BNP_CHAIN_MATH_H

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include "special_functions.h"
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#define MOST_LANES 4
#define TINY 1e-290
#define NO_SHARE 1e-16 /* responsibilities whose log B is not looked at: 200 of it are below eps */
#define LOGS 256       /* logarithms taken at a time */

/* What is the same for all lanes; pointers marked * may be NULL. */
typedef struct {
    ptrdiff_t K, ld;
    ptrdiff_t R;             /* rows of a block of the backward pass */
    const double *A, *At;    /* (K, ld) transitions, and transposed */
    double *table;           /* (T, K) */
    const long long *indptr; /* (n_seq + 1,) */
    const double *first;     /* (n_seq, K) */
    const double *after;     /* (n_seq, K) * */
    double *scale;           /* (T,) */
    double *start, *before;  /* (n_seq, K) * */
    double *data;            /* (n_seq,) */
    const double *weight;    /* (n_seq,) * how often each sequence counts */
} Chain;

/* Consecutive sequences, row by row, with buffers of their own. */
typedef struct {
    ptrdiff_t begin, end;    /* rows that are left */
    ptrdiff_t d;             /* forward: the next sequence to begin; backward: that of row end - 1 */
    ptrdiff_t n, logs;       /* rows of the block, logarithms to take */
    double inv, sum;         /* 1 / sum u; sum r log B so far */
    double *row;             /* (ld,) u, or y = A w of the next row */
    double *alpha, *w;       /* (R + 1, ld) */
    double *share, *value;   /* (LOGS + ld,) r and B */
} Lane;

/* Doubles that a lane needs; those of one call lie one behind the other. */
static inline ptrdiff_t lane_size(const Chain *c, int backward) {
    return c->ld + (backward ? 2 * (c->R + 1) * c->ld + 2 * (LOGS + c->ld) : 0);
}

static inline void lane_place(Lane *lane, const Chain *c, double *base, int backward) {
    lane->row = base;
    if (!backward) return;
    lane->alpha = base + c->ld;
    lane->w = lane->alpha + (c->R + 1) * c->ld;
    lane->share = lane->w + (c->R + 1) * c->ld;
    lane->value = lane->share + LOGS + c->ld;
}

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 16")
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL
#endif

#if defined(__GNUC__)
#define WIDTH 16
#define TARGET
#define NAME(name) name##_plain
#else
#define WIDTH (sizeof(double))
#define TARGET
#define NAME(name) name##_plain
#endif
#include "chain_loops.h"
#undef WIDTH
#undef TARGET
#undef NAME

#if defined(__GNUC__) && defined(__x86_64__) && !defined(SKLEARN_BNP_NO_MULTIVERSION)
#define WIDTH 32
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(name) name##_avx2
#include "chain_loops.h"
#undef WIDTH
#undef TARGET
#undef NAME

#define WIDTH 64
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))
#define NAME(name) name##_avx512
#include "chain_loops.h"
#undef WIDTH
#undef TARGET
#undef NAME

static inline int chain_level(void) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return 2;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 0;
}

#define DISPATCH(name, ...)                                                                           \
    switch (chain_level()) {                                                                          \
    case 2: name##_avx512(__VA_ARGS__); break;                                                        \
    case 1: name##_avx2(__VA_ARGS__); break;                                                          \
    default: name##_plain(__VA_ARGS__);                                                               \
    }
#else
#define DISPATCH(name, ...) name##_plain(__VA_ARGS__);
#endif

/* alpha and scale of the rows of n lanes, of which each has at least as many as the next. */
static void forward_lanes(const Chain *c, Lane *lane, int n, double *pred) {
    DISPATCH(forward, c, lane, n, pred)
}

/* Responsibilities of the rows of n lanes, and counts (K, ld) += sum alpha_t w_{t+1}'. */
static void backward_lanes(const Chain *c, Lane *lane, int n, double *counts) {
    DISPATCH(backward, c, lane, n, counts)
}

/* best (ld,) <- max_k score_k + A_k., from <- the first k that reaches it (as a double). */
MULTIVERSION static void best_before(const double *restrict score, const double *restrict A, ptrdiff_t K,
                                     ptrdiff_t ld, double *restrict best, double *restrict from) {
    const ptrdiff_t blocks = ld / LANES;
    for (ptrdiff_t l = 0; l < LANES * blocks; l++) {
        best[l] = score[0] + A[l];
        from[l] = 0;
    }
    for (ptrdiff_t k = 1; k < K; k++) {
        const double *restrict row = A + k * ld;
        const double score_k = score[k], index = (double)k;
        for (ptrdiff_t l = 0; l < LANES * blocks; l++) {
            const double v = score_k + row[l];
            from[l] = v > best[l] ? index : from[l];
            best[l] = v > best[l] ? v : best[l];
        }
    }
}

#endif
