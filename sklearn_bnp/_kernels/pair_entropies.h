/* What unions of two components lose of the entropies of a row's shares. */
#ifndef SKLEARN_BNP_PAIR_ENTROPIES_H
#define SKLEARN_BNP_PAIR_ENTROPIES_H

#include "special_functions.h"

enum { BLOCK = 64 };

/* x log x; numbers below 0 and above 1 count as 0 and 1, as for `entropy_of_shares`. */
static inline double x_log_x_of(double x) {
    double y = (x > DBL_MIN) & (x < 1.0) ? x : 1.0;
    return y * log_normal(y);
}

/* x log x of n shares. */
MULTIVERSION static void x_log_x(double *restrict out, const double *restrict share, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) out[i] = x_log_x_of(share[i]);
}

/* lost[column[i]] += w (h(x) + h(share[i]) - h(x + share[i])) for h(x) = -x log x, where `own` and `owns` are
 * x log x of x and of the n shares. A block of logarithms is taken before it is scattered. */
MULTIVERSION static void add_lost(double *lost, double x, double own, double w, const double *restrict share,
                                  const double *restrict owns, const int *restrict column, ptrdiff_t n) {
    double block[BLOCK];
    for (ptrdiff_t from = 0; from < n; from += BLOCK) {
        const ptrdiff_t m = n - from < BLOCK ? n - from : BLOCK;
        for (ptrdiff_t i = 0; i < m; i++)
            block[i] = w * (x_log_x_of(x + share[from + i]) - owns[from + i] - own);
        for (ptrdiff_t i = 0; i < m; i++) lost[column[from + i]] += block[i];
    }
}

#endif
