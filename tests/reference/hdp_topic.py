"""Allocation term of topic models, from the definitions: dense counts, explicit theta.

Hughes (2016), Sec. 5.1 to 5.3.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import betaln, digamma, gammaln, logsumexp, roots_jacobi

from .allocations import beta_divergence


def beta_cumulant(a, b):
    """``c_Beta`` (2.44): minus the log normaliser."""
    return -betaln(a, b)


def dirichlet_cumulant(theta):
    """``c_Dir`` (5.22): minus the log normaliser."""
    return gammaln(np.sum(theta)) - np.sum(gammaln(theta))


def stick_weights(u):
    """(5.1) and the rest: K sticks give K + 1 weights."""
    left = np.cumprod(np.concatenate([[1.0], 1.0 - np.asarray(u)]))
    return np.append(u * left[:-1], left[-1])


def moments(rho, omega):
    """``E[pi_k]``, ``E[pi_k^2]`` and ``E[log pi_k]``, each (K + 1,), of stick-breaking weights and rest."""
    a, b = rho * omega, (1.0 - rho) * omega
    square = stick_products(a * (a + 1) / omega / (omega + 1), b * (b + 1) / omega / (omega + 1))
    of_u, of_left = digamma(a) - digamma(omega), digamma(b) - digamma(omega)
    logs = np.append(of_u, 0.0) + np.concatenate([[0.0], np.cumsum(of_left)])
    return stick_weights(rho), square, logs


def stick_products(of_u, of_left):
    """``of_u_k prod_{l<k} of_left_l`` (K,), and the product of all ``of_left``."""
    left = np.cumprod(np.concatenate([[1.0], of_left]))
    return np.append(of_u * left[:-1], left[-1])


def mean_of_quadratic(s, a, spread):
    """Mean of the quadratic in x that is lnG(s) at 0 and touches lnG(s + x) at a = E[x].

    Its coefficients in x / a are found from the three conditions; ``spread`` is E[x^2] / a^2.
    """
    conditions = [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]
    of = np.linalg.solve(conditions, [gammaln(s), gammaln(s + a), a * digamma(s + a)])
    return of @ [1.0, 1.0, spread]


class HDPTopics:
    """Documents with ``pi_d ~ Dir(alpha pi)``; counts are N (D, K), theta is (D, K + 1)."""

    def __init__(self, gamma, alpha):
        self.gamma, self.alpha = gamma, alpha

    def best_theta(self, counts, rho):
        """(5.45), (5.46)."""
        padded = np.column_stack([counts, np.zeros(len(counts))])
        return padded + self.alpha * stick_weights(rho)

    def surrogate(self, n_docs, rho, omega):
        """A bound of (5.21): the quadratic through lnG(1 + 0) that touches lnG(1 + x) at the mean."""
        out = -self.divergence(rho, omega)
        mean, second, mean_log = moments(rho, omega)
        for m, m2, log in zip(mean, second, mean_log, strict=True):
            out += n_docs * (np.log(self.alpha) + log)
            out -= n_docs * mean_of_quadratic(1.0, self.alpha * m, m2 / m**2)
        return out + n_docs * gammaln(self.alpha)

    def divergence(self, rho, omega):
        """KL(q(u) || p(u))."""
        a, b = rho * omega, (1.0 - rho) * omega
        return sum(beta_divergence(x, y, 1.0, self.gamma) for x, y in zip(a, b, strict=True))

    def loose_surrogate(self, n_docs, rho, omega):
        """(5.25): a bound of (5.21)."""
        K = len(rho)
        out = n_docs * K * np.log(self.alpha)
        for k in range(1, K + 1):
            a, b = rho[k - 1] * omega[k - 1], (1.0 - rho[k - 1]) * omega[k - 1]
            log_u, log_left = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
            out += beta_cumulant(1.0, self.gamma) - beta_cumulant(a, b)
            out += (n_docs + 1.0 - a) * log_u
            out += (n_docs * (K + 1 - k) + self.gamma - b) * log_left
        return out

    def exact_top(self, n_docs, rho, omega, n_points=60):
        """(5.21) by Gauss-Jacobi quadrature over each of the K sticks: small K alone."""
        nodes = []
        out = 0.0
        for r, o in zip(rho, omega, strict=True):
            a, b = r * o, (1.0 - r) * o
            x, w = roots_jacobi(n_points, b - 1.0, a - 1.0)
            nodes.append(list(zip((1.0 + x) / 2.0, w / w.sum(), strict=True)))
            out += beta_cumulant(1.0, self.gamma) - beta_cumulant(a, b)
            out += (1.0 - a) * (digamma(a) - digamma(a + b))
            out += (self.gamma - b) * (digamma(b) - digamma(a + b))
        for grid in itertools.product(*nodes):
            u, w = zip(*grid, strict=True)
            out += n_docs * np.prod(w) * dirichlet_cumulant(self.alpha * stick_weights(np.array(u)))
        return out

    def documents(self, counts, theta, rho):
        """(5.27) for any theta."""
        prior = self.alpha * stick_weights(rho)
        out = 0.0
        for n, t in zip(counts, theta, strict=True):
            log_pi = digamma(t) - digamma(t.sum())
            out += (np.append(n, 0.0) + prior - t) @ log_pi - dirichlet_cumulant(t)
        return out

    def objective(self, counts, rho, omega, theta=None):
        """(5.20) without the entropy of the assignments, theta at its optimum unless given."""
        theta = self.best_theta(counts, rho) if theta is None else theta
        return self.surrogate(len(counts), rho, omega) + self.documents(counts, theta, rho)

    def loose_objective(self, counts, rho, omega):
        """(5.20) under (5.25), theta at its optimum."""
        theta = self.best_theta(counts, rho)
        return self.loose_surrogate(len(counts), rho, omega) + self.documents(counts, theta, rho)

    def log_prior_assignments(self, counts, n_points=60):
        """``log p(z)`` of hard counts, topics beyond K unused; quadrature over the prior of u."""
        K = counts.shape[1]
        x, w = roots_jacobi(n_points, self.gamma - 1.0, 0.0)
        nodes = list(zip((1.0 + x) / 2.0, w / w.sum(), strict=True))
        total = []
        for grid in itertools.product(nodes, repeat=K):
            u, w = zip(*grid, strict=True)
            prior = self.alpha * stick_weights(np.array(u))[:K]
            log_p = sum(dirichlet_multinomial(n, prior, self.alpha) for n in counts)
            total.append(log_p + np.log(w).sum())
        return logsumexp(total)


class LDATopics:
    """Documents with ``pi_d ~ Dir(a, ..., a)``."""

    def __init__(self, a):
        self.a = a

    def objective(self, counts):
        K = counts.shape[1]
        return sum(dirichlet_multinomial(n, np.full(K, self.a), K * self.a) for n in counts)


def dirichlet_multinomial(n, prior, total):
    """Log probability of one sequence of draws with counts n (K,); total may exceed sum(prior)."""
    out = gammaln(total) - gammaln(total + n.sum())
    return out + np.sum(gammaln(prior + n) - gammaln(prior))


def count_sums(values, indptr, a, weight):
    """Weighted sums of ``lnG(N + a_k)`` and ``psi(N + a_k)`` for each topic k."""
    out = np.zeros((2, len(a)))
    for k, (first, last) in enumerate(itertools.pairwise(indptr)):
        x = values[first:last] + a[k]
        out[:, k] = gammaln(x) @ weight[first:last], digamma(x) @ weight[first:last]
    return out


def union_gain(n, m, a, b, n_docs=None):
    """Gain of merging topics with dense counts n, m (D,) and parameters a, b of each document."""
    out = 0.0
    for x, y in zip(n, m, strict=True):
        union = gammaln(x + y + a + b) - gammaln(a + b)
        out += union - gammaln(x + a) + gammaln(a) - gammaln(y + b) + gammaln(b)
    return out
