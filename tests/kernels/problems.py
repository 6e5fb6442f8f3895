"""Random problems for the kernels, and error bounds for their precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sklearn_bnp._kernels._responsibilities import Quadratic, local_step
from tests.reference import mixtures

# Every layout of s(x); without a quadratic part the linear part is always there.
LAYOUTS = [
    ("NONE", True),
    ("FULL", True),
    ("FULL", False),
    ("DIAG", True),
    ("DIAG", False),
    ("SPHERICAL", True),
    ("SPHERICAL", False),
]


def layout_name(layout):
    return f"{layout[0].lower()}{'' if layout[1] else '-zero-mean'}"


class Problem(NamedTuple):
    """Rows, coefficients and layout of a local step; ``features`` are the twin's, in float64."""

    x: np.ndarray
    coef: np.ndarray
    quadratic: Quadratic
    linear: bool
    features: np.ndarray


def problem(seed, n, K, D=4, layout=("FULL", True), dtype=np.float64, scale=1.0):
    """A random problem whose log weights differ by about ``scale`` within a row."""
    rng = np.random.default_rng(seed)
    quadratic, linear = layout
    x = rng.standard_normal((n, D)).astype(dtype)
    P = mixtures.n_statistics(D, quadratic, linear)
    coef = (scale * rng.standard_normal((K, P)) / np.sqrt(P)).astype(dtype)
    features = mixtures.statistics(x, quadratic, linear)
    return Problem(x, coef, Quadratic[quadratic], linear, features)


def integer_problem(seed, n, K, D=3, layout=("FULL", True), dtype=np.float64):
    """Small integers: log weights are exact in any precision, and ties are real ties."""
    rng = np.random.default_rng(seed)
    quadratic, linear = layout
    x = rng.integers(-2, 3, size=(n, D)).astype(dtype)
    P = mixtures.n_statistics(D, quadratic, linear)
    coef = rng.integers(-1, 2, size=(K, P)).astype(dtype)
    return Problem(x, coef, Quadratic[quadratic], linear, mixtures.statistics(x, quadratic, linear))


class Step(NamedTuple):
    """What the local step writes."""

    resp: np.ndarray
    stats: np.ndarray
    entropy: np.ndarray
    log_norm: np.ndarray


def run_local_step(p, mass=None, weight=None, n_nonzero=None, n_threads=1):
    """The kernel on a problem, into arrays that hold nan before."""
    (n, _), (K, P) = p.x.shape, p.coef.shape
    out = Step(
        np.full((n, K), np.nan, dtype=p.x.dtype), np.full((K, P), np.nan), np.full(K, np.nan),
        np.full(n, np.nan),
    )  # fmt: skip
    L = K if n_nonzero is None else n_nonzero
    local_step(p.x, p.coef, p.quadratic, p.linear, mass, weight, *out, L, n_threads)
    return out


def weight_error(p):
    """How wrong log weights may be: the bound of a sum of P products, and of the rounded features.

    ``gamma_P sum_p |c_p| |s_p|`` with ``gamma_P = (P + 2) eps``; Higham (2002), Sec. 3.1. The
    subtraction of the row's largest and the logarithm add a few units more.
    """
    eps = np.finfo(p.x.dtype).eps
    magnitude = (np.abs(p.features) @ np.abs(p.coef).T).max(initial=0.0)
    return eps * ((p.coef.shape[1] + 4) * magnitude + 8)
