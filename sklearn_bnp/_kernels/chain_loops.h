/* Loops of the recursions; included by chain_math.h once for each WIDTH (bytes) of vectors. */

#if defined(__GNUC__)
#define INLINE TARGET __attribute__((always_inline)) static inline
typedef double NAME(wide) __attribute__((vector_size(WIDTH), aligned(8), may_alias));
typedef long long NAME(bits) __attribute__((vector_size(WIDTH), aligned(8), may_alias));
/* x where p is at least TINY, elsewhere the other number; written out, as GCC 12.2 makes wrong code of
 * `p >= TINY ? p * b : 0` in loops over LANES. */
#define REACHED(p, x) ((NAME(wide))((NAME(bits))(x) & (NAME(bits))((p) >= TINY)))
#define REACHED_OR_1(p) \
    ((NAME(wide))(((NAME(bits))(p) & (NAME(bits))((p) >= TINY)) \
                  | ((NAME(bits))((NAME(wide)){0} + 1.0) & ~(NAME(bits))((p) >= TINY))))
#else
#define INLINE static inline
typedef double NAME(wide);
#define REACHED(p, x) ((p) >= TINY ? (x) : 0.0)
#define REACHED_OR_1(p) ((p) >= TINY ? (p) : 1.0)
#endif
#define LENGTH ((ptrdiff_t)(sizeof(NAME(wide)) / sizeof(double)))

/* out (M, NV wides) = X B, or += ; entry (m, i) of X is x[m rs + i cs]. M and NV are constants. */
INLINE void NAME(block)(const int M, const int NV, double *out, ptrdiff_t ldo, const double *x,
                        ptrdiff_t rs, ptrdiff_t cs, const double *B, ptrdiff_t ldb, ptrdiff_t inner,
                        int add) {
    NAME(wide) a[4][14];
    UNROLL
    for (int m = 0; m < M; m++)
        UNROLL
        for (int v = 0; v < NV; v++) a[m][v] = (NAME(wide)){0};
    for (ptrdiff_t i = 0; i < inner; i++) {
        const NAME(wide) *b = (const NAME(wide) *)(B + i * ldb);
        UNROLL
        for (int m = 0; m < M; m++) {
            const double z = x[m * rs + i * cs];
            UNROLL
            for (int v = 0; v < NV; v++) a[m][v] += z * b[v];
        }
    }
    UNROLL
    for (int m = 0; m < M; m++)
        UNROLL
        for (int v = 0; v < NV; v++) {
            NAME(wide) *o = (NAME(wide) *)(out + m * ldo) + v;
            if (add) a[m][v] += *o;
            *o = a[m][v];
        }
}

/* out (rows, cols) = X (rows, inner) B, or += if `add`; cols is a multiple of LANES. A single row takes
 * up to 14 wides at a time (AVX2 has 16 registers), as many rows as there are 4 by 2. */
TARGET static void NAME(multiply)(double *out, ptrdiff_t ldo, const double *x, ptrdiff_t rs, ptrdiff_t cs,
                                  ptrdiff_t rows, const double *B, ptrdiff_t ldb, ptrdiff_t inner,
                                  ptrdiff_t cols, int add) {
    const ptrdiff_t n = cols / LENGTH;
    ptrdiff_t m = 0, v;
#define BLOCK(M, NV)                                                                                  \
    NAME(block)(M, NV, out + m * ldo + v * LENGTH, ldo, x + m * rs, rs, cs, B + v * LENGTH, ldb, inner, add)
    for (; m + 4 <= rows; m += 4) {
        for (v = 0; v + 2 <= n; v += 2) BLOCK(4, 2);
        if (v < n) BLOCK(4, 1);
    }
    for (; m + 2 <= rows; m += 2) {
        for (v = 0; v + 4 <= n; v += 4) BLOCK(2, 4);
        for (; v + 2 <= n; v += 2) BLOCK(2, 2);
        if (v < n) BLOCK(2, 1);
    }
    for (; m < rows; m++) {
        const ptrdiff_t panels = (n + 13) / 14;
        v = 0;
        for (ptrdiff_t p = 0; p < panels; p++) {
            const ptrdiff_t width = n / panels + (p < n % panels);
            switch (width) {
            case 1: BLOCK(1, 1); break;
            case 2: BLOCK(1, 2); break;
            case 3: BLOCK(1, 3); break;
            case 4: BLOCK(1, 4); break;
            case 5: BLOCK(1, 5); break;
            case 6: BLOCK(1, 6); break;
            case 7: BLOCK(1, 7); break;
            case 8: BLOCK(1, 8); break;
            case 9: BLOCK(1, 9); break;
            case 10: BLOCK(1, 10); break;
            case 11: BLOCK(1, 11); break;
            case 12: BLOCK(1, 12); break;
            case 13: BLOCK(1, 13); break;
            default: BLOCK(1, 14);
            }
            v += width;
        }
    }
#undef BLOCK
}

/* to (K,) = factor * from (K,), whole vectors where there is room: the last one overlaps. */
INLINE void NAME(scale_row)(double *restrict to, const double *restrict from, double factor,
                            ptrdiff_t K) {
    ptrdiff_t k = 0;
    for (; k + 4 <= K; k += 4)
        for (int l = 0; l < 4; l++) to[k + l] = factor * from[k + l];
    if (k < K && K >= 4)
        for (int l = 0; l < 4; l++) to[K - 4 + l] = factor * from[K - 4 + l];
    else
        for (; k < K; k++) to[k] = factor * from[k];
}

INLINE double NAME(total)(const double *s) {
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

/* u (ld,) <- inv pred * b, row <- u over its sum, which is returned; b is the row before, padded. */
INLINE double NAME(condition)(double *restrict u, const double *restrict pred, double *restrict row,
                              double *restrict b, double inv, ptrdiff_t K, ptrdiff_t ld) {
    double s[LANES];
    NAME(wide) sum[LANES * sizeof(double) / WIDTH];
    NAME(scale_row)(b, row, 1.0, K);
    UNROLL
    for (int v = 0; v < LANES / LENGTH; v++) sum[v] = (NAME(wide)){0};
    for (ptrdiff_t k = 0; k < ld; k += LANES) {
        UNROLL
        for (int v = 0; v < LANES / LENGTH; v++) {
            const ptrdiff_t i = k + v * LENGTH;
            const NAME(wide) p = inv * *(const NAME(wide) *)(pred + i);
            const NAME(wide) product = p * *(const NAME(wide) *)(b + i);
            *(NAME(wide) *)(u + i) = REACHED(p, product);
            sum[v] += REACHED(p, product);
        }
    }
    UNROLL
    for (int v = 0; v < LANES / LENGTH; v++) *(NAME(wide) *)(s + v * LENGTH) = sum[v];
    const double c = NAME(total)(s);
    NAME(scale_row)(row, u, c > 0 ? 1.0 / c : 0.0, K);
    return c;
}

/* pred: (n + 1, ld), zero at first. */
TARGET static void NAME(forward)(const Chain *c, Lane *lane, int n, double *pred) {
    const ptrdiff_t K = c->K, ld = c->ld;
    double *b = pred + n * ld, *u = lane[0].row;
    for (;;) {
        while (n > 0 && lane[n - 1].begin == lane[n - 1].end) n--;
        if (n == 0) return;
        NAME(multiply)(pred, ld, u, ld, 1, n, c->A, ld, K, ld, 0);
        for (int j = 0; j < n; j++) {
            Lane *q = lane + j;
            const ptrdiff_t t = q->begin++;
            if (t == c->indptr[q->d]) {
                NAME(scale_row)(pred + j * ld, c->first + q->d * K, 1.0, K);
                q->inv = 1.0;
                q->d++;
            }
            const double sum = NAME(condition)(q->row, pred + j * ld, c->table + t * K, b, q->inv, K, ld);
            c->scale[t] = sum;
            q->inv = sum > 0 ? 1.0 / sum : 0.0;
        }
    }
}

/* The lane's next block: alpha[p] holds row t = end - R - 1 + p, the last one at R, and w[p] that of row
 * t + 1: first pred, then B / c (until `respond` makes w of it). alpha[R - n] is the row before. */
INLINE void NAME(prepare)(const Chain *c, Lane *q) {
    const ptrdiff_t K = c->K, ld = c->ld, R = c->R;
    const ptrdiff_t n = q->end - q->begin < R ? q->end - q->begin : R, a = q->end - n;
    double *alpha = q->alpha + (R - n) * ld, *w = q->w + (R - n) * ld, s[LANES] = {0};
    q->n = n;
    if (n == 0) return;
    for (ptrdiff_t i = a > q->begin ? 0 : 1; i <= n; i++)
        NAME(scale_row)(alpha + i * ld, c->table + (a - 1 + i) * K, 1.0, K);
    NAME(multiply)(w, ld, alpha, ld, 1, n, c->A, ld, K, ld, 0);
    for (ptrdiff_t d = q->d; d >= 0 && c->indptr[d] >= a; d--)
        NAME(scale_row)(w + (c->indptr[d] - a) * ld, c->first + d * K, 1.0, K);
    for (ptrdiff_t i = 0; i < n * ld; i += LENGTH) {
        const NAME(wide) p = *(const NAME(wide) *)(w + i), x = *(const NAME(wide) *)(alpha + ld + i);
        *(NAME(wide) *)(w + i) = REACHED(p, x) / REACHED_OR_1(p);
    }
    for (ptrdiff_t k = 0; k < ld; k += LANES) /* rounding does not add up over blocks */
        for (int l = 0; l < LANES; l++) s[l] += alpha[n * ld + k + l] * q->row[k + l];
    const double sum = NAME(total)(s), inv = sum > 0 ? 1.0 / sum : 1.0;
    for (ptrdiff_t k = 0; k < ld; k++) q->row[k] *= inv;
}

/* sum += share . log(value). */
TARGET static void NAME(take_logs)(Lane *q) {
    double s[LANES] = {0};
    for (; q->logs % LANES; q->logs++) {
        q->share[q->logs] = 0.0;
        q->value[q->logs] = 1.0;
    }
    for (ptrdiff_t i = 0; i < q->logs; i += LANES)
        for (int l = 0; l < LANES; l++) s[l] += q->share[i + l] * log_normal(q->value[i + l]);
    q->sum += NAME(total)(s);
    q->logs = 0;
}

/* Pairs (r, B) with r > NO_SHARE join the list; B = scale * ratio. */
INLINE void NAME(collect)(Lane *q, const double *r, const double *ratio, double scale, ptrdiff_t ld) {
    for (ptrdiff_t k = 0; k < ld; k += LANES) {
        int any = 0;
        for (int l = 0; l < LANES; l++) any += r[k + l] > NO_SHARE;
        for (int l = 0; any && l < LANES; l++) { /* without a branch: the last of those in one place counts */
            q->share[q->logs] = r[k + l];
            q->value[q->logs] = scale * ratio[k + l];
            q->logs += r[k + l] > NO_SHARE;
        }
    }
    if (q->logs >= LOGS) NAME(take_logs)(q);
}

/* A row whose sequence ends with it, at alpha[p]: y and w of what comes next. */
TARGET static void NAME(end_sequence)(const Chain *c, Lane *q, ptrdiff_t p) {
    const ptrdiff_t K = c->K, ld = c->ld;
    double *w = q->w + p * ld;
    int ends = 1;
    for (ptrdiff_t k = 0; k < ld; k++) w[k] = 0.0;
    for (ptrdiff_t k = 0; c->after && k < K; k++) {
        w[k] = c->after[q->d * K + k];
        ends &= w[k] == 0.0;
    }
    if (ends)
        for (ptrdiff_t k = 0; k < K; k++) q->row[k] = 1.0;
    else
        NAME(multiply)(q->row, ld, w, ld, 1, 1, c->At, ld, K, ld, 0);
}

/* Responsibilities of row t at alpha[p], and its w at w[p - 1]; r: (ld,). */
INLINE void NAME(respond)(const Chain *c, Lane *q, ptrdiff_t t, ptrdiff_t p, double *restrict r) {
    const ptrdiff_t K = c->K, ld = c->ld;
    const double *alpha = q->alpha + p * ld, *y = q->row;
    double *w = q->w + (p - 1) * ld;
    if (t + 1 == c->indptr[q->d + 1]) NAME(end_sequence)(c, q, p);
    for (ptrdiff_t k = 0; k < ld; k++) r[k] = alpha[k] * y[k];
    NAME(collect)(q, r, w, c->scale[t], ld);
    for (ptrdiff_t k = 0; k < ld; k++) w[k] *= y[k];
    NAME(scale_row)(c->table + t * K, r, 1.0, K);
    if (t == c->indptr[q->d]) {
        if (c->start) NAME(scale_row)(c->start + q->d * K, r, 1.0, K);
        if (c->before) NAME(scale_row)(c->before + q->d * K, w, 1.0, K);
        NAME(take_logs)(q);
        c->data[q->d] = q->sum;
        q->sum = 0.0;
        q->d--;
    }
}

/* alpha of the block's rows times the weights of their sequences: nobody but the counts wants it then. */
INLINE void NAME(weigh)(const Chain *c, Lane *q) {
    ptrdiff_t d = q->d < 0 ? 0 : q->d; /* that of the row before the block, or of its first one */
    double *alpha = q->alpha + (c->R - q->n + 1) * c->ld;
    for (ptrdiff_t t = q->end - q->n; t < q->end; t++, alpha += c->ld) {
        while (c->indptr[d + 1] <= t) d++;
        for (ptrdiff_t k = 0; k < c->ld; k++) alpha[k] *= c->weight[d];
    }
}

/* counts: (K + 1, ld), the last row of which is work space. */
TARGET static void NAME(backward)(const Chain *c, Lane *lane, int n, double *counts) {
    const ptrdiff_t K = c->K, ld = c->ld, R = c->R, stride = lane_size(c, 1);
    double *r = counts + K * ld;
    while (n > 0) {
        int active = n;
        for (int j = 0; j < n; j++) NAME(prepare)(c, lane + j);
        for (ptrdiff_t s = 0;; s++) {
            while (active > 0 && lane[active - 1].n == s) active--;
            if (active == 0) break;
            for (int j = 0; j < active; j++)
                NAME(respond)(c, lane + j, lane[j].end - 1 - s, R - s, r);
            NAME(multiply)(lane[0].row, stride, lane[0].w + (R - s - 1) * ld, stride, 1, active, c->At, ld,
                           K, ld, 0);
        }
        for (int j = 0; j < n; j++) {
            Lane *q = lane + j;
            const ptrdiff_t p = R - q->n + 1;
            if (c->weight) NAME(weigh)(c, q);
            NAME(multiply)(counts, ld, q->alpha + p * ld, 1, ld, K, q->w + p * ld, ld, q->n, ld, 1);
            memcpy(q->w + R * ld, q->w + (p - 1) * ld, ld * sizeof *q->w);
            q->end -= q->n;
        }
        while (n > 0 && lane[n - 1].end == lane[n - 1].begin) n--;
    }
}

#undef LENGTH
#undef INLINE
#undef REACHED
#undef REACHED_OR_1
