/* The summary step over the few (row, component) pairs that are not zero; included for each T.
 *
 * Pairs are collected from tiles of weights, sorted by component, and summed component by component:
 * its rows z = [x, 1] and w z are gathered, a batch at a time, and the upper triangle of sum w z z' is
 * built in registers. No statistics s(x) are needed. The batch bounds the sums in T as well. */

/* Positive entries of w (n, K), rows ld apart, are added to the list and counted in p->end, which
 * is zero at first; rows are numbered from `row`. */
MULTIVERSION static void NAME(collect_pairs)(Pairs *p, const T *restrict w, ptrdiff_t n, ptrdiff_t K,
                                             ptrdiff_t ld, ptrdiff_t row) {
    int32_t *restrict component = p->component;
    int32_t *restrict rows = p->row;
    T *restrict value = (T *)p->value;
    ptrdiff_t *restrict count = p->end;
    ptrdiff_t to = p->n;
    for (ptrdiff_t i = 0; i < n; i++) {
        const T *restrict r = w + i * ld;
        ptrdiff_t from = to;
        for (ptrdiff_t k = 0; k < K; k++) { /* without a branch: the last of those in one place counts */
            BITS v;
            memcpy(&v, r + k, sizeof v);
            component[to] = (int32_t)k;
            to += v != 0;
        }
        for (; from < to; from++) {
            rows[from] = (int32_t)(row + i);
            value[from] = r[component[from]];
            count[component[from]]++;
        }
    }
    p->n = to;
}

/* square (D1, ld), upper triangle <- sum_i w_i z_i z_i', from rows z_i and wz_i that lie ld apart. The
 * block of 4 by 2 registers runs over the diagonal; ld leaves room for that. */
MULTIVERSION static void NAME(outer_sums)(T *square, const T *z, const T *wz, ptrdiff_t n,
                                          ptrdiff_t D1, ptrdiff_t ld) {
    const ptrdiff_t V = sizeof(NAME(pack)) / sizeof(T);
    for (ptrdiff_t a = 0; a < D1; a += 4)
        for (ptrdiff_t b = a / V * V; b < D1; b += 2 * V) {
            NAME(pack) s[4][2] = {{{0}}};
            for (ptrdiff_t i = 0; i < n; i++) {
                const T *c = wz + i * ld + a;
                const NAME(pack) y0 = *(const NAME(pack) *)(z + i * ld + b);
                const NAME(pack) y1 = *(const NAME(pack) *)(z + i * ld + b + V);
                s[0][0] += c[0] * y0;
                s[0][1] += c[0] * y1;
                s[1][0] += c[1] * y0;
                s[1][1] += c[1] * y1;
                s[2][0] += c[2] * y0;
                s[2][1] += c[2] * y1;
                s[3][0] += c[3] * y0;
                s[3][1] += c[3] * y1;
            }
            for (int j = 0; j < 4; j++) {
                *(NAME(pack) *)(square + (a + j) * ld + b) = s[j][0];
                *(NAME(pack) *)(square + (a + j) * ld + b + V) = s[j][1];
            }
        }
}

/* square[0] <- sum_i wz_i, square[ld] <- sum_i wz_i * z_i: what a diagonal family needs. */
MULTIVERSION static void NAME(diagonal_sums)(T *restrict square, const T *restrict z,
                                             const T *restrict wz, ptrdiff_t n, ptrdiff_t ld) {
    for (ptrdiff_t a = 0; a < 2 * ld; a++) square[a] = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t a = 0; a < ld; a++) {
            square[a] += wz[i * ld + a];
            square[ld + a] += wz[i * ld + a] * z[i * ld + a];
        }
}

/* Rows z = [x, 1] and w z of n pairs. What lies behind stays as it is (zero). Without `restrict`: given
 * it, GCC makes of this a loop and a call of memcpy, which takes twice as long. */
MULTIVERSION static void NAME(gather_pairs)(T *z, T *wz, const T *x, const int32_t *row,
                                            const T *value, ptrdiff_t n, ptrdiff_t D,
                                            ptrdiff_t ld) {
    const ptrdiff_t V = sizeof(NAME(pack)) / sizeof(T);
    for (ptrdiff_t i = 0; i < n; i++) {
        const T *from = x + row[i] * D;
        const T w = value[i];
        T *zi = z + i * ld, *wzi = wz + i * ld;
        ptrdiff_t a = 0;
        for (; a + V <= D; a += V) {
            const NAME(pack) y = *(const NAME(pack) *)(from + a);
            *(NAME(pack) *)(zi + a) = y;
            *(NAME(pack) *)(wzi + a) = w * y;
        }
        for (; a < D; a++) {
            zi[a] = from[a];
            wzi[a] = w * from[a];
        }
        zi[D] = 1;
        wzi[D] = w;
    }
}

/* stats (K, P) += sums over all pairs, whose rows are those of x (n, D), or = if `fresh`; the list is
 * empty then. */
MULTIVERSION static void NAME(sum_pairs)(double *stats, const T *x, Pairs *p, int fresh, ptrdiff_t K,
                                         ptrdiff_t D, ptrdiff_t P, int quadratic, int linear) {
    T *z = (T *)p->z, *wz = z + p->batch * p->ld, *square = wz + p->batch * p->ld;
    T *value = (T *)p->value, *sorted_value = (T *)p->sorted_value;
    const ptrdiff_t ld = p->ld;
    ptrdiff_t from = 0, *end = p->end;
    for (ptrdiff_t k = 0; k < K; k++) { /* end[k]: first place of component k */
        from += end[k];
        end[k] = from - end[k];
    }
    from = 0;
    for (ptrdiff_t i = 0; i < p->n; i++) {
        ptrdiff_t at = end[p->component[i]]++; /* in the end: one past the last of component k */
        p->sorted_row[at] = p->row[i];
        sorted_value[at] = value[i];
    }
    for (ptrdiff_t k = 0; k < K; k++) {
        if (fresh) memset(stats + k * P, 0, P * sizeof *stats);
        while (from < end[k]) {
            const ptrdiff_t batches = (end[k] - from + p->batch - 1) / p->batch;
            const ptrdiff_t n = (end[k] - from) / batches; /* nearly the same for all */
            double *s = stats + k * P;
            NAME(gather_pairs)(z, wz, x, p->sorted_row + from, sorted_value + from, n, D, ld);
            if (quadratic == QUADRATIC_FULL) {
                NAME(outer_sums)(square, z, wz, n, D + 1, ld);
                for (ptrdiff_t a = 0; a < D; s += D - a, a++)
                    for (ptrdiff_t b = a; b < D; b++) s[b - a] += square[a * ld + b];
                for (ptrdiff_t a = 0; a <= D; a++) square[a] = square[a * ld + D]; /* sum w [x, 1] */
            } else {
                NAME(diagonal_sums)(square, z, wz, n, ld);
                if (quadratic == QUADRATIC_DIAG)
                    for (ptrdiff_t a = 0; a < D; a++) *s++ += square[ld + a];
                if (quadratic == QUADRATIC_SPHERICAL) {
                    for (ptrdiff_t a = 0; a < D; a++) *s += square[ld + a];
                    s++;
                }
            }
            for (ptrdiff_t a = linear ? 0 : D; a <= D; a++) *s++ += square[a];
            from += n;
        }
    }
    p->n = 0;
    memset(end, 0, K * sizeof *end);
}
