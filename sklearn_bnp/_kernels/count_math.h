/* Sums of log Gamma over the types of a component. */
#ifndef SKLEARN_BNP_COUNT_MATH_H
#define SKLEARN_BNP_COUNT_MATH_H

#include "special_functions.h"

/* sum_v log Gamma(lam_v + s_v + t_v) over n types; t may be NULL. */
MULTIVERSION static double lgamma_sum(const double *restrict lam, const double *s, const double *t,
                                      ptrdiff_t n) {
    double sums[LANES] = {0};
    ptrdiff_t v = 0;
    for (; v + LANES <= n; v += LANES) {
        double x[LANES];
        for (int l = 0; l < LANES; l++) x[l] = lam[v + l] + s[v + l] + (t ? t[v + l] : 0.0);
        for (int l = 0; l < LANES; l++) sums[l] += lgamma_positive(x[l]);
    }
    for (; v < n; v++) sums[0] += lgamma_positive(lam[v] + s[v] + (t ? t[v] : 0.0));
    for (int l = 1; l < LANES; l++) sums[0] += sums[l];
    return sums[0];
}

#endif
