/* Loops of the topic model's document step.
 *
 * Design note
 * (a) A document's table lies topic by topic: row j holds the likelihoods of its U entries under topic
 *     j. Sums over topics then need no sums across the lanes of a register, divisions by s are
 *     vectors, and a topic is dropped or taken back by an index, without a copy.
 * (b) `vec_d` and `vec_f` are the compiler's own vectors (GCC, Clang) and plain numbers elsewhere; the
 *     same expressions serve both. They are never passed to functions, so no ABI depends on them.
 */
#ifndef SKLEARN_BNP_TOPIC_MATH_H
#define SKLEARN_BNP_TOPIC_MATH_H

#include "special_functions.h"

#define MOST_SORTED 16 /* nonzeros up to which the insertion network finds the largest */
/* Topics leave a document below a count (Hughes 2016, Alg. 7.4): at first below a share of its tokens
 * that cannot come back, and after some steps below one that is on its way there. At a fixed point
 * counts are either of a token or so or far less, unless the prior holds them up. */
#define DROP_BELOW 1e-7
#define DROP_STEPS 4
#define DROP_LATER_BELOW 1e-4
#define DROP_AT_MOST 1e-2 /* tokens */
#define DROP_PRIOR 0.5    /* exp(psi(a)) is not small any more */
#define TINY 1e-290       /* sums of products under it have lost their digits */
#define DENSE_STEPS 5     /* before choosing begins */
#define CHOOSE_EVERY 10   /* steps, from the first that is not dense (Alg. 7.4) */
#define RESTART_ABOVE 0.1 /* tokens of a topic that is worth removing (Alg. 5.2) */

#if defined(__GNUC__) && defined(__x86_64__)
#define VECTOR(T) __attribute__((vector_size(32), aligned(sizeof(T)), may_alias))
#elif defined(__GNUC__)
#define VECTOR(T) __attribute__((vector_size(16), aligned(sizeof(T)), may_alias))
#else
#define VECTOR(T)
#endif
typedef double vec_d VECTOR(double);
typedef float vec_f VECTOR(float);
typedef int64_t bits_d VECTOR(double);
typedef int32_t bits_f VECTOR(float);

/* x, y = max(x, y), min(x, y), lane by lane */
#if defined(__GNUC__)
#define SORT_PAIR(S, x, y)                                                                            \
    {                                                                                                 \
        bits_##S swap_ = (bits_##S)(x < y) & ((bits_##S)x ^ (bits_##S)y);                             \
        x = (vec_##S)((bits_##S)x ^ swap_);                                                           \
        y = (vec_##S)((bits_##S)y ^ swap_);                                                           \
    }
#else
#define SORT_PAIR(S, x, y)                                                                            \
    {                                                                                                 \
        vec_##S low_ = x < y ? x : y;                                                                 \
        x = x < y ? y : x;                                                                            \
        y = low_;                                                                                     \
    }
#endif

/* Sums of w f(v + a) over n values for f = log Gamma and f = psi; w may be NULL. */
MULTIVERSION static void count_sums(const double *restrict v, const double *w, ptrdiff_t n, double a,
                                    double *lgamma_sum, double *digamma_sum) {
    double g[LANES] = {0}, d[LANES] = {0};
    ptrdiff_t i = 0;
    for (; i < n; i += LANES) {
        double x[LANES], m[LANES];
        if (i + LANES <= n) {
            for (int l = 0; l < LANES; l++) { x[l] = v[i + l] + a; m[l] = w ? w[i + l] : 1.0; }
        } else {
            for (int l = 0; l < LANES; l++) {
                x[l] = i + l < n ? v[i + l] + a : 1.0;
                m[l] = i + l < n ? (w ? w[i + l] : 1.0) : 0.0;
            }
        }
        for (int l = 0; l < LANES; l++) {
            double y = x[l] + 8.0, t = x[l] * (x[l] + 7.0), inv = 1.0 / y, log_y = log_normal(y);
            double top = ((4.0 * t + 84.0) * t + 504.0) * t + 720.0;
            double product = t * (t + 6.0) * ((t + 10.0) * (t + 12.0));
            g[l] += m[l] * ((y - 0.5) * log_y - y + lgamma_tail(inv) - log_normal(product));
            d[l] += m[l] * (log_y + digamma_tail(inv) - (2.0 * x[l] + 7.0) * top / product);
        }
    }
    for (int l = 1; l < LANES; l++) { g[0] += g[l]; d[0] += d[l]; }
    *lgamma_sum = g[0];
    *digamma_sum = d[0];
}

/* out = log Gamma(x). */
MULTIVERSION static void lgamma_all(const double *restrict x, double *restrict out, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) out[i] = lgamma_positive(x[i]);
}

/* log_e = psi(N + a) - max, e = exp(log_e): scores and shares are free of a common factor of e. */
MULTIVERSION static void topic_weights(const double *restrict N, const double *restrict a,
                                       ptrdiff_t n, double *restrict log_e, double *restrict e) {
    double top[LANES], m = -INFINITY;
    ptrdiff_t j = 0;
    for (; j < n; j++) log_e[j] = digamma_positive(N[j] + a[j]);
    for (int l = 0; l < LANES; l++) top[l] = -INFINITY;
    for (j = 0; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++) top[l] = log_e[j + l] > top[l] ? log_e[j + l] : top[l];
    for (; j < n; j++) m = log_e[j] > m ? log_e[j] : m;
    for (int l = 0; l < LANES; l++) m = top[l] > m ? top[l] : m;
    for (j = 0; j < n; j++) {
        log_e[j] -= m;
        e[j] = exp_nonpositive_d(log_e[j]);
    }
}

/* sum_u c log s over entries with s above `tiny`; n is a multiple of LANES. */
MULTIVERSION static double log_likelihood(const double *restrict c, const double *restrict s,
                                          ptrdiff_t n, double tiny) {
    double sum[LANES] = {0};
    for (ptrdiff_t u = 0; u < n; u += LANES)
        for (int l = 0; l < LANES; l++) {
            double x = s[u + l];
            sum[l] += c[u + l] * log_normal(x > tiny ? x : 1.0);
        }
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

/* sum_j lgamma(N + a) - lgamma(a) - N log e. */
MULTIVERSION static double topic_score(const double *restrict N, const double *restrict a,
                                       const double *restrict lgamma_a, const double *restrict log_e,
                                       double *restrict scratch, ptrdiff_t n) {
    double sum = 0;
    for (ptrdiff_t j = 0; j < n; j++)
        scratch[j] = lgamma_positive(N[j] + a[j]) - lgamma_a[j] - N[j] * log_e[j];
    for (ptrdiff_t j = 0; j < n; j++) sum += scratch[j];
    return sum;
}

#define PANEL(T, S, NV)                                                                               \
    /* s[u] = sum_j e_j B[j][u] for NV vectors of entries */                                          \
    static inline void panel_##S##_##NV(const T *restrict B, const ptrdiff_t *restrict row,           \
                                        ptrdiff_t A, const T *restrict e, T *restrict s) {            \
        vec_##S a[NV];                                                                                \
        for (int v = 0; v < NV; v++) a[v] = (vec_##S){0};                                             \
        for (ptrdiff_t j = 0; j < A; j++) {                                                           \
            const vec_##S *b = (const vec_##S *)(B + row[j]);                                         \
            for (int v = 0; v < NV; v++) a[v] += b[v] * e[j];                                         \
        }                                                                                             \
        for (int v = 0; v < NV; v++) ((vec_##S *)s)[v] = a[v];                                        \
    }

PANEL(double, d, 8)
PANEL(double, d, 4)
PANEL(double, d, 2)
PANEL(double, d, 1)
PANEL(float, f, 8)
PANEL(float, f, 4)
PANEL(float, f, 2)
PANEL(float, f, 1)

#define DEFINE_DOCUMENT_LOOPS(T, S, LOST, SMALLEST)                                                   \
                                                                                                      \
    /* One step of the fixed point (Alg. 5.1): s = B' e, w = c / s, N = e * (B w). Entries go in      \
     * blocks whose part of B stays in the first-level cache between its two uses. U is a multiple    \
     * of LANES; row[j] is the offset of topic j. Entries with c > 0 and s <= LOST take no part (w = 0);\
     * returns how many. */                                                                           \
    MULTIVERSION static ptrdiff_t document_pass_##S(                                                  \
        const T *restrict B, const ptrdiff_t *restrict row, ptrdiff_t A, const T *restrict e,         \
        const T *restrict c, ptrdiff_t U, T *restrict s, T *restrict w, double *restrict N) {         \
        enum { V = sizeof(vec_##S) / sizeof(T) };                                                     \
        ptrdiff_t room = 20480 / (ptrdiff_t)(sizeof(T) * (size_t)(A > 0 ? A : 1)) / (8 * V) * (8 * V);\
        ptrdiff_t block = room < 8 * V ? 8 * V : room > 512 ? 512 : room, lost = 0;                   \
        T parts[4 * sizeof(vec_##S) / sizeof(T)];                                                     \
        for (ptrdiff_t j = 0; j < A; j++) N[j] = 0;                                                   \
        for (ptrdiff_t lo = 0; lo < U; lo += block) {                                                 \
            ptrdiff_t hi = lo + block < U ? lo + block : U, u = lo, j = 0;                            \
            int missing = 0;                                                                          \
            for (; u + 8 * V <= hi; u += 8 * V) panel_##S##_8(B + u, row, A, e, s + u);               \
            if (u + 4 * V <= hi) { panel_##S##_4(B + u, row, A, e, s + u); u += 4 * V; }              \
            if (u + 2 * V <= hi) { panel_##S##_2(B + u, row, A, e, s + u); u += 2 * V; }              \
            for (; u < hi; u += V) panel_##S##_1(B + u, row, A, e, s + u);                            \
            for (u = lo; u < hi; u++) w[u] = s[u] > (T)LOST ? c[u] : (T)0;                            \
            for (u = lo; u < hi; u++) missing += w[u] < c[u];                                         \
            for (u = lo; u < hi; u++) s[u] = s[u] > (T)LOST ? s[u] : (T)1;                            \
            for (u = lo; u < hi; u += V) *(vec_##S *)(w + u) /= *(const vec_##S *)(s + u);            \
            lost += missing;                                                                          \
            for (; j + 4 <= A; j += 4) {                                                              \
                const T *b0 = B + row[j], *b1 = B + row[j + 1];                                       \
                const T *b2 = B + row[j + 2], *b3 = B + row[j + 3];                                   \
                vec_##S a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};                                       \
                vec_##S *to = (vec_##S *)parts;                                                       \
                for (u = lo; u < hi; u += V) {                                                        \
                    vec_##S x = *(const vec_##S *)(w + u);                                            \
                    a0 += x * *(const vec_##S *)(b0 + u);                                             \
                    a1 += x * *(const vec_##S *)(b1 + u);                                             \
                    a2 += x * *(const vec_##S *)(b2 + u);                                             \
                    a3 += x * *(const vec_##S *)(b3 + u);                                             \
                }                                                                                     \
                to[0] = a0; to[1] = a1; to[2] = a2; to[3] = a3;                                       \
                for (int i = 0; i < 4; i++) {                                                         \
                    T sum = 0;                                                                        \
                    for (int l = 0; l < V; l++) sum += parts[i * V + l];                              \
                    N[j + i] += (double)sum;                                                          \
                }                                                                                     \
            }                                                                                         \
            for (; j < A; j++) {                                                                      \
                const T *b0 = B + row[j];                                                             \
                vec_##S a0 = {0};                                                                     \
                T sum = 0;                                                                            \
                for (u = lo; u < hi; u += V)                                                          \
                    a0 += *(const vec_##S *)(w + u) * *(const vec_##S *)(b0 + u);                     \
                *(vec_##S *)parts = a0;                                                               \
                for (int l = 0; l < V; l++) sum += parts[l];                                          \
                N[j] += (double)sum;                                                                  \
            }                                                                                         \
        }                                                                                             \
        for (ptrdiff_t j = 0; j < A; j++) N[j] *= (double)e[j];                                       \
        return lost;                                                                                  \
    }                                                                                                 \
                                                                                                      \
    /* The same in double, for the final shares; weights are double too. */                           \
    MULTIVERSION static ptrdiff_t document_settle_##S(                                                \
        const T *restrict B, const ptrdiff_t *restrict row, ptrdiff_t A, const double *restrict e,    \
        const double *restrict c, ptrdiff_t U, double *restrict s, double *restrict w,                \
        double *restrict N, double tiny) {                                                            \
        ptrdiff_t lost = 0;                                                                           \
        for (ptrdiff_t u = 0; u < U; u++) s[u] = 0;                                                   \
        for (ptrdiff_t j = 0; j < A; j++)                                                             \
            for (ptrdiff_t u = 0; u < U; u++) s[u] += e[j] * (double)B[row[j] + u];                   \
        for (ptrdiff_t u = 0; u < U; u++) {                                                           \
            double safe = s[u] > tiny ? s[u] : 1.0, part = s[u] > tiny ? c[u] : 0.0;                  \
            lost += part < c[u];                                                                      \
            w[u] = part / safe;                                                                       \
        }                                                                                             \
        for (ptrdiff_t j = 0; j < A; j++) {                                                           \
            double sum[LANES] = {0};                                                                  \
            for (ptrdiff_t u = 0; u < U; u += LANES)                                                  \
                for (int l = 0; l < LANES; l++) sum[l] += w[u + l] * (double)B[row[j] + u + l];       \
            N[j] = e[j] * (((sum[0] + sum[4]) + (sum[1] + sum[5]))                                    \
                           + ((sum[2] + sum[6]) + (sum[3] + sum[7])));                                \
        }                                                                                             \
        return lost;                                                                                  \
    }                                                                                                 \
                                                                                                      \
    /* -sum_u c r log r with r = m e b / s; U is a multiple of LANES, inv = m / s. */                 \
    MULTIVERSION static double share_entropy_##S(const T *restrict b, double e,                       \
                                                 const double *restrict inv,                          \
                                                 const double *restrict c, ptrdiff_t U) {             \
        double sum[LANES] = {0};                                                                      \
        for (ptrdiff_t u = 0; u < U; u += LANES)                                                      \
            for (int l = 0; l < LANES; l++) {                                                         \
                double r = e * (double)b[u + l] * inv[u + l];                                         \
                sum[l] -= c[u + l] * r * log_normal(r > 1e-300 ? r : 1.0);                            \
            }                                                                                         \
        return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));     \
    }                                                                                                 \
                                                                                                      \
    /* For LANES entries, the L-th largest product of B and e (0 if fewer are positive): an insertion \
     * network, which needs no branches. L <= MOST_SORTED. */                                         \
    MULTIVERSION static void bars_##S(const T *restrict B, const ptrdiff_t *restrict row,             \
                                      ptrdiff_t A, const T *restrict e, ptrdiff_t L,                  \
                                      T *restrict bars) {                                             \
        enum { V = sizeof(vec_##S) / sizeof(T) };                                                     \
        for (int part = 0; L > 0 && part < LANES; part += V) {                                        \
            vec_##S best[MOST_SORTED] = {{0}};                                                        \
            for (ptrdiff_t j = 0; j < A; j++) {                                                       \
                vec_##S p = *(const vec_##S *)(B + row[j] + part) * e[j];                             \
                for (ptrdiff_t i = 0; i < L; i++) SORT_PAIR(S, best[i], p)                            \
            }                                                                                         \
            *(vec_##S *)(bars + part) = best[L - 1];                                                  \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    /* For LANES entries, B where the product is one of the L[l] largest and 0 elsewhere; of ties the \
     * first stay. bars: the L[l]-th largest products. */                                             \
    MULTIVERSION static void mask_##S(const T *restrict B, const ptrdiff_t *restrict row, ptrdiff_t A,\
                                      const T *restrict e, const ptrdiff_t *restrict L,               \
                                      const T *restrict bars, T *restrict mask) {                     \
        T bar[LANES], count[LANES], spare;                                                            \
        for (int l = 0; l < LANES; l++) {                                                             \
            bar[l] = bars[l] > 0 ? bars[l] : (T)SMALLEST;                                             \
            count[l] = 0;                                                                             \
        }                                                                                             \
        for (ptrdiff_t j = 0; j < A; j++)                                                             \
            for (int l = 0; l < LANES; l++) {                                                         \
                T b = B[row[j] + l], keep = b * e[j] >= bar[l] ? (T)1 : (T)0;                         \
                mask[row[j] + l] = b * keep;                                                          \
                count[l] += keep;                                                                     \
            }                                                                                         \
        for (int l = 0; l < LANES; l++) {                                                             \
            if (count[l] <= (T)L[l]) continue;                                                        \
            spare = (T)L[l];                                                                          \
            for (ptrdiff_t j = 0; j < A; j++) spare -= B[row[j] + l] * e[j] > bar[l] ? (T)1 : (T)0;   \
            for (ptrdiff_t j = 0; j < A; j++)                                                         \
                if (B[row[j] + l] * e[j] == bar[l] && --spare < 0) mask[row[j] + l] = 0;              \
        }                                                                                             \
    }

DEFINE_DOCUMENT_LOOPS(double, d, TINY, 4.9e-324)
DEFINE_DOCUMENT_LOOPS(float, f, 1e-30, 1.4e-45)

#endif
