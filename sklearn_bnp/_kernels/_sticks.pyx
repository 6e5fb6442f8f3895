"""Objectives of hierarchical Dirichlet processes as functions of the global sticks, with their slopes.

Design note
-----------
(a) A search over the sticks evaluates an objective of a few dozen numbers ten times. As some hundred
    operations on arrays it took thirty times as long as its arithmetic, and small fits spent a fifth of their
    time in it. One thread does it here, stick by stick.
(b) With phi(x) = psi(x) - log x, ``E[log u] = log rho + phi(rho omega) - phi(omega)``. The logarithm of the
    mean, which cancels against the groups' own terms, is kept apart from the rest, which is O(1 / omega).
    The terms lnG(x) and x psi(x) of the entropy of a Beta cancel to all digits when omega is 1e12, as it is
    for the last stick of a million documents. The remainder has a short asymptotic series (DLMF 5.11.1,
    5.11.2), which is used directly.
(c) The log normaliser of ``Dir(alpha pi)`` has terms lnG(alpha pi_k), whose expectations have no closed form.
    Let x be a weight times its concentration, a = E[x], and ``v = E[x^2] / a^2 - 1``. For s > 0,

        E[lnG(s + x)] <= lnG(s + a) + g_s(a) v,    g_s(a) = a psi(s + a) - lnG(s + a) + lnG(s).

    This is the expectation of the quadratic that meets ``f(x) = lnG(s + x)`` at 0 and touches it at a. The
    quadratic lies above f for all x >= 0, as the third derivative of f is negative (doc/formulas_hdp.rst has
    the proof). The other part of the log normaliser, ``-lnG(x) = log x - lnG(1 + x)``, needs E[log x], which
    is known. The first two moments of a weight are products over sticks, so that v has a closed form.
(d) Stick k raises log pi_k by 1 - rho_k, and lowers log pi of all later components, and of the rest, by
    rho_k. So slopes in the sticks come from slopes in log pi by one loop from the last stick to the first.

The objectives themselves are explained in topics/weights.py and in hmm/weights.py. These functions trust
their callers; shapes and values are checked in the Python that calls them.
"""
from libc.math cimport exp, expm1, log, log1p
from libc.stdlib cimport free, malloc

cdef extern from "special_functions.h" nogil:
    double digamma_positive(double)
    double lgamma_positive(double)
    double trigamma_positive(double)

cdef double ASYMPTOTIC = 20.0           # the next terms of the series in (b) are < 1e-15 from here on
cdef double HALF_LOG_2PIE = 1.4189385332046727418   # entropy of a standard normal variable
cdef double MOST_LOG = 700.0            # of E[x^2] / E[x]^2, beyond which it would overflow
cdef double TINY = 1e-290               # least a_k: its logarithm stays finite
cdef double LARGE = 1e30                # products in special_functions.h overflow from 1e38 on
cdef double SMALL_PART = 1e-4           # of s: for smaller a, g_s(a) is its Taylor series to 9 digits


cdef struct Remainders:
    # Functions of a Beta's parameter without their leading terms, which cancel.
    double phi              # psi(x) - log x, about -1 / 2x
    double h                # x phi'(x) = x psi'(x) - 1, about 1 / 2x
    double g                # lnG(x) - x psi(x) + x, about log(2 pi e / x) / 2; its derivative is -h


cdef struct Stick:
    # q(u) = Beta(a, b), a = rho omega and b = left omega.
    double rho, left, omega, log_rho, log_left
    Remainders of_a, of_b, of_omega
    double x, y             # E[u^2] / E[u]^2 - 1, and the same of 1 - u


cdef struct Bound:
    # The factor g_s(a) of v in (c), and its slope in log a.
    double cost, slope


cdef struct Weight:
    # A component's E[pi_k], or that of the rest, and what an objective has of it.
    double pi, log_pi
    double log_square       # of E[pi_k^2] / E[pi_k]^2 = v + 1
    double v
    double uses             # how often E[log pi_k] occurs
    double slope            # in log pi
    double cost             # minus the slope in v


cdef inline double _lgamma(double x) noexcept nogil:
    return lgamma_positive(x) if x < LARGE else (x - 0.5) * log(x) - x


cdef inline double _digamma(double x) noexcept nogil:
    return digamma_positive(x) if x < LARGE else log(x)


cdef inline double _log_expit(double x) noexcept nogil:
    return -log1p(exp(-x)) if x > 0 else x - log1p(exp(x))


cdef inline Remainders _remainders(double x) noexcept nogil:
    cdef Remainders r
    cdef double psi, i1, i2
    if x < ASYMPTOTIC:
        psi = digamma_positive(x)
        r.phi = psi - log(x)
        r.h = x * trigamma_positive(x) - 1.0
        r.g = lgamma_positive(x) - x * psi + x
        return r
    i1 = 1.0 / x
    i2 = i1 * i1
    r.phi = -i1 * (1 / 2.0 + i1 * (1 / 12.0 - i2 * (1 / 120.0 - i2 * (1 / 252.0 - i2 / 240))))
    r.h = i1 * (1 / 2.0 + i1 * (1 / 6.0 - i2 * (1 / 30.0 - i2 * (1 / 42.0 - i2 / 30))))
    r.g = i1 * (1 / 6.0 - i2 * (1 / 90.0 - i2 * (1 / 210.0 - i2 / 210)))
    r.g += HALF_LOG_2PIE - 0.5 * log(x)
    return r


cdef inline Bound _bound(double s, double a) noexcept nogil:
    """g_s(a), the integral of t psi'(s + t) from 0 to a, and its slope ``a^2 psi'(s + a)``."""
    cdef Bound out
    out.slope = a * a * trigamma_positive(s + a)
    if a < SMALL_PART * s:
        out.cost = 0.5 * a * a * trigamma_positive(s + 2 * a / 3)
    else:
        out.cost = max(0.0, a * _digamma(s + a) - _lgamma(s + a) + _lgamma(s))
    return out


cdef inline Weight* _weights_of(Stick* sticks, Py_ssize_t K) noexcept nogil:
    return <Weight*>(sticks + K)


cdef Stick* _opened(const double[::1] logit_rho, const double[::1] log_omega) except NULL:
    """Sticks (K,), and behind them the weights (K + 1,) that they make; uses, slopes and costs are 0.

    The caller frees them.
    """
    cdef Py_ssize_t k, K = logit_rho.shape[0]
    cdef double log_left = 0, log_square = 0
    cdef Stick* sticks = <Stick*>malloc(K * sizeof(Stick) + (K + 1) * sizeof(Weight))
    if sticks == NULL:
        raise MemoryError("no memory for the sticks")
    cdef Weight* weights = _weights_of(sticks, K)
    cdef Stick* q
    for k in range(K):
        q = &sticks[k]
        q.omega = exp(log_omega[k])
        q.log_rho, q.log_left = _log_expit(logit_rho[k]), _log_expit(-logit_rho[k])
        q.rho, q.left = exp(q.log_rho), exp(q.log_left)
        q.of_a, q.of_b = _remainders(q.rho * q.omega), _remainders(q.left * q.omega)
        q.of_omega = _remainders(q.omega)
        q.x, q.y = exp(-logit_rho[k]) / (q.omega + 1), exp(logit_rho[k]) / (q.omega + 1)
        weights[k].log_pi = log_left + q.log_rho
        weights[k].log_square = log_square + log1p(q.x)
        log_left += q.log_left
        log_square += log1p(q.y)
    weights[K].log_pi, weights[K].log_square = log_left, log_square
    for k in range(K + 1):
        weights[k].log_square = min(weights[k].log_square, MOST_LOG)
        weights[k].v = expm1(weights[k].log_square)
        weights[k].pi = exp(weights[k].log_pi)
        weights[k].uses = weights[k].slope = weights[k].cost = 0
    return sticks


cdef double _closed(const Stick* sticks, const Weight* weights, Py_ssize_t K, double gamma,
                    double[:, ::1] slopes) noexcept nogil:
    """Terms of q(u), and slopes in logit rho and log omega of the whole objective.

    A term of q(u_k) is ``(ones - 1) (E[log u] - log rho) + (zeros - gamma) (E[log(1 - u)] - log(1 - rho))
    - KL(q(u) || Beta(1, gamma))``, where ones is 1 and the uses of component k, and zeros is gamma and the
    uses of all that come later; (5.25).
    """
    cdef Py_ssize_t k
    cdef double value = 0, zeros = gamma + weights[K].uses, ones, in_log_a, in_log_b, each, by_x, by_y
    cdef double later = weights[K].slope, later_squares = -weights[K].cost * exp(weights[K].log_square)
    cdef const Stick* q
    for k in range(K - 1, -1, -1):
        q = &sticks[k]
        ones = 1 + weights[k].uses
        value += log(gamma) + q.log_rho + gamma * q.log_left + q.of_a.g + q.of_b.g - q.of_omega.g
        value += ones * (q.of_a.phi - q.of_omega.phi) + zeros * (q.of_b.phi - q.of_omega.phi)
        in_log_a = (ones - q.rho * q.omega) * q.of_a.h
        in_log_b = (zeros - q.left * q.omega) * q.of_b.h
        each = -weights[k].cost * exp(weights[k].log_square)
        by_x, by_y = each * q.x / (1 + q.x), later_squares * q.y / (1 + q.y)
        slopes[0, k] = (q.left * (1 + in_log_a) - q.rho * (gamma + in_log_b)
                        + q.left * weights[k].slope - q.rho * later + by_y - by_x)
        slopes[1, k] = (in_log_a + in_log_b - (ones + zeros - q.omega) * q.of_omega.h
                        - q.omega / (q.omega + 1) * (by_x + by_y))
        zeros += weights[k].uses
        later += weights[k].slope
        later_squares += each
    return value


def document_terms(
    const double[::1] logit_rho,        # IN  (K,)
    const double[::1] log_omega,        # IN  (K,)
    const double[::1] lgammas,          # IN  (K,) sums over the documents of a topic: lnG(N_dk + a_k)
    const double[::1] digammas,         # IN  (K,) psi(N_dk + a_k)
    const double[::1] using,            # IN  (K,) D_k: documents of a topic
    double n_docs,                      # IN  D
    double gamma,                       # IN
    double alpha,                       # IN
    double[:, ::1] slopes,              # OUT (3, K) in logit rho and log omega; draws from pi
):
    """F of topics/weights.py without its terms in T_d, and its slope in log alpha.

    Equivalent to ``stick_terms`` of tests/reference/sticks.py with ``uses = D``, and further ::

        sum(lgammas + using * (log(a) - gammaln(1 + a))) - D * sum(g_1(a) * v) - D * g_1(a_rest) * v_rest
    """
    cdef Py_ssize_t k, K = logit_rho.shape[0]
    cdef double value = 0, by_alpha = 0, a, draws, used = log(alpha)
    cdef Bound bound
    cdef Stick* sticks = _opened(logit_rho, log_omega)
    cdef Weight* weights = _weights_of(sticks, K)
    for k in range(K + 1):
        a = alpha * weights[k].pi
        bound = _bound(1.0, a)
        draws = 0
        if k < K:
            draws = a * digammas[k] + using[k] * (1 - a * _digamma(1 + a))
            value += lgammas[k] + using[k] * (weights[k].log_pi + used - _lgamma(1 + a))
            slopes[2, k] = max(draws, 0.0)
        weights[k].slope = draws - n_docs * bound.slope * weights[k].v
        weights[k].cost = n_docs * bound.cost
        value -= weights[k].cost * weights[k].v
        by_alpha += weights[k].slope
        weights[k].uses = n_docs
    value += _closed(sticks, weights, K, gamma, slopes)
    free(sticks)
    return value, by_alpha


def chain_terms(
    const double[::1] logit_rho,        # IN  (K,)
    const double[::1] log_omega,        # IN  (K,)
    const double[:, ::1] counts,        # IN  (K + 1, K)
    double gamma,                       # IN
    double alpha,                       # IN
    double start,                       # IN  alpha_0
    double kappa,                       # IN
    double[:, ::1] slopes,              # OUT (3, K) in logit rho and log omega; draws from pi
):
    """F of hmm/weights.py, and its slopes in the logarithms of alpha_0, alpha and kappa.

    Equivalent to ``chain_terms`` of tests/reference/sticks.py.
    """
    cdef Py_ssize_t j, k, K = logit_rho.shape[0]
    cdef double value = 0, by_start = 0, by_alpha = 0, by_kappa = 0
    cdef double a, n, concentration, times, whole, total, size, slope, drawn
    cdef Bound bound
    cdef Weight* w
    cdef Stick* sticks = _opened(logit_rho, log_omega)
    cdef Weight* weights = _weights_of(sticks, K)
    for k in range(K):
        slopes[2, k] = 0
    for j in range(K + 1):
        concentration = alpha if j else start
        whole, total, slope = concentration + (kappa if j else 0.0), 0, 0
        for k in range(K):
            n = counts[j, k]
            total += n
            if n == 0 or k == j - 1:
                continue
            a = max(concentration * weights[k].pi, TINY)
            value += _lgamma(1 + n + a) - log1p(n / a) - _lgamma(1 + a)
            drawn = a * (_digamma(1 + n + a) - _digamma(1 + a)) + n / (n + a)
            slopes[2, k] += drawn
            slope += drawn
        value += _lgamma(whole) - _lgamma(whole + total)
        size = _digamma(whole) - _digamma(whole + total)
        if j == 0:
            by_start += slope + concentration * size
        else:
            by_alpha += slope + concentration * size
            by_kappa += kappa * size
    # what the uncertainty of the weights costs: the start, then the other rows off the diagonal
    for k in range(K + 1):
        w = &weights[k]
        for j in range(2):
            concentration = alpha if j else start
            times = (K - 1 if k < K else K) if j else 1
            bound = _bound(1.0, max(concentration * w.pi, TINY))
            w.cost += times * bound.cost
            w.slope -= times * bound.slope * w.v
            if j == 0:
                by_start -= times * bound.slope * w.v
            else:
                by_alpha -= times * bound.slope * w.v
    _diagonal(sticks, weights, counts, alpha, kappa, slopes, &value, &by_alpha, &by_kappa)
    for k in range(K + 1):
        if k < K:
            weights[k].slope += slopes[2, k]
            slopes[2, k] = max(slopes[2, k], 0.0)
        value -= weights[k].cost * weights[k].v
    value += _closed(sticks, weights, K, gamma, slopes)
    free(sticks)
    return value, by_start, by_alpha, by_kappa


cdef void _diagonal(const Stick* sticks, Weight* weights, const double[:, ::1] counts, double alpha,
                    double kappa, double[:, ::1] slopes, double* value, double* by_alpha,
                    double* by_kappa) noexcept nogil:
    """Add the terms of transitions to the same state, and set the weights' uses."""
    cdef Py_ssize_t k, K = counts.shape[1]
    cdef double own, m, log_kappa, log_own, log_sum, share, deficit, before = 0, psi, rise, of_cost, drawn
    cdef Bound bound
    cdef const Stick* q
    for k in range(K):
        q = &sticks[k]
        # d_k = E[log pi_k] - log E[pi_k], which is never positive
        deficit = before + q.of_a.phi - q.of_omega.phi
        before += q.of_b.phi - q.of_omega.phi
        own, m = max(alpha * weights[k].pi, TINY), counts[k + 1, k]
        log_own = log(own) + deficit
        share, log_sum = 1, log_own
        if kappa > 0:
            log_kappa = log(kappa)
            share = exp(_log_expit(log_own - log_kappa))
            log_sum = max(log_kappa, log_own) + log1p(exp(-abs(log_own - log_kappa)))
        psi = _digamma(1 + kappa + own)
        rise = _digamma(m + kappa + own) - psi
        drawn = own * rise + share
        value[0] += _lgamma(m + kappa + own) - _lgamma(1 + kappa + own) - share * deficit + log_sum
        bound = _bound(1 + kappa, own)
        weights[k].cost += bound.cost
        weights[k].slope -= bound.slope * weights[k].v
        slopes[2, k] += drawn
        by_alpha[0] += drawn - bound.slope * weights[k].v
        # kappa in the logarithm, on the diagonal, and in its cost there
        of_cost = bound.slope / own - psi + _digamma(1 + kappa)
        by_kappa[0] += 1 - share + kappa * (rise - of_cost * weights[k].v)
        weights[k].uses = K + share
    weights[K].uses = K + 1
