/* Loops over the types of components of counts.
 *
 * Design note
 * (a) With q(x) = x (x + 1) ... (x + 7), lnGamma(x) = lnGamma(x + 8) - log q(x). The logarithms of the
 *     q are not taken one by one: their product is kept as a product of mantissas and a sum of
 *     exponents, which halves the work.
 * (b) Sums are of differences to the prior, whose part is tabulated once a call: types without counts
 *     add nothing, and few counts among many types lose no digits.
 * (c) exp(psi(x)) = (x + 8) exp(psi(x) - log(x + 8)) needs no logarithm.
 * (d) Types are taken TILE at a time, in short loops over buffers in the first-level cache: the compiler
 *     makes vectors of those, but not of one loop over everything.
 * (e) Products of eight factors overflow from 1e38 on, where moving up by 8 changes no digit: arguments
 *     from LARGE on are left where they are.
 */
#ifndef SKLEARN_BNP_COUNT_MATH_H
#define SKLEARN_BNP_COUNT_MATH_H

#include "special_functions.h"

#define TILE 512 /* a multiple of LANES; below 1000, where a product of mantissas could overflow */

#define LARGE 1e30

#if defined(__GNUC__)
#define ONE_BODY __attribute__((noinline))
#elif defined(_MSC_VER)
#define ONE_BODY __declspec(noinline)
#else
#define ONE_BODY
#endif

/* What the types of a tile add to every sum, and the product of their q. */
typedef struct {
    double product;    /* of mantissas in [1, 2) */
    int64_t exponents; /* their sum, each with its offset of 1023 */
} Factors;

/* lnGamma(y) for y >= 8. */
static inline double lgamma_shifted(double y) {
    return (y - 0.5) * log_normal(y) - y + lgamma_tail(1.0 / y);
}

/* x (x + 1) ... (x + 7) */
static inline double eight_factors(double x) {
    double t = x * (x + 7.0);
    return t * (t + 6.0) * ((t + 10.0) * (t + 12.0));
}

/* psi(x) - log(x + 8), which is negative. */
static inline double digamma_rest(double x) {
    double z = x < LARGE ? x : LARGE, t = z * (z + 7.0);
    double top = ((4.0 * t + 84.0) * t + 504.0) * t + 720.0;
    return digamma_tail(1.0 / (x + 8.0)) - (2.0 * z + 7.0) * top / eight_factors(z);
}

/* psi(x) */
static inline double digamma_of_count(double x) { return log_normal(x + 8.0) + digamma_rest(x); }

/* x <- lnGamma(x + 8) - base for n <= TILE types, room for whole LANES; returns its sum.
 *
 * Never inlined: the prior's part and that of prior and counts must be the same instructions, as their
 * difference is to be exactly zero where there are no counts. Compilers fuse products and sums as it
 * suits the code around them, and each choice rounds in its own way. */
MULTIVERSION ONE_BODY static double shifted_sums(double *restrict x, const double *restrict base, ptrdiff_t n,
                                  Factors *factors) {
    const uint64_t mantissa = 0x000fffffffffffffULL, one = 0x3ff0000000000000ULL;
    double m[TILE], sum[LANES] = {0}, product[LANES];
    uint64_t exponents = 0;
    ptrdiff_t v, whole = (n + LANES - 1) / LANES * LANES;
    for (v = 0; v < n; v++) {
        double q = eight_factors(x[v]);
        q = x[v] < LARGE ? q : 1.0;
        uint64_t bits;
        memcpy(&bits, &q, sizeof bits);
        exponents += bits >> 52;
        bits = (bits & mantissa) | one;
        memcpy(&m[v], &bits, sizeof bits);
    }
    for (v = 0; v < n; v++) x[v] = lgamma_shifted(x[v] + 8.0) - base[v];
    for (v = n; v < whole; v++) { x[v] = 0.0; m[v] = 1.0; }
    for (int l = 0; l < LANES; l++) product[l] = 1.0;
    for (v = 0; v < whole; v += LANES)
        for (int l = 0; l < LANES; l++) { sum[l] += x[v + l]; product[l] *= m[v + l]; }
    for (int l = 1; l < LANES; l++) { sum[0] += sum[l]; product[0] *= product[l]; }
    factors->product = product[0];
    factors->exponents = (int64_t)exponents;
    return sum[0];
}

/* base = lnGamma(lam + 8), and the product of q(lam), of n <= TILE types. */
MULTIVERSION static void tabulate_types(const double *restrict lam, ptrdiff_t n, double *restrict base,
                                        Factors *factors) {
    double x[TILE], zero[TILE] = {0};
    for (ptrdiff_t v = 0; v < n; v++) x[v] = lam[v];
    shifted_sums(x, zero, n, factors);
    for (ptrdiff_t v = 0; v < n; v++) base[v] = x[v];
}

/* sum_v lnGamma(lam_v + (s_v + t_v)) - lnGamma(lam_v) over n <= TILE types; t may be NULL. */
MULTIVERSION static double lgamma_rise(const double *restrict lam, const double *restrict base,
                                       const Factors *prior, const double *restrict s,
                                       const double *restrict t, ptrdiff_t n) {
    double x[TILE], sum;
    Factors own;
    if (t)
        for (ptrdiff_t v = 0; v < n; v++) x[v] = lam[v] + (s[v] + t[v]);
    else
        for (ptrdiff_t v = 0; v < n; v++) x[v] = lam[v] + s[v];
    sum = shifted_sums(x, base, n, &own);
    return sum - ((double)(own.exponents - prior->exponents) * 0.69314718055994530942
                  + log_normal(own.product / prior->product));
}

/* log(1 + u) for u >= 0: what is lost in 1 + u is made good by a factor (Higham 2002, Sec. 1.14.1). */
static inline double log1p_positive(double u) {
    double w = 1.0 + u, d = w - 1.0;
    return d > 0.0 ? log_normal(w) * (u / d) : u;
}

/* out = lnGamma(a + x) - lnGamma(a) for a > 0 and x >= 0. Leading terms of the two, with y = a + 8, are
 * (y - 1/2) log(1 + x / y) + x log(y + x) - x, in which nothing cancels where a is large. */
MULTIVERSION static void log_rise_row(const double *restrict a, const double *restrict x, ptrdiff_t n,
                                      double *restrict out) {
    for (ptrdiff_t v = 0; v < n; v++) {
        double y = a[v] + 8.0, z = y + x[v];
        double moved = a[v] + x[v] < LARGE ? eight_factors(a[v] + x[v]) / eight_factors(a[v]) : 1.0;
        out[v] = (y - 0.5) * log1p_positive(x[v] / y) + x[v] * (log_normal(z) - 1.0)
                 + (lgamma_tail(1.0 / z) - lgamma_tail(1.0 / y)) - log_normal(moved);
    }
}

/* psi(sum of lam + s) over n types. */
MULTIVERSION static double digamma_total(const double *restrict lam, const double *restrict s,
                                         ptrdiff_t n) {
    double sum[LANES] = {0};
    ptrdiff_t v = 0;
    for (; v + LANES <= n; v += LANES)
        for (int l = 0; l < LANES; l++) sum[l] += lam[v + l] + s[v + l];
    for (; v < n; v++) sum[0] += lam[v] + s[v];
    for (int l = 1; l < LANES; l++) sum[0] += sum[l];
    return digamma_of_count(sum[0]);
}

/* out = psi(lam + s) - less */
MULTIVERSION static void digamma_row(const double *restrict lam, const double *restrict s,
                                     ptrdiff_t n, double less, double *restrict out) {
    for (ptrdiff_t v = 0; v < n; v++) out[v] = digamma_of_count(lam[v] + s[v]) - less;
}

/* out = exp(psi(lam + s) - less), less at least psi(lam + s); about 1e-307 where it would underflow. */
MULTIVERSION static void exp_digamma_row(const double *restrict lam, const double *restrict s,
                                         ptrdiff_t n, double less, double *restrict out) {
    for (ptrdiff_t v = 0; v < n; v++) out[v] = digamma_rest(lam[v] + s[v]) - less;
    for (ptrdiff_t v = 0; v < n; v++)
        out[v] = (lam[v] + s[v] + 8.0) * exp_nonpositive_d(out[v]);
}

/* Eight rows of n values, `ld` apart, as eight columns of `out`, whose rows are `width` apart. */
static inline void eight_columns(const double *restrict rows, ptrdiff_t ld, ptrdiff_t n,
                                 double *restrict out, ptrdiff_t width) {
    for (ptrdiff_t v = 0; v < n; v++)
        for (int j = 0; j < 8; j++) out[v * width + j] = rows[j * ld + v];
}

#endif
