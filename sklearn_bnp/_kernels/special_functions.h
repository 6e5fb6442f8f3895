/* log, digamma, trigamma and log Gamma without branches, for loops that the compiler turns into vector code.
 *
 * Arguments are moved up by 8 with products, not sums of reciprocals, whose factors x + i pair off as
 * t = x (x + 7), t + 6, t + 10, t + 12. They are normal numbers below 1e38 (the products would overflow
 * there).
 */
#ifndef SKLEARN_BNP_SPECIAL_FUNCTIONS_H
#define SKLEARN_BNP_SPECIAL_FUNCTIONS_H

#if defined(__GNUC__) /* not all that is in it serves here */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include "vector_math.h"
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* log(x) for normal x > 0: x = 2^k m with sqrt(1/2) <= m < sqrt(2); log m = 2 atanh((m - 1)/(m + 1)),
 * whose Taylor series to the 21st power leaves less than half a unit in the last place. */
static inline double log_normal(double x) {
    const uint64_t root_half = 0x3fe6a09e667f3bcdULL, one = 0x3ff0000000000000ULL;
    const uint64_t two52 = 0x4330000000000000ULL;
    uint64_t bits, high;
    double m, k;
    memcpy(&bits, &x, sizeof bits);
    bits += one - root_half;
    high = (bits >> 52) | two52;
    memcpy(&k, &high, sizeof k);
    k -= 4503599627370496.0 + 1023.0;
    bits = (bits & 0x000fffffffffffffULL) + root_half;
    memcpy(&m, &bits, sizeof m);
    double f = m - 1.0, g = f / (2.0 + f), z = g * g;
    double p = 2.0 / 21.0;
    p = p * z + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
    /* 2 g = f - f g: the leading term keeps the rounding of f alone */
    return k * 6.93147180369123816490e-01 + (f - g * (f - z * p) + k * 1.90821492927058770002e-10);
}

/* psi(y) - log(y) for y >= 8: Abramowitz and Stegun (1964), 6.3.18; next term 0.44 / y^16. */
static inline double digamma_tail(double inv) {
    double z = inv * inv;
    double p = -1.0 / 12.0;
    p = p * z + 691.0 / 32760.0;
    p = p * z - 1.0 / 132.0;
    p = p * z + 1.0 / 240.0;
    p = p * z - 1.0 / 252.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 12.0;
    return z * p - 0.5 * inv;
}

/* log Gamma(y) - (y - 1/2) log(y) + y for y >= 8: 6.1.41; next term 0.03 / y^15. */
static inline double lgamma_tail(double inv) {
    double z = inv * inv;
    double p = 1.0 / 156.0;
    p = p * z - 691.0 / 360360.0;
    p = p * z + 1.0 / 1188.0;
    p = p * z - 1.0 / 1680.0;
    p = p * z + 1.0 / 1260.0;
    p = p * z - 1.0 / 360.0;
    p = p * z + 1.0 / 12.0;
    return inv * p + 0.91893853320467274178;
}

/* psi'(y) for y >= 8: 6.4.12; next term 55 / y^19. */
static inline double trigamma_tail(double inv) {
    double z = inv * inv;
    double p = -3617.0 / 510.0;
    p = p * z + 7.0 / 6.0;
    p = p * z - 691.0 / 2730.0;
    p = p * z + 5.0 / 66.0;
    p = p * z - 1.0 / 30.0;
    p = p * z + 1.0 / 42.0;
    p = p * z - 1.0 / 30.0;
    p = p * z + 1.0 / 6.0;
    return inv + z * (0.5 + inv * p);
}

/* psi(x) for x > 0. */
static inline double digamma_positive(double x) {
    double y = x + 8.0, t = x * (x + 7.0);
    double top = ((4.0 * t + 84.0) * t + 504.0) * t + 720.0;
    double product = t * (t + 6.0) * ((t + 10.0) * (t + 12.0));
    return log_normal(y) + digamma_tail(1.0 / y) - (2.0 * x + 7.0) * top / product;
}

/* psi'(x) for x > 0. The squares of large numbers may overflow: their reciprocals are 0. */
static inline double trigamma_positive(double x) {
    double sum = trigamma_tail(1.0 / (x + 8.0));
    for (int i = 7; i >= 0; i--) sum += 1.0 / ((x + i) * (x + i));
    return sum;
}

/* log Gamma(x) for x > 0. */
static inline double lgamma_positive(double x) {
    double y = x + 8.0, t = x * (x + 7.0);
    double product = t * (t + 6.0) * ((t + 10.0) * (t + 12.0));
    return (y - 0.5) * log_normal(y) - y + lgamma_tail(1.0 / y) - log_normal(product);
}

#endif
