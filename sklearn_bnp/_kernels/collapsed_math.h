/* Loops of the collapsed inference of one document; see the design note of `_collapsed.pyx`. */
#ifndef SKLEARN_BNP_COLLAPSED_MATH_H
#define SKLEARN_BNP_COLLAPSED_MATH_H

#include "special_functions.h"

/* r of one topic, not normalised: b (N + a - own r). The rest of N is not negative, up to rounding. */
static inline double collapsed_weight(double b, double total, double a, double own, double r) {
    double rest = total - own * r;
    return b * (rest > a ? rest : a);
}

/* One step of the shares r (K, U) of A topics, which have room[u] of each entry, and counts N (K,) of the
 * result. U is a multiple of LANES, s has room for U numbers, and shares go the part `stride` of the way.
 * Returns the most tokens by which any topic differs between r and a whole step. */
MULTIVERSION static double collapsed_step(const double *restrict B, double *restrict r,
                                          const double *restrict prior, const double *restrict c,
                                          const double *restrict own, const double *restrict room,
                                          const ptrdiff_t *restrict topic, ptrdiff_t A, ptrdiff_t U,
                                          double stride, double *restrict s, double *restrict N) {
    double most = 0;
    for (ptrdiff_t u = 0; u < U; u++) s[u] = 0;
    for (ptrdiff_t j = 0; j < A; j++) {
        const ptrdiff_t k = topic[j];
        const double *restrict b = B + k * U, *restrict r_k = r + k * U;
        const double a = prior[k], total = N[k] + a;
        for (ptrdiff_t u = 0; u < U; u++) s[u] += collapsed_weight(b[u], total, a, own[u], r_k[u]);
    }
    for (ptrdiff_t u = 0; u < U; u++) s[u] = s[u] > 0 ? room[u] / s[u] : 0.0;
    for (ptrdiff_t j = 0; j < A; j++) {
        const ptrdiff_t k = topic[j];
        const double *restrict b = B + k * U;
        double *restrict r_k = r + k * U;
        const double a = prior[k], total = N[k] + a;
        double sum[LANES] = {0}, moved[LANES] = {0};
        for (ptrdiff_t u = 0; u < U; u += LANES)
            for (int l = 0; l < LANES; l++) {
                double old = r_k[u + l];
                double step = collapsed_weight(b[u + l], total, a, own[u + l], old) * s[u + l] - old;
                r_k[u + l] = old + stride * step;
                sum[l] += c[u + l] * r_k[u + l];
                moved[l] += c[u + l] * fabs(step);
            }
        N[k] = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
        double all = ((moved[0] + moved[4]) + (moved[1] + moved[5]))
                     + ((moved[2] + moved[6]) + (moved[3] + moved[7]));
        most = all > most ? all : most;
    }
    return most;
}

/* room (U,): what A topics have of each entry, together. */
static inline void add_shares(const double *restrict r, const ptrdiff_t *restrict topic, ptrdiff_t A,
                              ptrdiff_t U, double *restrict room) {
    for (ptrdiff_t u = 0; u < U; u++) room[u] = 0;
    for (ptrdiff_t j = 0; j < A; j++)
        for (ptrdiff_t u = 0; u < U; u++) room[u] += r[topic[j] * U + u];
}

#endif
