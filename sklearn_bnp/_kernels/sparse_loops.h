/* Loops over the entries of one row of counts; included by sparse_math.h once for each T. */

/* out[k] += sum_j x[j] * coef[v[j] * ld + k] for k < ld, a multiple of LANES. Four entries at a time:
 * `out` is loaded and stored once for four products. */
MULTIVERSION static void NAME(add_weights)(T *restrict out, const T *restrict coef, ptrdiff_t ld,
                                           const T *restrict x, const int32_t *restrict v,
                                           ptrdiff_t n) {
    const ptrdiff_t blocks = ld / LANES;
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const T *restrict a = coef + v[j] * ld, *restrict b = coef + v[j + 1] * ld;
        const T *restrict c = coef + v[j + 2] * ld, *restrict d = coef + v[j + 3] * ld;
        const T p = x[j], q = x[j + 1], r = x[j + 2], s = x[j + 3];
        for (ptrdiff_t k = 0; k < LANES * blocks; k++)
            out[k] += (p * a[k] + q * b[k]) + (r * c[k] + s * d[k]);
    }
    for (; j < n; j++) {
        const T *restrict a = coef + v[j] * ld;
        for (ptrdiff_t k = 0; k < LANES * blocks; k++) out[k] += x[j] * a[k];
    }
}

/* sums[v[j] * ld + k] += x[j] * w[k] for k < width, a multiple of LANES. */
MULTIVERSION static void NAME(add_to_all)(double *restrict sums, ptrdiff_t ld,
                                          const double *restrict w, ptrdiff_t width,
                                          const T *restrict x, const int32_t *restrict v,
                                          ptrdiff_t n) {
    const ptrdiff_t blocks = width / LANES;
    for (ptrdiff_t j = 0; j < n; j++) {
        double *restrict s = sums + v[j] * ld;
        const double p = x[j];
        for (ptrdiff_t k = 0; k < LANES * blocks; k++) s[k] += p * w[k];
    }
}

/* Whether all numbers are whole and not negative; with `binary`, 0 or 1. Whole numbers that are too
 * large to be told from others so fail as well: whoever calls looks again. */
MULTIVERSION static int NAME(are_counts)(const T *restrict x, ptrdiff_t n, int binary) {
    const T shift = sizeof(T) == sizeof(double) ? (T)4503599627370496.0 : (T)8388608.0;
    int bad = 0;
    if (binary)
        for (ptrdiff_t i = 0; i < n; i++) bad |= x[i] != x[i] * x[i];
    else
        for (ptrdiff_t i = 0; i < n; i++)
            bad |= (x[i] < 0) | ((x[i] + shift) - shift != x[i]);
    return !bad;
}
