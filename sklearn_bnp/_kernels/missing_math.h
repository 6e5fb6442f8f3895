/* Rows with missing entries under full Gaussians, for LANES components at a time.
 *
 * Design note
 * (a) Patterns have few missing entries and few rows, so that loops over entries or rows are too short for
 *     vectors. Numbers of LANES components lie side by side instead, and each innermost loop is over these.
 * (b) Lanes without a component have A = I and b = 0, whose results nobody takes. Lanes that have no share
 *     of a pattern's rows get factors of 0: all that they add is 0, even if their A_mm has no factor.
 */
#ifndef SKLEARN_BNP_MISSING_MATH_H
#define SKLEARN_BNP_MISSING_MATH_H

#include "special_functions.h"

/* Part of its callers, which exist once for each kind of vectors. */
#if defined(__GNUC__)
#define WITHIN __attribute__((always_inline)) static inline
#else
#define WITHIN static inline
#endif

#define LOG_2PI 1.8378770664093454836
/* Shares of no more than this part of the row's largest one are left out. */
#define NO_SHARE 1e-16

/* LANES components, and buffers for one pattern of their rows: m entries are missing and o are seen. */
typedef struct {
    ptrdiff_t D, m, o;
    ptrdiff_t *missing, *seen; /* (D,) each */
    double *a, *b;             /* (D, D, LANES), (D, LANES) */
    double *root;              /* (m, m, LANES) lower Cholesky factor of A_mm, without its diagonal */
    double *pivot;             /* (m, LANES) one over its diagonal */
    double *inverse;           /* (m, m, LANES) of A_mm */
    double *y;                 /* (m, LANES) root y = b_m - A_ms z_s */
    double *x;                 /* (D, LANES) completed row */
    double *sums;              /* (P, LANES) */
} Lanes;

/* The same rows for all components, sorted by pattern: those of pattern g are starts[g] to starts[g + 1]. */
typedef struct {
    ptrdiff_t n, G;
    const double *z;              /* (n, D) */
    const ptrdiff_t *starts;      /* (G + 1,) */
    const unsigned char *missing; /* (G, D) */
} Rows;

/* Lays out the buffers at `base`, or only counts if that is NULL; returns how many bytes there are. */
static inline size_t lay_out(Lanes *w, ptrdiff_t D, ptrdiff_t P, void *base) {
    double *next = (double *)base;
    w->D = D;
    w->a = next, next += D * D * LANES;
    w->root = next, next += D * D * LANES;
    w->inverse = next, next += D * D * LANES;
    w->b = next, next += D * LANES;
    w->pivot = next, next += D * LANES;
    w->y = next, next += D * LANES;
    w->x = next, next += D * LANES;
    w->sums = next, next += P * LANES;
    w->missing = (ptrdiff_t *)next;
    w->seen = w->missing + D;
    return (size_t)(3 * D * D + 4 * D + P) * LANES * sizeof(double) + 2 * (size_t)D * sizeof(ptrdiff_t);
}

/* Put the first `lanes` components of a (K, D, D) and b (K, D) side by side. */
static inline void take(Lanes *w, const double *a, const double *b, ptrdiff_t lanes) {
    const ptrdiff_t D = w->D;
    for (ptrdiff_t l = 0; l < LANES; l++)
        for (ptrdiff_t i = 0; i < D; i++) {
            for (ptrdiff_t j = 0; j < D; j++)
                w->a[(i * D + j) * LANES + l] = l < lanes ? a[(l * D + i) * D + j] : i == j;
            w->b[i * LANES + l] = l < lanes ? b[l * D + i] : 0.0;
        }
}

/* List the missing and the seen columns of a pattern. */
WITHIN void enter(Lanes *w, const unsigned char *missing) {
    w->m = w->o = 0;
    for (ptrdiff_t d = 0; d < w->D; d++)
        if (missing[d])
            w->missing[w->m++] = d;
        else
            w->seen[w->o++] = d;
}

#define EACH_LANE for (int l = 0; l < LANES; l++)

/* Factorise A_mm. Log determinants, and with them all that follows, are NaN where there is no factor. */
WITHIN void factorise(Lanes *w, double *restrict log_det) {
    const ptrdiff_t m = w->m;
    EACH_LANE log_det[l] = 0.0;
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j <= i; j++) {
            double t[LANES];
            const double *a = w->a + (w->missing[i] * w->D + w->missing[j]) * LANES;
            EACH_LANE t[l] = a[l];
            for (ptrdiff_t p = 0; p < j; p++) {
                const double *u = w->root + (i * m + p) * LANES, *v = w->root + (j * m + p) * LANES;
                EACH_LANE t[l] -= u[l] * v[l];
            }
            double *out = i > j ? w->root + (i * m + j) * LANES : w->pivot + i * LANES;
            if (i > j)
                EACH_LANE out[l] = t[l] * w->pivot[j * LANES + l];
            else
                EACH_LANE {
                    log_det[l] += t[l] > 0 ? log_normal(t[l]) : (double)NAN;
                    out[l] = 1.0 / sqrt(t[l]);
                }
        }
    for (ptrdiff_t i = 0; i < m; i++)
        EACH_LANE w->pivot[i * LANES + l] = log_det[l] == log_det[l] ? w->pivot[i * LANES + l] : (double)NAN;
}

/* y = inv(root) (b_m - A_ms z_s). */
WITHIN void solve(Lanes *w, const double *z) {
    const ptrdiff_t m = w->m;
    for (ptrdiff_t i = 0; i < m; i++) {
        double t[LANES];
        const double *b = w->b + w->missing[i] * LANES, *a = w->a + w->missing[i] * w->D * LANES;
        EACH_LANE t[l] = b[l];
        for (ptrdiff_t p = 0; p < w->o; p++) {
            const double *v = a + w->seen[p] * LANES, value = z[w->seen[p]];
            EACH_LANE t[l] -= v[l] * value;
        }
        for (ptrdiff_t p = 0; p < i; p++) {
            const double *u = w->root + (i * m + p) * LANES, *y = w->y + p * LANES;
            EACH_LANE t[l] -= u[l] * y[l];
        }
        EACH_LANE w->y[i * LANES + l] = t[l] * w->pivot[i * LANES + l];
    }
}

/* x: the seen entries of z, and inv(root') y for the missing ones, which is their conditional mean. */
WITHIN void complete(Lanes *w, const double *z) {
    const ptrdiff_t m = w->m;
    for (ptrdiff_t p = 0; p < w->o; p++) EACH_LANE w->x[w->seen[p] * LANES + l] = z[w->seen[p]];
    for (ptrdiff_t i = m - 1; i >= 0; i--) {
        double t[LANES];
        EACH_LANE t[l] = w->y[i * LANES + l];
        for (ptrdiff_t p = i + 1; p < m; p++) {
            const double *u = w->root + (p * m + i) * LANES, *x = w->x + w->missing[p] * LANES;
            EACH_LANE t[l] -= u[l] * x[l];
        }
        EACH_LANE w->x[w->missing[i] * LANES + l] = t[l] * w->pivot[i * LANES + l];
    }
}

/* Columns of inv(root) in y, and then of the inverse of A_mm. */
WITHIN void invert(Lanes *w) {
    const ptrdiff_t m = w->m;
    for (ptrdiff_t j = 0; j < m; j++) {
        for (ptrdiff_t i = j; i < m; i++) {
            double t[LANES];
            EACH_LANE t[l] = i == j;
            for (ptrdiff_t p = j; p < i; p++) {
                const double *u = w->root + (i * m + p) * LANES, *y = w->y + p * LANES;
                EACH_LANE t[l] -= u[l] * y[l];
            }
            EACH_LANE w->y[i * LANES + l] = t[l] * w->pivot[i * LANES + l];
        }
        for (ptrdiff_t i = m - 1; i >= j; i--) {
            double t[LANES];
            EACH_LANE t[l] = w->y[i * LANES + l];
            for (ptrdiff_t p = i + 1; p < m; p++) {
                const double *u = w->root + (p * m + i) * LANES, *v = w->inverse + (p * m + j) * LANES;
                EACH_LANE t[l] -= u[l] * v[l];
            }
            EACH_LANE w->inverse[(i * m + j) * LANES + l] = t[l] * w->pivot[i * LANES + l];
        }
    }
}

/* Add mass times the variance of missing entries, without their ridge, to packed squares (P, LANES). */
WITHIN void add_spread(const Lanes *w, const double *ridge, const double *mass, double *restrict sums) {
    for (ptrdiff_t i = 0; i < w->m; i++) {
        const ptrdiff_t d = w->missing[i], row = d * w->D - d * (d - 1) / 2 - d; /* + column: its place */
        EACH_LANE sums[(row + d) * LANES + l] -= mass[l] * ridge[d];
        for (ptrdiff_t j = i; j < w->m; j++) {
            double *out = sums + (row + w->missing[j]) * LANES;
            const double *v = w->inverse + (j * w->m + i) * LANES;
            EACH_LANE out[l] += mass[l] * v[l];
        }
    }
}

/* Entropy of missing entries, with the log densities `each` (D,) that scaling adds to seen ones. */
WITHIN void entropies(const Lanes *w, const double *log_det, const double *each, double *restrict out) {
    double others = 0.0;
    for (ptrdiff_t i = 0; i < w->m; i++) others += each[w->missing[i]];
    EACH_LANE out[l] = 0.5 * ((double)w->m * (1.0 + LOG_2PI) - log_det[l]) - others;
}

/* out[n ld + l], log weights of rows; c (LANES,) and fix (D, LANES) are those of `missing_table`. */
MULTIVERSION static void table_of_lanes(Lanes *w, const Rows *rows, const double *c, const double *fix,
                                        ptrdiff_t lanes, double *out, ptrdiff_t ld) {
    for (ptrdiff_t g = 0; g < rows->G; g++) {
        double base[LANES], log_det[LANES];
        enter(w, rows->missing + g * w->D);
        factorise(w, log_det);
        EACH_LANE base[l] = c[l] - 0.5 * log_det[l];
        for (ptrdiff_t i = 0; i < w->m; i++) EACH_LANE base[l] += fix[w->missing[i] * LANES + l];
        for (ptrdiff_t n = rows->starts[g]; n < rows->starts[g + 1]; n++) {
            const double *z = rows->z + n * w->D;
            double total[LANES];
            solve(w, z);
            EACH_LANE total[l] = base[l];
            for (ptrdiff_t i = 0; i < w->m; i++)
                EACH_LANE total[l] += 0.5 * w->y[i * LANES + l] * w->y[i * LANES + l];
            for (ptrdiff_t i = 0; i < w->o; i++) {
                const ptrdiff_t d = w->seen[i];
                const double *a = w->a + d * w->D * LANES;
                double inner[LANES];
                EACH_LANE inner[l] = w->b[d * LANES + l] - 0.5 * a[d * LANES + l] * z[d];
                for (ptrdiff_t p = 0; p < i; p++) {
                    const double *v = a + w->seen[p] * LANES, value = z[w->seen[p]];
                    EACH_LANE inner[l] -= v[l] * value;
                }
                EACH_LANE total[l] += inner[l] * z[d];
            }
            for (ptrdiff_t l = 0; l < lanes; l++) out[n * ld + l] = total[l];
        }
    }
}

/* Shares (LANES,) of a row, without the smallest ones; returns whether any are left. */
WITHIN int shares_of(const double *shares, double least, ptrdiff_t lanes, double *restrict out) {
    int any = 0;
    EACH_LANE out[l] = 0.0;
    for (ptrdiff_t l = 0; l < lanes; l++) {
        out[l] = shares[l] > least ? shares[l] : 0.0;
        any |= out[l] != 0.0;
    }
    return any;
}

/* sums (P, LANES) of completed rows times their shares (n, ld), for `missing_sums`. */
MULTIVERSION static void sums_of_lanes(Lanes *w, const Rows *rows, const double *shares, ptrdiff_t ld,
                                       const double *least, const double *ridge, const double *each,
                                       ptrdiff_t lanes, int linear, ptrdiff_t P) {
    const ptrdiff_t D = w->D;
    double *restrict sums = w->sums;
    for (ptrdiff_t i = 0; i < P * LANES; i++) sums[i] = 0.0;
    for (ptrdiff_t g = 0; g < rows->G; g++) {
        double mass[LANES] = {0}, share[LANES], log_det[LANES], entropy[LANES];
        int any = 0;
        for (ptrdiff_t n = rows->starts[g]; n < rows->starts[g + 1]; n++) {
            any |= shares_of(shares + n * ld, least[n], lanes, share);
            EACH_LANE mass[l] += share[l];
        }
        if (!any) continue;
        enter(w, rows->missing + g * D);
        factorise(w, log_det);
        EACH_LANE log_det[l] = mass[l] != 0 ? log_det[l] : 0.0;
        for (ptrdiff_t i = 0; i < w->m; i++) {
            EACH_LANE w->pivot[i * LANES + l] = mass[l] != 0 ? w->pivot[i * LANES + l] : 0.0;
            for (ptrdiff_t j = 0; j < i; j++) {
                double *root = w->root + (i * w->m + j) * LANES;
                EACH_LANE root[l] = mass[l] != 0 ? root[l] : 0.0;
            }
        }
        for (ptrdiff_t n = rows->starts[g]; n < rows->starts[g + 1]; n++) {
            if (!shares_of(shares + n * ld, least[n], lanes, share)) continue;
            solve(w, rows->z + n * D);
            complete(w, rows->z + n * D);
            double *restrict out = sums;
            for (ptrdiff_t i = 0; i < D; i++) {
                double part[LANES];
                EACH_LANE part[l] = share[l] * w->x[i * LANES + l];
                for (ptrdiff_t j = i; j < D; j++, out += LANES) {
                    const double *x = w->x + j * LANES;
                    EACH_LANE out[l] += part[l] * x[l];
                }
            }
            for (ptrdiff_t i = 0; linear && i < D; i++, out += LANES)
                EACH_LANE out[l] += share[l] * w->x[i * LANES + l];
        }
        invert(w);
        add_spread(w, ridge, mass, sums);
        entropies(w, log_det, each, entropy);
        EACH_LANE {
            sums[(P - 3) * LANES + l] += mass[l];
            sums[(P - 2) * LANES + l] += mass[l] * entropy[l];
            sums[(P - 1) * LANES + l] += mass[l];
        }
    }
}

/* Rows completed under the first lane alone, for `complete_rows`; spread (G, P) and entropy (G,) of patterns. */
MULTIVERSION static void completed_by_lane(Lanes *w, const Rows *rows, const double *ridge, const double *each,
                                           double *x, double *spread, double *entropy, ptrdiff_t P) {
    for (ptrdiff_t g = 0; g < rows->G; g++) {
        double log_det[LANES], own[LANES], mass[LANES];
        enter(w, rows->missing + g * w->D);
        factorise(w, log_det);
        entropies(w, log_det, each, own);
        entropy[g] = own[0];
        for (ptrdiff_t n = rows->starts[g]; n < rows->starts[g + 1]; n++) {
            solve(w, rows->z + n * w->D);
            complete(w, rows->z + n * w->D);
            for (ptrdiff_t d = 0; d < w->D; d++) x[n * w->D + d] = w->x[d * LANES];
        }
        for (ptrdiff_t i = 0; i < P * LANES; i++) w->sums[i] = 0.0;
        EACH_LANE mass[l] = 1.0;
        invert(w);
        add_spread(w, ridge, mass, w->sums);
        for (ptrdiff_t p = 0; p < P; p++) spread[g * P + p] = w->sums[p * LANES];
    }
}

#undef EACH_LANE
#undef WITHIN
#endif
