/* Entropies of shares, whose logarithms are taken without branches. */
#ifndef SKLEARN_BNP_ENTROPY_MATH_H
#define SKLEARN_BNP_ENTROPY_MATH_H

#include "special_functions.h"

/* -sum_i weight[i] w[i] log w[i] of n shares, with weights of one if `weight` is NULL; overwrites w. Shares of 0
 * and of 1 have no entropy, nor has what rounding makes of these: negative numbers, and numbers above 1. */
MULTIVERSION static double entropy_of_shares(double *restrict w, const double *restrict weight, ptrdiff_t n) {
    double lane[LANES] = {0}, sum = 0.0;
    ptrdiff_t i, whole = n / LANES * LANES;
    for (i = 0; i < n; i++) {
        double x = (w[i] > DBL_MIN) & (w[i] < 1.0) ? w[i] : 1.0;
        w[i] = -x * log_normal(x);
    }
    if (weight)
        for (i = 0; i < n; i++) w[i] *= weight[i];
    for (i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += w[i + l];
    for (int l = 0; l < LANES; l++) sum += lane[l];
    for (; i < n; i++) sum += w[i];
    return sum;
}

#endif
