/* Loops over rows of counts of which most are zero. */
#ifndef SKLEARN_BNP_SPARSE_MATH_H
#define SKLEARN_BNP_SPARSE_MATH_H

#include "vector_math.h"

#define T double
#define NAME NAME_d
#include "sparse_loops.h"
#undef T
#undef NAME

#define T float
#define NAME NAME_f
#include "sparse_loops.h"
#undef T
#undef NAME

#endif
