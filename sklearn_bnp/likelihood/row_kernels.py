"""Row kernels: the local step and the summary step of prepared rows, in three layouts.

Design note
-----------
(a) Given coefficients, nothing depends on the family but s(x): the log weight of a row under a component
    is ``coef[k] @ s(x)``, shares are the softmax of log weights, and statistics are sums of s(x). So
    the steps over rows are written once for each layout of rows, and not once for each family.
(b) `DenseRows`: rows are an array, and s(x) is one of the layouts of `_kernels._responsibilities`, which
    makes log weights, shares and statistics in one go. A `Likelihood` has this layout unless it derives
    from another one.
(c) `TableRows`: the family makes a table of log weights itself, for rows whose s(x) no kernel knows
    (several blocks of columns, rows with missing entries); shares are made of the table.
(d) `SparseRows`: ``s(x) = [x, 1]``, and rows may be a `csr_array`. Zeros add nothing to the statistics, and
    nothing but a constant to the log weights, so rows stay sparse from the user's CSR to the sums.
(e) Rows in float32 are worked on in float32, but not if a component is narrow, or far from the origin in
    units of its own width. Its variance is a small difference of large sums, and so is the log weight of
    a row. With sums in float32 the objective would jump by nats. Such components have large coefficients.
    If there is one, the steps are made in float64, block by block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._kernels._responsibilities import Quadratic, local_step, share_out, statistics, summarise
from .._kernels._sparse_rows import sparse_shares, sparse_summary
from .._kernels.threads import threads_for_shares
from ..inputs.types import Floats

# Rows that are converted at a time, between single and double precision.
_CONVERTED_ROWS = 2**16
# The largest coefficient with which float32 rows are worked on in float32, that of a standard deviation of
# about .03 of that of all rows. The objective is then off by less than a tenth of a nat for a million rows.
_MOST_IN_FLOAT32 = 500.0
# Shares below the largest of the row times this are cleared: they are below the last bit of a sum.
_LEAST_SHARE = 1e-16
# A product with an entry of a sparse row takes as long as so many with those of a dense one.
_PRODUCTS_PER_ENTRY = 5


class Sharing(NamedTuple):
    """Factors of rows that are shared among components, arrays to be filled, and how it is to be done.

    Parameters
    ----------
    resp : ndarray, shape (n, K)
        Filled with the shares.
    n_nonzero, n_threads : int
        As in `RowKernels.local_step`, but ``n_nonzero`` is K if there is no limit.
    floor : float
        Shares below the largest of the row times this are cleared.
    mass, weight : ndarray, shape (n,), or None
        As in `RowKernels.local_step`.
    s, entropy, log_norm : ndarray, shapes (K, P), (K,) and (n,), or None
        Filled as in `RowKernels.local_step`, unless None.
    """

    resp: Any
    n_nonzero: int
    n_threads: int
    floor: float = _LEAST_SHARE
    mass: Any = None
    weight: Any = None
    s: Any = None
    entropy: Any = None
    log_norm: Any = None


class RowKernels(ABC):
    """The steps over prepared rows that a family of likelihoods needs beside its mathematics.

    A layout has `features`, `log_table`, `summarise` and `_share`; the others are made of these.

    Attributes
    ----------
    n_statistics : int
        Length P of s(x).
    """

    n_statistics: int

    @abstractmethod
    def features(self, z):
        """Statistics of single rows.

        Parameters
        ----------
        z : ndarray or csr_array, shape (n, D')
            Prepared rows.

        Returns
        -------
        features : ndarray, shape (n, P)
            The rows s(x), in the precision of ``z``.
        """

    @abstractmethod
    def log_table(self, coef, z):
        """Log weights of rows.

        Parameters
        ----------
        coef : ndarray, shape (K, P)
            Coefficients of s(x), one row a component.
        z : ndarray or csr_array, shape (n, D')
            Prepared rows.

        Returns
        -------
        table : ndarray, shape (n, K)
            ``s(x) @ coef.T``, C-contiguous and in the precision of ``z``.
        """

    @abstractmethod
    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        """Sum the statistics of rows that belong to components in given shares.

        Parameters
        ----------
        z : ndarray or csr_array, shape (n, D')
            Prepared rows.
        shares : ndarray, shape (n, J)
            How much of each row belongs to each of J components, sample weights included.
        s : ndarray, shape (J, P)
            Set to ``shares.T @ features(z)``.
        coef : ndarray, shape (J, P), or None
            Coefficients with which the shares were found. Families that impute missing entries need
            them; without them entries are imputed under one distribution of all the data.
        sparse : bool
            Whether most shares are 0, which is a hint for speed.
        """

    @abstractmethod
    def _share(self, coef, z, how):
        """Share rows among components, and fill the arrays of ``how``, a `Sharing`."""

    def local_step(
        self,
        coef: Any,
        z: Any,
        mass: Any,
        weight: Any,
        s: Any,
        entropy: Any,
        *,
        n_nonzero: int | None = None,
        n_threads: int = 1,
        log_norm: Any = None,
    ) -> Any:
        """Share rows among components, and sum their statistics and the entropies of the shares.

        Parameters
        ----------
        coef : ndarray, shape (K, P)
            The log posterior weight of a row is ``coef[k] @ s(x)``.
        z : ndarray or csr_array, shape (n, D')
            Prepared rows.
        mass : ndarray, shape (n,), or None
            How much of each row is shared out. It is 1 if None; in a restricted step it is the
            responsibility of the components that are replaced (Hughes 2016, 4.12).
        weight : ndarray, shape (n,), or None
            Sample weights, 1 if None.
        s, entropy : ndarray, shape (K, P) and (K,), or None
            Set to the statistics and to the entropies of the shares.
        n_nonzero : int or None
            The L of L-sparse responsibilities (Alg. 7.2); None for dense ones.
        n_threads : int
            Number of threads; no bit of the result depends on it.
        log_norm : ndarray, shape (n,), or None
            Set to the logarithm of the sum of each row's weights.

        Returns
        -------
        resp : ndarray, shape (n, K)
            Shares of each row, which sum to 1, in the precision of ``z``.
        """
        resp = np.empty((z.shape[0], len(coef)), dtype=z.dtype)
        n_nonzero = len(coef) if n_nonzero is None else n_nonzero
        how = Sharing(
            resp, n_nonzero, n_threads, mass=mass, weight=weight, s=s, entropy=entropy,
            log_norm=log_norm,
        )  # fmt: skip
        self._share(coef, z, how)
        return resp

    def likelihood_table(self, coef, z, floor, n_threads=1):
        """Likelihoods of rows, as forward-backward needs them.

        Parameters
        ----------
        coef : ndarray, shape (K, P)
            Coefficients of s(x).
        z : ndarray or csr_array, shape (n, D')
            Prepared rows.
        floor : float
            Least value in the table.
        n_threads : int
            Number of threads.

        Returns
        -------
        table : ndarray of float64, shape (n, K)
            Likelihoods, each row divided by its sum.
        log_norm : ndarray, shape (n,)
            Logarithms of the sums.
        """
        out, log_norm = np.empty((z.shape[0], len(coef)), dtype=z.dtype), np.empty(z.shape[0])
        self._share(coef, z, Sharing(out, len(coef), n_threads, floor, log_norm=log_norm))
        return np.maximum(out, floor, dtype=np.float64), log_norm


class DenseRows(RowKernels):
    """Rows are an array, and s(x) is one of the layouts that the kernels know.

    Attributes
    ----------
    n_features : int
        Columns D' of prepared rows.
    quadratic : Quadratic
        The quadratic part of s(x): none, ``z * z``, ``|z|^2`` or the upper triangle of ``z z'``.
    linear : bool
        Whether s(x) has z itself.
    """

    n_features: int
    quadratic = Quadratic.NONE
    linear = True

    @property
    def n_kernel_columns(self) -> int:
        """Columns of `kernel_rows`."""
        return self.n_features

    def kernel_rows(self, z: Any) -> Any:
        """Rows as the kernels take them, which compute s(x) from these.

        Parameters
        ----------
        z : ndarray, shape (n, n_features)
            Prepared rows.

        Returns
        -------
        rows : ndarray, shape (n, n_kernel_columns)
            The prepared rows themselves, unless a family needs other columns.
        """
        return z

    def features(self, z: Any) -> Floats:
        out = np.empty((len(z), self.n_statistics), dtype=z.dtype)
        statistics(self.kernel_rows(z), self.quadratic, self.linear, out)
        return out

    def needs_double(self, coef: Any) -> bool:
        """Whether float32 is too rough for components with these coefficients.

        Parameters
        ----------
        coef : ndarray, shape (K, P), or None
            Coefficients of s(x). If they are not known, it may be too rough.

        Returns
        -------
        needed : bool
            Whether steps over float32 rows have to be made in float64.
        """
        if coef is None:
            return True
        size = np.abs(coef).max(axis=0, initial=0.0)
        size[-1] /= self.n_features
        return bool(size.max() > _MOST_IN_FLOAT32)

    def _in_precision(self, coef: Any, z: Any) -> Any:
        """Rows ``z`` in the precision in which they are to be worked on."""
        if z.dtype != np.float64 and self.needs_double(coef):
            return z.astype(np.float64)
        return z

    def log_table(self, coef: Any, z: Any) -> Floats:
        own = self._in_precision(coef, z)
        table = self.features(own) @ coef.T.astype(own.dtype, copy=False)
        return table.astype(z.dtype, copy=False)

    def summarise(
        self, z: Any, shares: Any, s: Any, *, coef: Any = None, sparse: bool = False
    ) -> Any:
        if len(z) > _CONVERTED_ROWS and self._in_precision(coef, z[:1]).dtype != z.dtype:
            s[...], own = 0.0, np.empty_like(s)
            for lo in range(0, len(z), _CONVERTED_ROWS):
                rows = slice(lo, lo + _CONVERTED_ROWS)
                self.summarise(z[rows], shares[rows], own, coef=coef, sparse=sparse)
                s += own
            return
        z = self._in_precision(coef, z)
        shares = np.ascontiguousarray(shares, dtype=z.dtype)
        summarise(self.kernel_rows(z), shares, self.quadratic, self.linear, s, sparse)

    def _share(self, coef, z, how):
        own = self._in_precision(coef, z)
        if own is not z:
            wide = np.empty(how.resp.shape)
            self._share(coef, own, how._replace(resp=wide))
            how.resp[...] = wide
            return
        local_step(
            self.kernel_rows(z), np.ascontiguousarray(coef, dtype=z.dtype), self.quadratic,
            self.linear, how.mass, how.weight, how.resp, how.s, how.entropy, how.log_norm,
            how.n_nonzero, _threads(how, coef.shape[1]), how.floor,
        )  # fmt: skip

    def likelihood_table(
        self, coef: Any, z: Any, floor: float, n_threads: int = 1
    ) -> tuple[Floats, Floats]:
        table, log_norm = np.empty((len(z), len(coef))), np.empty(len(z))
        # no second table, in single precision, is held
        for lo in range(0, len(z), _CONVERTED_ROWS):
            rows = slice(lo, lo + _CONVERTED_ROWS)
            own = table[rows]
            if own.dtype != z.dtype:
                own = np.empty(own.shape, dtype=z.dtype)
            how = Sharing(own, len(coef), n_threads, floor, log_norm=log_norm[rows])
            self._share(coef, z[rows], how)
            np.maximum(own, floor, out=table[rows])
        return table, log_norm


class TableRows(RowKernels):
    """The family makes a table of log weights, of which shares are made.

    It has to define `features`, `log_table`, `summarise` and ``n_statistics``.
    """

    # A `Likelihood` inherits from `DenseRows` too, whose methods would be wrong here.
    features, log_table = RowKernels.features, RowKernels.log_table
    summarise, likelihood_table = RowKernels.summarise, RowKernels.likelihood_table

    def _share(self, coef, z, how):
        share_table(self.log_table(coef, z), how)
        if how.s is not None:
            self.summarise(z, weighted_shares(how.resp, how.mass, how.weight), how.s, coef=coef)


class SparseRows(DenseRows):
    """Rows of counts, ``s(x) = [x, 1]``: an array, or a `csr_array` that is never made dense."""

    def needs_double(self, coef):
        """See `DenseRows`: never, as counts are in float64, and bits have no large log weights."""
        return False

    def features(self, z):
        return super().features(z.toarray() if issparse(z) else z)

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        if not issparse(z):
            super().summarise(z, shares, s, coef=coef, sparse=sparse)
            return
        shares = np.ascontiguousarray(shares, dtype=z.dtype)
        sparse_summary(*_arrays(z), shares, None, s, 1)

    def _share(self, coef, z, how):
        if not issparse(z):
            super()._share(coef, z, how)
            return
        rows, coef = _arrays(z), np.ascontiguousarray(coef, dtype=z.dtype)
        n_threads = _threads(how, _PRODUCTS_PER_ENTRY * z.nnz / max(1, len(how.resp)))
        sparse_shares(
            *rows, coef, how.mass, how.weight, how.resp, how.entropy, how.log_norm, how.n_nonzero,
            n_threads, how.floor,
        )  # fmt: skip
        if how.s is not None:
            factors = [factor for factor in (how.mass, how.weight) if factor is not None]
            scale = np.prod(factors, axis=0) if factors else None
            sparse_summary(*rows, how.resp, scale, how.s, n_threads)

    def likelihood_table(self, coef, z, floor, n_threads=1):
        layout = RowKernels if issparse(z) else DenseRows
        return layout.likelihood_table(self, coef, z, floor, n_threads)


def share_table(table, how):
    """Share rows among components by log weights (n, K), and fill the arrays of a `Sharing` except ``s``."""
    share_out(
        table, how.mass, how.weight, how.resp, how.entropy, how.log_norm, how.n_nonzero,
        _threads(how, 0), how.floor,
    )  # fmt: skip


def _threads(how, n_products):
    """Threads for the `Sharing` of rows that have so many products with the coefficients of a component.

    If statistics are wanted, these take as many products again.
    """
    n_products = n_products if how.s is None else 2 * n_products
    return threads_for_shares(*how.resp.shape, n_products, how.n_threads)


def weighted_shares(resp, mass, weight):
    """Shares (n, J) of rows that are there ``mass`` times ``weight``, each (n,) or None."""
    for factor in (mass, weight):
        if factor is not None:
            resp = resp * factor[:, np.newaxis].astype(resp.dtype, copy=False)
    return resp


def _arrays(z):
    """Sparse rows as the kernels take them."""
    return z.data, z.indices.astype(np.int32, copy=False), z.indptr.astype(np.int64, copy=False)
