/* Loops over Student densities, whose logarithms are taken without branches. */
#ifndef SKLEARN_BNP_STUDENT_MATH_H
#define SKLEARN_BNP_STUDENT_MATH_H

#include "special_functions.h"

/* Factors of one product of which a logarithm is taken, and the largest of them: 1e38^8 does not overflow. */
#define FACTORS 8
#define MOST_FACTOR 1e38

/* out (n, K) = c[k] - h[k] log(1 + f[k] q) of distances q (n, K), which are not negative. */
MULTIVERSION static void student_rows(const double *restrict q, double *restrict out, ptrdiff_t n, ptrdiff_t K,
                                      const double *restrict c, const double *restrict h,
                                      const double *restrict f) {
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t k = 0; k < K; k++)
            out[i * K + k] = c[k] - h[k] * log_normal(1.0 + f[k] * q[i * K + k]);
}

/* Rows of a tile. */
#define TILE 64

/* out[i] = sum_d log(1 + f q_d) of squared distances q_d = (x_d - m_d)^2 / b_d, for the rows of a tile, whose
 * columns x (D, TILE) are given one after the other; the inverses of b are given. */
MULTIVERSION static void log_columns(const double *restrict x, const double *restrict m,
                                     const double *restrict inverse, ptrdiff_t D, double f,
                                     double *restrict out) {
    double product[TILE];
    for (int i = 0; i < TILE; i++) out[i] = 0.0;
    for (ptrdiff_t d = 0; d < D;) {
        ptrdiff_t end = d + FACTORS < D ? d + FACTORS : D;
        for (int i = 0; i < TILE; i++) product[i] = 1.0;
        for (; d < end; d++)
            for (int i = 0; i < TILE; i++) {
                double y = x[d * TILE + i] - m[d], q = 1.0 + f * (y * y * inverse[d]);
                product[i] *= q < MOST_FACTOR ? q : MOST_FACTOR;
            }
        for (int i = 0; i < TILE; i++) out[i] += log_normal(product[i]);
    }
}

/* The same without the share r of the row: t = kappa / (kappa - r), and u_d = 1 - r t q_d is what is left of b_d.
 * Returns sum_d log(1 + f t^2 q_d / u_d), and adds sum_d log u_d to *log_left. */
static inline double log_columns_without(const double *restrict x, const double *restrict m,
                                             const double *restrict inverse, ptrdiff_t D, double f, double r,
                                             double t, double least, double *log_left) {
    double sum = 0.0;
    for (ptrdiff_t d = 0; d < D; d++) {
        double y = x[d] - m[d], q = y * y * inverse[d], u = 1.0 - r * t * q;
        u = u > least ? u : least;
        sum += log_normal(1.0 + f * t * t * q / u);
        *log_left += log_normal(u);
    }
    return sum;
}

#endif
