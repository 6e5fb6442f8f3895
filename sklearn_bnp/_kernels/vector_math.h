/* Row-wise loops of the local step that the compiler can turn into vector code.
 *
 * Design note
 * (a) Wheels are built for baseline x86-64, where these loops run 2-7 times slower than the machine
 *     allows. `MULTIVERSION` asks GCC or Clang for AVX2 and AVX-512 clones, chosen when the library
 *     is loaded; elsewhere it is empty.
 * (b) Reductions are written with LANES independent accumulators. This gives the compiler leave to
 *     vectorise without -ffast-math, and fixes the order of the sum.
 * (c) `exp` is written out, because the one in libm is not inlined. Arguments are never positive here.
 *     Range reduction x = k log 2 + f, |f| <= log(2)/2; exp(f) by a Taylor polynomial whose
 *     remainder is below half a unit in the last place (degree 13 for double, 7 for float).
 */
#ifndef SKLEARN_BNP_VECTOR_MATH_H
#define SKLEARN_BNP_VECTOR_MATH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define MULTIVERSION __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__clang__) && (__clang_major__ >= 16)
#define MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define MULTIVERSION
#endif

#define LANES 8
#define NEGLIGIBLE -1e30 /* a log weight that leaves no responsibility */

/* exp(x) for x <= 0; exactly 0 below -708 (where the result would be subnormal). */
static inline double exp_nonpositive_d(double x) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: rounds to an integer in the low bits */
    double z = x < -708.0 ? -708.0 : x;
    double t = z * 1.4426950408889634074 + shift;
    double k = t - shift;
    double f = z - k * 6.93147180369123816490e-01 - k * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * f + 1.0 / 479001600.0;
    p = p * f + 1.0 / 39916800.0;
    p = p * f + 1.0 / 3628800.0;
    p = p * f + 1.0 / 362880.0;
    p = p * f + 1.0 / 40320.0;
    p = p * f + 1.0 / 5040.0;
    p = p * f + 1.0 / 720.0;
    p = p * f + 1.0 / 120.0;
    p = p * f + 1.0 / 24.0;
    p = p * f + 1.0 / 6.0;
    p = p * f + 0.5;
    p = p * f + 1.0;
    p = p * f + 1.0;
    uint64_t bits, scale;
    memcpy(&bits, &t, sizeof bits);
    scale = (bits + 1023u) << 52;
    double s;
    memcpy(&s, &scale, sizeof s);
    return x < -708.0 ? 0.0 : p * s;
}

/* exp(x) for x <= 0; exactly 0 below -87. */
static inline float exp_nonpositive_f(float x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23 */
    float z = x < -87.0f ? -87.0f : x;
    float t = z * 1.44269504f + shift;
    float k = t - shift;
    float f = z - k * 0.693359375f + k * 2.12194440e-4f;
    float p = 1.0f / 5040.0f;
    p = p * f + 1.0f / 720.0f;
    p = p * f + 1.0f / 120.0f;
    p = p * f + 1.0f / 24.0f;
    p = p * f + 1.0f / 6.0f;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    uint32_t bits, scale;
    memcpy(&bits, &t, sizeof bits);
    scale = (bits + 127u) << 23;
    float s;
    memcpy(&s, &scale, sizeof s);
    return x < -87.0f ? 0.0f : p * s;
}

/* Everything below exists once for double and once for float: T the type, S the suffix. */
#define DEFINE_ROW_LOOPS(T, S)                                                                        \
                                                                                                      \
    /* Responsibilities of n rows, in place: resp <- softmax(resp) (Alg. 7.1), entries below `floor`  \
     * cleared. entropy[k] += weight * -m r log(m r), where m is the row's mass. log_norm[i] is the   \
     * log normaliser. scratch holds K values. Returns how many entries are not zero. */              \
    MULTIVERSION static ptrdiff_t softmax_rows_##S(T *resp, ptrdiff_t n, ptrdiff_t K, T floor_,       \
                                                   const double *mass, const double *weight,          \
                                                   double *entropy, double *log_norm, T *scratch) {   \
        ptrdiff_t filled = 0;                                                                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                           \
            T *restrict w = resp + i * K;                                                             \
            T *restrict e = scratch;                                                                  \
            T top[LANES], sum[LANES];                                                                 \
            ptrdiff_t count[LANES];                                                                   \
            ptrdiff_t k = 0;                                                                          \
            for (int l = 0; l < LANES; l++) { top[l] = w[0]; sum[l] = 0; count[l] = 0; }              \
            for (; k + LANES <= K; k += LANES)                                                        \
                for (int l = 0; l < LANES; l++) top[l] = w[k + l] > top[l] ? w[k + l] : top[l];       \
            for (; k < K; k++) top[0] = w[k] > top[0] ? w[k] : top[0];                                \
            for (int l = 1; l < LANES; l++) top[0] = top[l] > top[0] ? top[l] : top[0];               \
            T m = top[0];                                                                             \
            for (k = 0; k < K; k++) { w[k] -= m; e[k] = exp_nonpositive_##S(w[k]); }                  \
            for (k = 0; k < K; k++) e[k] = e[k] < floor_ ? 0 : e[k];                                  \
            for (k = 0; k + LANES <= K; k += LANES)                                                   \
                for (int l = 0; l < LANES; l++) {                                                     \
                    sum[l] += e[k + l];                                                               \
                    count[l] += e[k + l] > 0;                                                         \
                }                                                                                     \
            for (; k < K; k++) { sum[0] += e[k]; count[0] += e[k] > 0; }                              \
            for (int l = 1; l < LANES; l++) { sum[0] += sum[l]; count[0] += count[l]; }               \
            filled += count[0];                                                                       \
            T scale = (T)1 / sum[0], log_sum = (T)log((double)sum[0]);                                \
            double mi = mass ? mass[i] : 1.0;                                                         \
            double wi = (weight ? weight[i] : 1.0) * mi;                                              \
            double offset = (double)log_sum - (mi > 0 ? log(mi) : 0.0);                               \
            if (log_norm) log_norm[i] = (double)m + (double)log_sum;                                  \
            if (entropy)                                                                              \
                for (k = 0; k < K; k++) {                                                             \
                    T r = e[k] * scale;                                                               \
                    entropy[k] += wi * (r > 0 ? (double)r * (offset - (double)w[k]) : 0.0);           \
                    w[k] = r;                                                                         \
                }                                                                                     \
            else                                                                                      \
                for (k = 0; k < K; k++) w[k] = e[k] * scale;                                          \
        }                                                                                             \
        return filled;                                                                                \
    }                                                                                                 \
                                                                                                      \
    /* Weights under the L-th largest of a row become NEGLIGIBLE, found by up to L passes for the         \
     * largest weight under the last one. Returns -1, or, if more than L weights are not under it,       \
     * how many of those equal to it (*bar) may stay. */                                                 \
    MULTIVERSION static ptrdiff_t keep_few_##S(T *restrict w, ptrdiff_t K, ptrdiff_t L, T *bar) {     \
        T last = (T)INFINITY;                                                                         \
        ptrdiff_t kept = 0, before = 0;                                                               \
        while (kept < L) {                                                                            \
            T top[LANES];                                                                             \
            int equal = 0;                                                                            \
            ptrdiff_t k = 0;                                                                          \
            for (int l = 0; l < LANES; l++) top[l] = (T)-INFINITY;                                    \
            for (; k + LANES <= K; k += LANES)                                                        \
                for (int l = 0; l < LANES; l++) {                                                     \
                    T v = w[k + l] < last ? w[k + l] : (T)-INFINITY;                                  \
                    top[l] = v > top[l] ? v : top[l];                                                 \
                }                                                                                     \
            for (; k < K; k++) top[0] = w[k] < last && w[k] > top[0] ? w[k] : top[0];                 \
            for (int l = 1; l < LANES; l++) top[0] = top[l] > top[0] ? top[l] : top[0];               \
            last = top[0];                                                                            \
            for (k = 0; k < K; k++) equal += w[k] == last;                                            \
            before = kept;                                                                            \
            kept += equal;                                                                            \
            if (equal == 0) break;                                                                    \
        }                                                                                             \
        for (ptrdiff_t k = 0; k < K; k++) w[k] = w[k] < last ? (T)NEGLIGIBLE : w[k];                  \
        *bar = last;                                                                                  \
        return kept > L ? L - before : -1;                                                            \
    }                                                                                                 \
                                                                                                      \
    /* out += sum over four rows of a[i] * row[i]: one load and one store of `out` for four. */       \
    MULTIVERSION static void add_rows4_##S(T *restrict out, const T *restrict r0,                     \
                                           const T *restrict r1, const T *restrict r2,                \
                                           const T *restrict r3, T a0, T a1, T a2, T a3,              \
                                           ptrdiff_t n) {                                             \
        for (ptrdiff_t p = 0; p < n; p++)                                                             \
            out[p] += (a0 * r0[p] + a1 * r1[p]) + (a2 * r2[p] + a3 * r3[p]);                          \
    }                                                                                                 \
                                                                                                      \
    MULTIVERSION static void add_row_##S(T *restrict out, const T *restrict r0, T a0, ptrdiff_t n) {  \
        for (ptrdiff_t p = 0; p < n; p++) out[p] += a0 * r0[p];                                       \
    }                                                                                                 \
                                                                                                      \
    /* Rows of sufficient statistics s(x) = [quadratic part, x if linear, 1] (see _features.pxd). */  \
    MULTIVERSION static void features_full_##S(T *restrict out, const T *restrict x, ptrdiff_t n,     \
                                               ptrdiff_t D, int linear) {                             \
        ptrdiff_t P = D * (D + 1) / 2 + (linear ? D : 0) + 1;                                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                           \
            const T *restrict z = x + i * D;                                                          \
            T *restrict o = out + i * P;                                                              \
            for (ptrdiff_t a = 0; a < D; a++) {                                                       \
                T za = z[a];                                                                          \
                for (ptrdiff_t b = a; b < D; b++) o[b - a] = za * z[b];                               \
                o += D - a;                                                                           \
            }                                                                                         \
            if (linear) {                                                                             \
                for (ptrdiff_t a = 0; a < D; a++) o[a] = z[a];                                        \
                o += D;                                                                               \
            }                                                                                         \
            o[0] = 1;                                                                                 \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    MULTIVERSION static void features_diag_##S(T *restrict out, const T *restrict x, ptrdiff_t n,     \
                                               ptrdiff_t D, int linear) {                             \
        ptrdiff_t P = D + (linear ? D : 0) + 1;                                                       \
        for (ptrdiff_t i = 0; i < n; i++) {                                                           \
            const T *restrict z = x + i * D;                                                          \
            T *restrict o = out + i * P;                                                              \
            for (ptrdiff_t a = 0; a < D; a++) o[a] = z[a] * z[a];                                     \
            o += D;                                                                                   \
            if (linear) {                                                                             \
                for (ptrdiff_t a = 0; a < D; a++) o[a] = z[a];                                        \
                o += D;                                                                               \
            }                                                                                         \
            o[0] = 1;                                                                                 \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    MULTIVERSION static void features_spherical_##S(T *restrict out, const T *restrict x,             \
                                                    ptrdiff_t n, ptrdiff_t D, int linear) {           \
        ptrdiff_t P = (linear ? D : 0) + 2;                                                           \
        for (ptrdiff_t i = 0; i < n; i++) {                                                           \
            const T *restrict z = x + i * D;                                                          \
            T *restrict o = out + i * P;                                                              \
            T square = 0;                                                                             \
            for (ptrdiff_t a = 0; a < D; a++) square += z[a] * z[a];                                  \
            *o++ = square;                                                                            \
            if (linear) {                                                                             \
                for (ptrdiff_t a = 0; a < D; a++) o[a] = z[a];                                        \
                o += D;                                                                               \
            }                                                                                         \
            o[0] = 1;                                                                                 \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    MULTIVERSION static void features_linear_##S(T *restrict out, const T *restrict x, ptrdiff_t n,   \
                                                 ptrdiff_t D) {                                       \
        for (ptrdiff_t i = 0; i < n; i++) {                                                           \
            for (ptrdiff_t a = 0; a < D; a++) out[i * (D + 1) + a] = x[i * D + a];                    \
            out[i * (D + 1) + D] = 1;                                                                 \
        }                                                                                             \
    }

DEFINE_ROW_LOOPS(double, d)
DEFINE_ROW_LOOPS(float, f)

#endif
