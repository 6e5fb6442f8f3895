/* Loops over the rows of a tile; included by vector_math.h once for each T. */

/* Responsibilities of n rows: resp (n, K) <- softmax(w) (Alg. 7.1), entries below `floor_` cleared.
 * The rows of w lie ld >= K apart, a multiple of LANES; they become weight * mass * resp, with zeros
 * behind. entropy[k] += sum -weight * m r log(m r), where m is the row's mass; log_norm[i] is the log
 * normaliser. scratch holds 2 ld values. Returns how many entries are not zero.
 *
 * The largest weight is found among the bits read as integers (with those of negative numbers turned
 * round), because only for integers do compilers know that the order of a maximum is free. Entropies
 * are summed in T over 32 rows, then in double: a conversion for every entry costs more than exp. */
MULTIVERSION static ptrdiff_t NAME(softmax_rows)(T *restrict w, T *restrict resp, ptrdiff_t n,
                                                 ptrdiff_t K, ptrdiff_t ld, T floor_,
                                                 const double *mass, const double *weight,
                                                 double *restrict entropy, double *restrict log_norm,
                                                 T *restrict scratch) {
    enum { WIDTH = 32 / sizeof(T) }; /* lanes of the sum: one AVX2 register */
    const ptrdiff_t blocks = ld / LANES;
    const int sign = 8 * sizeof(BITS) - 1;
    T *restrict e = scratch, *restrict part = scratch + ld;
    ptrdiff_t filled = 0;
    for (ptrdiff_t k = 0; k < LANES * blocks; k++) part[k] = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        T *restrict r = w + i * ld;
        BITS best = BITS_MIN, count = 0;
        T sum[WIDTH], m, total = 0;
        for (ptrdiff_t k = K; k < ld; k++) r[k] = NAME(NEGLIGIBLE);
        for (ptrdiff_t k = 0; k < LANES * blocks; k++) {
            BITS v;
            memcpy(&v, r + k, sizeof v);
            v ^= (v >> sign) & BITS_MAX;
            best = v > best ? v : best;
        }
        best ^= (best >> sign) & BITS_MAX;
        memcpy(&m, &best, sizeof m);
        for (ptrdiff_t k = 0; k < LANES * blocks; k++) {
            r[k] -= m;
            T v = NAME(exp_nonpositive)(r[k]);
            e[k] = v < floor_ ? 0 : v;
        }
        for (ptrdiff_t k = 0; k < LANES * blocks; k++) count += e[k] != 0; /* a nan too */
        filled += count;
        for (int l = 0; l < WIDTH; l++) sum[l] = 0;
        for (ptrdiff_t b = 0; b < LANES / WIDTH * blocks; b++)
            for (int l = 0; l < WIDTH; l++) sum[l] += e[b * WIDTH + l];
        for (int l = 0; l < WIDTH; l++) total += sum[l];
        double log_total = log((double)total), mi = mass ? mass[i] : 1.0;
        T scale = (T)1 / total, share = (T)((weight ? weight[i] : 1.0) * mi);
        T offset = (T)(mi > 0 && mi != 1.0 ? log_total - log(mi) : log_total);
        if (log_norm) log_norm[i] = (double)m + log_total;
        for (ptrdiff_t k = 0; k < LANES * blocks; k++) {
            e[k] *= scale;
            T s = share * e[k];
            part[k] += s * (offset - r[k]);
            r[k] = s;
        }
        memcpy(resp + i * K, e, K * sizeof(T));
        if (entropy && (i % 32 == 31 || i == n - 1))
            for (ptrdiff_t k = 0; k < K; k++) {
                entropy[k] += (double)part[k];
                part[k] = 0;
            }
    }
    return filled;
}

/* Weights under the L-th largest of a row become negligible, found by up to L passes for the
 * largest weight under the last one. Returns -1, or, if more than L weights are not under it,
 * how many of those equal to it (*bar) may stay. */
MULTIVERSION static ptrdiff_t NAME(keep_few)(T *restrict w, ptrdiff_t K, ptrdiff_t L, T *bar) {
    T last = (T)INFINITY;
    ptrdiff_t kept = 0, before = 0;
    while (kept < L) {
        T top[LANES];
        int equal = 0;
        ptrdiff_t k = 0;
        for (int l = 0; l < LANES; l++) top[l] = (T)-INFINITY;
        for (; k + LANES <= K; k += LANES)
            for (int l = 0; l < LANES; l++) {
                T v = w[k + l] < last ? w[k + l] : (T)-INFINITY;
                top[l] = v > top[l] ? v : top[l];
            }
        for (; k < K; k++) top[0] = w[k] < last && w[k] > top[0] ? w[k] : top[0];
        for (int l = 1; l < LANES; l++) top[0] = top[l] > top[0] ? top[l] : top[0];
        last = top[0];
        for (k = 0; k < K; k++) equal += w[k] == last;
        before = kept;
        kept += equal;
        if (equal == 0) break;
    }
    for (ptrdiff_t k = 0; k < K; k++) w[k] = w[k] < last ? NAME(NEGLIGIBLE) : w[k];
    *bar = last;
    return kept > L ? L - before : -1;
}

/* Rows of sufficient statistics s(x) = [quadratic part, x if linear, 1].
 *
 * Every run of products x_a x_b, b >= a, is rounded up to whole registers where the buffers allow it:
 * what is written too much is overwritten by the next run. */
MULTIVERSION static void NAME(features_full)(T *restrict out, const T *restrict x, ptrdiff_t n,
                                             ptrdiff_t D, int linear) {
    const ptrdiff_t V = 32 / sizeof(T), P = D * (D + 1) / 2 + (linear ? D : 0) + 1;
    const T *x_end = x + n * D, *out_end = out + n * P;
    for (ptrdiff_t i = 0; i < n; i++) {
        T *restrict o = out + i * P;
        for (ptrdiff_t a = 0; a < (linear ? D + 1 : D); a++) {
            const T *restrict z = x + i * D + (a < D ? a : 0);
            const T za = a < D ? z[0] : (T)1;
            const ptrdiff_t length = a < D ? D - a : D, rounded = (length + V - 1) / V * V;
            if (x_end - z >= rounded && out_end - o >= rounded)
                for (ptrdiff_t b = 0; b < V * (rounded / V); b++) o[b] = za * z[b];
            else
                for (ptrdiff_t b = 0; b < length; b++) o[b] = za * z[b];
            o += length;
        }
        o[0] = 1;
    }
}

MULTIVERSION static void NAME(features_diag)(T *restrict out, const T *restrict x, ptrdiff_t n,
                                           ptrdiff_t D, int linear) {
    ptrdiff_t P = D + (linear ? D : 0) + 1;
    for (ptrdiff_t i = 0; i < n; i++) {
        const T *restrict z = x + i * D;
        T *restrict o = out + i * P;
        for (ptrdiff_t a = 0; a < D; a++) o[a] = z[a] * z[a];
        o += D;
        if (linear) {
            for (ptrdiff_t a = 0; a < D; a++) o[a] = z[a];
            o += D;
        }
        o[0] = 1;
    }
}

MULTIVERSION static void NAME(features_spherical)(T *restrict out, const T *restrict x,
                                                ptrdiff_t n, ptrdiff_t D, int linear) {
    ptrdiff_t P = (linear ? D : 0) + 2;
    for (ptrdiff_t i = 0; i < n; i++) {
        const T *restrict z = x + i * D;
        T *restrict o = out + i * P;
        T square = 0;
        for (ptrdiff_t a = 0; a < D; a++) square += z[a] * z[a];
        *o++ = square;
        if (linear) {
            for (ptrdiff_t a = 0; a < D; a++) o[a] = z[a];
            o += D;
        }
        o[0] = 1;
    }
}

MULTIVERSION static void NAME(features_linear)(T *restrict out, const T *restrict x, ptrdiff_t n,
                                             ptrdiff_t D) {
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t a = 0; a < D; a++) out[i * (D + 1) + a] = x[i * D + a];
        out[i * (D + 1) + D] = 1;
    }
}
