/* Row-wise loops of the local step that the compiler can turn into vector code.
 *
 * Design note
 * (a) Wheels are built for baseline x86-64, where these loops run 2-7 times slower than the machine
 *     allows. `MULTIVERSION` asks GCC or Clang for AVX2 and AVX-512 clones, chosen when the library
 *     is loaded; elsewhere, and with SKLEARN_BNP_NO_MULTIVERSION (see setup.py), it is empty.
 * (b) Reductions are written with LANES independent accumulators. This gives the compiler leave to
 *     vectorise without -ffast-math, and fixes the order of the sum. Rows are padded to a multiple of
 *     LANES: what is left over when K = 50 would cost as much as the rest.
 * (c) GCC may not compute both sides of `a ? b : c` unless told that nobody watches the floating-point
 *     exceptions: without -fno-trapping-math (see setup.py), which changes no value, the loop over
 *     `exp` stays scalar and the softmax takes 2.5 times as long.
 * (d) `exp` is written out, because the one in libm is not inlined. Arguments are never positive here.
 *     Range reduction x = k log 2 + f, |f| <= log(2)/2; exp(f) by a Taylor polynomial whose
 *     remainder is below half a unit in the last place (degree 13 for double, 7 for float).
 */
#ifndef SKLEARN_BNP_VECTOR_MATH_H
#define SKLEARN_BNP_VECTOR_MATH_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(SKLEARN_BNP_NO_MULTIVERSION)
#define MULTIVERSION
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define MULTIVERSION __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__clang__) && (__clang_major__ >= 16)
#define MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define MULTIVERSION
#endif

#define LANES 8
/* Log weights that leave no responsibility, however far a row is from everything. */
#define NEGLIGIBLE_d -DBL_MAX
#define NEGLIGIBLE_f -FLT_MAX

/* What the quadratic part of s(x) holds; the values are those of `_responsibilities.Quadratic`. */
enum { QUADRATIC_NONE, QUADRATIC_FULL, QUADRATIC_DIAG, QUADRATIC_SPHERICAL };

/* A vector register that is written in C, where the compiler does not find one by itself; a single
 * number for compilers without such a type. */
#if defined(__GNUC__)
typedef double pack_d __attribute__((vector_size(32), aligned(8), may_alias));
typedef float pack_f __attribute__((vector_size(32), aligned(4), may_alias));
#else
typedef double pack_d;
typedef float pack_f;
#endif

/* Rounded up, so that what comes next starts a cache line. */
static inline size_t aligned_bytes(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Pairs (row, component) with their weights, and work space; the weights are doubles or floats. */
typedef struct {
    ptrdiff_t n;                        /* pairs in the list */
    int32_t *component, *row, *sorted_row;
    ptrdiff_t ld;                       /* values between gathered rows: D + 1 and room for packs */
    ptrdiff_t batch;                    /* rows gathered at a time: 24 KB, for the first-level cache */
    ptrdiff_t *end;                     /* (K,): how many, then where they end */
    void *value, *sorted_value;
    void *z;                            /* gathered rows z, then w z, then sums (2 or D + 1, ld) */
} Pairs;

/* Lays out, at `base`, room for `capacity` pairs of K components and rows of D columns; NULL counts
 * only. Only `full` families want sums for all pairs of columns: rows may have tens of thousands.
 * Returns the bytes; none of the parts needs more than 64 bytes for its alignment. */
static inline size_t pairs_place(Pairs *p, char *base, size_t itemsize, ptrdiff_t capacity,
                                 ptrdiff_t K, ptrdiff_t D, int full) {
    const ptrdiff_t width = 32 / (ptrdiff_t)itemsize;
    /* an odd number of half cache lines: rows a power of two apart would share few sets of the cache */
    const ptrdiff_t ld = (((D + width) / width + 1) | 1) * width;
    const size_t room = capacity + 1; /* one more, for collect_pairs */
    const ptrdiff_t rows = 24 * 1024 / (2 * ld * (ptrdiff_t)itemsize);
    const ptrdiff_t batch = rows < 16 ? 16 : rows < 128 ? rows : 128;
    const size_t gathered = aligned_bytes((2 * batch + (full ? D + 4 : 2)) * ld * itemsize);
    const size_t ends = aligned_bytes(K * sizeof(ptrdiff_t));
    const size_t values = aligned_bytes(room * itemsize);
    const size_t indices = aligned_bytes(room * sizeof(int32_t));
    if (base) {
        p->n = 0;
        p->ld = ld;
        p->batch = batch;
        p->z = memset(base, 0, gathered);
        p->end = memset(base += gathered, 0, ends);
        p->value = base += ends;
        p->sorted_value = base += values;
        p->component = (int32_t *)(base += values);
        p->row = (int32_t *)(base += indices);
        p->sorted_row = (int32_t *)(base += indices);
    }
    return gathered + ends + 2 * values + 3 * indices;
}

/* exp(x) for x <= 0; below -708, where the result would be subnormal, exp(-708). */
static inline double exp_nonpositive_d(double x) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: rounds to an integer in the low bits */
    double z = x < -708.0 ? -708.0 : x;
    double t = z * 1.4426950408889634074 + shift;
    double k = t - shift;
    double f = z - k * 6.93147180369123816490e-01 - k * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * f + 1.0 / 479001600.0;
    p = p * f + 1.0 / 39916800.0;
    p = p * f + 1.0 / 3628800.0;
    p = p * f + 1.0 / 362880.0;
    p = p * f + 1.0 / 40320.0;
    p = p * f + 1.0 / 5040.0;
    p = p * f + 1.0 / 720.0;
    p = p * f + 1.0 / 120.0;
    p = p * f + 1.0 / 24.0;
    p = p * f + 1.0 / 6.0;
    p = p * f + 0.5;
    p = p * f + 1.0;
    p = p * f + 1.0;
    uint64_t bits, scale;
    memcpy(&bits, &t, sizeof bits);
    scale = (bits + 1023u) << 52;
    double s;
    memcpy(&s, &scale, sizeof s);
    return p * s;
}

/* exp(x) for x <= 0; below -87, exp(-87). */
static inline float exp_nonpositive_f(float x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23 */
    float z = x < -87.0f ? -87.0f : x;
    float t = z * 1.44269504f + shift;
    float k = t - shift;
    float f = z - k * 0.693359375f + k * 2.12194440e-4f;
    float p = 1.0f / 5040.0f;
    p = p * f + 1.0f / 720.0f;
    p = p * f + 1.0f / 120.0f;
    p = p * f + 1.0f / 24.0f;
    p = p * f + 1.0f / 6.0f;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    uint32_t bits, scale;
    memcpy(&bits, &t, sizeof bits);
    scale = (bits + 127u) << 23;
    float s;
    memcpy(&s, &scale, sizeof s);
    return p * s;
}

/* wide (size,) += partial, or = if `set`. */
MULTIVERSION static void add_wide(double *restrict wide, const float *restrict partial, ptrdiff_t size,
                                  int set) {
    if (set)
        for (ptrdiff_t i = 0; i < size; i++) wide[i] = partial[i];
    else
        for (ptrdiff_t i = 0; i < size; i++) wide[i] += partial[i];
}

/* Everything in the two headers exists once for double and once for float: T is the type, BITS the
 * integer of the same width, and NAME(f) is called f_d or f_f. */
#define NAME_d(name) name##_d
#define NAME_f(name) name##_f

#define T double
#define BITS int64_t
#define BITS_MIN INT64_MIN
#define BITS_MAX INT64_MAX
#define NAME NAME_d
#include "row_loops.h"
#include "pair_sums.h"
#undef T
#undef BITS
#undef BITS_MIN
#undef BITS_MAX
#undef NAME

#define T float
#define BITS int32_t
#define BITS_MIN INT32_MIN
#define BITS_MAX INT32_MAX
#define NAME NAME_f
#include "row_loops.h"
#include "pair_sums.h"
#undef T
#undef BITS
#undef BITS_MIN
#undef BITS_MAX
#undef NAME

#endif
