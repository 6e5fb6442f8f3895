"""The likelihood of rows whose columns come in blocks.

Design note
-----------
(a) Given the component, blocks are independent: evidence, expected log likelihoods and predictive
    densities are sums over blocks. Their statistics stand side by side, except the last one of each, the
    count, which they share: ``s(x) = [s_1(x), s_2(x), ..., 1]``. A block is given its own statistics
    followed by the count, and so knows nothing of the other blocks.
(b) The prepared rows of blocks stand side by side too, as one array that the engine cuts and joins like
    any other.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from .base import Likelihood
from .row_kernels import TableRows


@contextmanager
def says_which_block(name, columns):
    """Context in which errors name the block: its model knows only its own columns."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"In block {name!r}, whose X is X[:, {columns.tolist()}]: {error}"
        ) from error


class Block(NamedTuple):
    """A block of columns.

    Attributes
    ----------
    name : str
        Name of the block.
    likelihood : Likelihood
        Likelihood of its columns.
    columns : ndarray of int, shape (D_b,)
        Its columns of the data.
    z, s : slice
        Its columns of prepared rows, and its statistics without the count.
    """

    name: str
    likelihood: Likelihood
    columns: np.ndarray
    z: slice
    s: slice

    def rows(self, z):
        """Prepared rows of the block, C-contiguous."""
        return np.ascontiguousarray(z[:, self.z])

    def statistics(self, s):
        """Statistics (..., P_b) of the block, count included, from those of all blocks (..., P)."""
        return np.concatenate([s[..., self.s], s[..., -1:]], axis=-1)

    def coefficients(self, coef):
        """Coefficients (K, P_b) of the block from those of all blocks; 0 for the count."""
        out = np.zeros((len(coef), self.s.stop - self.s.start + 1))
        out[:, :-1] = coef[:, self.s]
        return out


class ColumnLikelihood(TableRows, Likelihood):
    """``s(x) = [s_1(x), ..., s_B(x), 1]``; a prior is the tuple of the blocks' priors.

    Parameters
    ----------
    blocks : list of tuple (name, Likelihood, columns)
        The blocks, in the order of their statistics.
    n_columns : int
        Number of columns of the data.
    complete : list of Block, or None
        The blocks for complete rows of which these were made.
    """

    def __init__(self, blocks, n_columns, *, complete=None):
        self.blocks, self.n_columns, self._complete = [], n_columns, complete
        z = s = 0
        for name, likelihood, columns in blocks:
            z_end, s_end = z + likelihood.n_features, s + likelihood.n_statistics - 1
            block = Block(name, likelihood, columns, slice(z, z_end), slice(s, s_end))
            self.blocks.append(block)
            z, s = z_end, s_end
        self.n_features, self._n_statistics = z, s + 1
        self.prior = tuple(b.likelihood.prior for b in self.blocks)
        self.adapts_prior = any(b.likelihood.adapts_prior for b in self.blocks)
        self.may_be_nan = (
            "means_",  # not all blocks have means
            *(f"blocks_.{b.name}.{own}" for b in self.blocks for own in b.likelihood.may_be_nan),
        )
        self.may_be_far_out = any(b.likelihood.may_be_far_out for b in self.blocks)

    @property
    def n_statistics(self):
        """Length P of s(x)."""
        return self._n_statistics

    # ------------------------------------------------------------------ missing entries

    @property
    def has_missing(self):
        return all(b.likelihood.has_missing for b in self.blocks)

    @property
    def allows_missing(self):
        return all(b.likelihood.has_missing or b.likelihood.allows_missing for b in self.blocks)

    @property
    def imputes(self):
        return any(b.likelihood.imputes for b in self.blocks)

    @property
    def standardised(self):
        return self._of_features("standardised")

    @property
    def spread_of_means(self):
        return self._of_features("spread_of_means")

    def _of_features(self, name):
        """An attribute of blocks, for each of their features."""
        each = [(getattr(b.likelihood, name), b.likelihood.n_features) for b in self.blocks]
        return np.concatenate([np.broadcast_to(own, size) for own, size in each])

    @property
    def copies_tell(self):
        return all(b.likelihood.copies_tell for b in self.blocks)

    def with_missing(self):
        """The likelihood of these blocks for rows with missing entries; see `Likelihood`."""
        blocks = []
        for b in self.blocks:
            with says_which_block(b.name, b.columns):
                own = b.likelihood if b.likelihood.has_missing else b.likelihood.with_missing()
            blocks.append((b.name, own, b.columns))
        return ColumnLikelihood(blocks, self.n_columns, complete=self.blocks)

    def from_complete(self, s):
        """Statistics of the likelihood that this one was made of as its own; see `Likelihood`."""
        out = np.zeros((len(s), self.n_statistics))
        for b, before in zip(self.blocks, self._complete, strict=True):
            own = before.statistics(s)
            if b.likelihood is not before.likelihood:
                own = b.likelihood.from_complete(own)
            out[:, b.s], out[:, -1] = own[:, :-1], own[:, -1]
        return out

    def of_vectors(self):
        """The blocks with prepared rows that are vectors; see `Likelihood`."""
        own = [b.likelihood.of_vectors() for b in self.blocks]
        if all(one is b.likelihood for one, b in zip(own, self.blocks, strict=True)):
            return self
        blocks = [(b.name, one, b.columns) for one, b in zip(own, self.blocks, strict=True)]
        return ColumnLikelihood(blocks, self.n_columns)

    def spanning(self, prior, others):
        """The blocks for all data; see `Likelihood`."""
        found = [
            b.likelihood.spanning(p, [other.blocks[i].likelihood for other in others])
            for i, (b, p) in enumerate(zip(self.blocks, prior, strict=True))
        ]
        if all(own is b.likelihood for (own, _), b in zip(found, self.blocks, strict=True)):
            return self, prior
        blocks = [(b.name, own, b.columns) for (own, _), b in zip(found, self.blocks, strict=True)]
        return ColumnLikelihood(blocks, self.n_columns), tuple(p for _, p in found)

    def imputed(self, prior, s, z):
        """Rows whose missing entries are as expected under a component; see `Likelihood`."""
        return np.hstack(
            [b.likelihood.imputed(p, own, b.rows(z)) for b, p, own in self._each(prior, s)]
        )

    # ------------------------------------------------------------------ rows

    def _each(self, prior, s):
        """Triples of a block, its prior and its statistics."""
        return [(b, p, b.statistics(s)) for b, p in zip(self.blocks, prior, strict=True)]

    def prepare(self, x):
        parts = []
        for b in self.blocks:
            with says_which_block(b.name, b.columns):
                parts.append(b.likelihood.prepare(x[:, b.columns]))
        return np.hstack(parts)

    def prepare_means(self, means):
        parts = []
        for b in self.blocks:
            with says_which_block(b.name, b.columns):
                parts.append(b.likelihood.prepare_means(means[:, b.columns]))
        return np.hstack(parts)

    def features(self, z):
        out = np.ones((len(z), self.n_statistics), dtype=z.dtype)
        for b in self.blocks:
            out[:, b.s] = b.likelihood.features(b.rows(z))[:, :-1]
        return out

    def log_table(self, coef, z):
        out = np.tile(coef[:, -1].astype(z.dtype), (len(z), 1))
        for b in self.blocks:
            out += b.likelihood.log_table(b.coefficients(coef), b.rows(z))
        return out

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        for b in self.blocks:
            own = np.empty((len(s), b.likelihood.n_statistics))
            own_coef = None if coef is None else b.coefficients(coef)
            b.likelihood.summarise(b.rows(z), shares, own, coef=own_coef, sparse=sparse)
            s[:, b.s], s[:, -1] = own[:, :-1], own[:, -1]

    def seeding_points(self, prior, s, z, *, whiten=True):
        """The blocks' points side by side, because their divergences add up."""
        return np.hstack(
            [
                b.likelihood.seeding_points(p, own, b.rows(z), whiten=whiten)
                for b, p, own in self._each(prior, s)
            ]
        )

    def log_predictive(self, prior, s, z):
        return sum(
            b.likelihood.log_predictive(p, own, b.rows(z)) for b, p, own in self._each(prior, s)
        )

    def log_probability(self, prior, s, z):
        each = self._each(prior, s[np.newaxis])
        return sum(b.likelihood.log_probability(p, own[0], b.rows(z)) for b, p, own in each)

    @property
    def leaves_out(self):
        return all(b.likelihood.leaves_out for b in self.blocks)

    def leaving_out_work(self, z):
        return sum(b.likelihood.leaving_out_work(b.rows(z)) for b in self.blocks)

    def log_predictive_without(self, prior, s, z, shares):
        return sum(
            b.likelihood.log_predictive_without(p, own, b.rows(z), shares)
            for b, p, own in self._each(prior, s)
        )

    def log_base(self, x):
        return sum(b.likelihood.log_base(x[:, b.columns]) for b in self.blocks)

    # ------------------------------------------------------------------ components

    def evidence(self, prior, s):
        return sum(b.likelihood.evidence(p, own) for b, p, own in self._each(prior, s))

    def coefficients(self, prior, s):
        out = np.zeros(s.shape)
        for b, p, own in self._each(prior, s):
            coef = b.likelihood.coefficients(p, own)
            out[:, b.s] = coef[:, :-1]
            out[:, -1] += coef[:, -1]
        return out

    def update_prior(self, prior, s, n_iter):
        if not self.adapts_prior:
            return prior
        return tuple(
            b.likelihood.update_prior(p, own, n_iter) for b, p, own in self._each(prior, s)
        )

    def prior_distance(self, old, new):
        return max(
            b.likelihood.prior_distance(o, n) for b, o, n in zip(self.blocks, old, new, strict=True)
        )

    def attributes(self, prior, s):
        """Attributes of blocks by their names, and means of all columns, NaN where there are none."""
        blocks, means = {}, np.full((len(s), self.n_columns), np.nan)
        for b, p, own in self._each(prior, s):
            blocks[b.name] = b.likelihood.attributes(p, own)
            if "means_" in blocks[b.name]:
                means[:, b.columns] = blocks[b.name]["means_"]
        return {"means_": means, "blocks_": blocks}

    def expected_rows(self, attributes, shares):
        out = np.full((len(shares), self.n_columns), np.nan)
        for b in self.blocks:
            out[:, b.columns] = b.likelihood.expected_rows(attributes["blocks_"][b.name], shares)
        return out

    def sample(self, attributes, labels, rng):
        out = np.full((len(labels), self.n_columns), np.nan)
        for b in self.blocks:
            out[:, b.columns] = b.likelihood.sample(attributes["blocks_"][b.name], labels, rng)
        return out
