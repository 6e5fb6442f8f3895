"""Local steps, summaries, entropies and the objective of a mixture, row by row."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def statistics(x, quadratic, linear):
    """Rows of s(x) = [quadratic part, x, 1]; ``quadratic`` is the name of the layout."""
    rows = []
    for row in np.asarray(x, dtype=float):
        parts = []
        if quadratic == "FULL":
            parts = [row[i] * row[i:] for i in range(len(row))]
        elif quadratic == "DIAG":
            parts = [row * row]
        elif quadratic == "SPHERICAL":
            parts = [[row @ row]]
        if linear or quadratic == "NONE":
            parts.append(row)
        rows.append(np.concatenate([*parts, [1.0]]))
    return np.array(rows) if rows else np.empty((0, n_statistics(x.shape[1], quadratic, linear)))


def n_statistics(D, quadratic, linear):
    """Length of s(x)."""
    size = {"NONE": 0, "FULL": D * (D + 1) // 2, "DIAG": D, "SPHERICAL": 1}[quadratic]
    return size + (D if linear or quadratic == "NONE" else 0) + 1


def keep_largest(w, n_nonzero):
    """All but the ``n_nonzero`` largest weights of a row at -inf; of equal ones the first stay.

    ``n_nonzero`` is one number, or one a row.
    """
    out = np.full_like(w, -np.inf)
    for i, (row, n) in enumerate(zip(w, np.broadcast_to(n_nonzero, len(w)), strict=True)):
        kept = np.argsort(-row, kind="stable")[:n]
        out[i, kept] = row[kept]
    return out


def responsibilities(w, n_nonzero=None):
    """Shares of each row and their log normaliser (Alg. 2.3, 7.2)."""
    if n_nonzero is not None:
        w = keep_largest(w, n_nonzero)
    log_norm = logsumexp(w, axis=1) if len(w) else np.empty(0)
    return np.exp(w - log_norm[:, np.newaxis]), log_norm


def places(resp, members, n_nonzero):
    """How many successors of the components ``members`` (columns) may share each row, as `Places` says."""
    out = []
    for row in resp:
        sharing = [k for k, share in enumerate(row) if share > 0]
        each, over = divmod(n_nonzero, len(sharing))
        own = each * sum(k in members for k in sharing)
        out.append(max(1, own + (over if np.argmax(row) in members else 0)))
    return np.array(out)


def entropies(mass, weight):
    """``-sum_n weight_n m log m`` for each column of ``mass`` (3.51)."""
    logs = np.log(np.where(mass > 0, mass, 1.0))  # 0 log 0 is 0
    return -weight @ (mass * logs)


def local_step(features, coef, mass=None, weight=None, n_nonzero=None):
    """Shares, statistics, entropies and log normalisers of the local and the summary step."""
    resp, log_norm = responsibilities(features @ coef.T, n_nonzero)
    ones = np.ones(len(features))
    weight = ones if weight is None else weight
    shared = resp * (ones if mass is None else mass)[:, np.newaxis]
    stats = (shared * weight[:, np.newaxis]).T @ features
    return resp, stats, entropies(shared, weight), log_norm


def union_entropies(resp, weight, unions):
    """Entropy of each union of columns taken as one component."""
    joined = np.column_stack([resp[:, list(members)].sum(axis=1) for members in unions])
    return entropies(joined, np.ones(len(resp)) if weight is None else weight)


def elbo_terms(family, allocation, z, resp, weight=None):
    """The objective summed over rows and components, its global factors at their optimum.

    Data term (3.25), entropy (3.29) and allocation term (3.30). The caller gives components in the
    order in which the allocation is to have them.
    """
    weight = np.ones(len(z)) if weight is None else weight
    data = 0.0
    for r in resp.T:
        q = family.posterior(z, weight * r)
        data += (weight * r) @ family.expected_log_lik(q, z) - family.divergence(q)
    return {
        "data": data,
        "entropy": entropies(resp, weight).sum(),
        "allocation": allocation.elbo(weight @ resp),
    }


def elbo(family, allocation, z, resp, weight=None):
    return sum(elbo_terms(family, allocation, z, resp, weight).values())
