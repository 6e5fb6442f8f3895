"""The seam between the learner and a likelihood.

Design note
-----------
(a) An `ObservationModel` holds what a user sets and is a scikit-learn estimator so that its parameters
    can be searched over. Bound to the moments of the data it gives a `Likelihood`.
(b) A `Likelihood` is a conjugate exponential family in the data's own units: rows are prepared once
    (centred, scaled), and everything else happens on statistics. Its methods are pure
    functions of (prior, statistics), so that a candidate model costs no more than its statistics.
(c) ``E[log p(x | k)]`` must be linear in s(x), and s(x) one of the layouts of
    `_kernels._responsibilities`: then both steps are matrix products whatever the family.
(d) A prior is a value of its own, because empirical Bayes changes it while the family stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator

from .._kernels._responsibilities import (
    Quadratic,
    local_step,
    n_statistics,
    statistics,
    summarise,
)
from .limits import largest_of

# Numbers in the statistics of pairs that are worked on at a time.
_PAIR_NUMBERS = 2**16
# Rows of a table of likelihoods that are in single precision at a time, if rows are.
_TABLE_ROWS = 2**16


class ObservationModel(BaseEstimator, ABC):
    """What a user says of a likelihood and its prior."""

    @property
    def needs_covariance(self):
        """Whether `bind` wants the covariances of the columns, or their variances alone."""
        return False

    @property
    def takes_sparse(self):
        """Whether rows may be sparse: prepared rows are then a `csr_array`, which no one densifies."""
        return False

    @property
    def needs_step(self):
        """Whether `bind` wants the steps to which columns were recorded."""
        return False

    @property
    def takes_missing(self):
        """Whether entries of rows may be NaN, for what was not observed."""
        return False

    @property
    def lags(self):
        """How many rows before it a row is explained by; beyond 0 the family is for sequences alone."""
        return 0

    def for_sequences(self):
        """The model with defaults that suit rows of sequences, which are like the rows before them.

        Returns
        -------
        observation : ObservationModel
            This one, where nothing has to change.
        """
        return self

    def for_frame(self, frame, columns):
        """The model for columns of a frame, of which it takes what it wants.

        Parameters
        ----------
        frame : FrameColumns
            Asked for ``numbers(columns)`` or ``categories(columns)``.
        columns : ndarray of int
            Those that are the model's.

        Returns
        -------
        observation : ObservationModel
            This one, where nothing has to change.
        """
        frame.numbers(columns)
        return self

    @abstractmethod
    def bind(self, moments, *, streaming=False):
        """The `Likelihood` for data with these moments.

        Parameters
        ----------
        moments : Moments
            Of all the data, or of a stream's first batch.
        streaming : bool
            The moments are of a first batch, and later ones may differ: nothing may be taken for
            constant because it was so in few rows.

        Returns
        -------
        likelihood : Likelihood
            The family in the units of these data.

        Raises
        ------
        ValueError
            If a parameter does not fit the data; the message names it, its value and the remedy.
        """


class LastPrior:
    """Remembers what a function of the prior gave for the last prior that was asked about.

    The prior changes once a lap and is needed for every candidate. What is remembered is no state:
    pickles are without it.
    """

    def __init__(self):
        self._last = (None, None)

    def __call__(self, function, prior):
        """``function(prior)``."""
        last = self._last
        if last[0] is not prior:
            last = self._last = (prior, function(prior))
        return last[1]

    def __getstate__(self):
        return {"_last": (None, None)}


class Likelihood(ABC):
    """A conjugate family in the data's units. It is a value: nothing changes it once it is made.

    Attributes
    ----------
    words : bool
        Whether entries of documents are types with counts, and not rows of data.
    lags : int
        How many rows before it a row is explained by. Rows of data, except those of `sample`, are then
        lagged ones: each followed by these, the last one first.
    quadratic, linear : Quadratic, bool
        Layout of s(x), see `_kernels._responsibilities`.
    holes : bool
        Whether prepared rows may have NaN, for what was not observed.
    imputes : bool
        Whether statistics are of rows whose holes were filled in under given coefficients. Those of a
        row then depend on who explains it.
    n_features : int
        Columns of prepared rows.
    may_be_far_out : bool
        Whether the units are of other numbers than all of the rows', which may be far out in them.
    may_be_nan : tuple of str
        Names of attributes that may be NaN or infinite, as those that say again what others say, with NaN
        where there is nothing to say. A fit fails if any other is not finite. What a dict holds under a
        key has the name ``"attribute_.key"``.
    prior : object
        The prior before any empirical Bayes; an immutable value.
    adapts_prior : bool
        Whether `update_prior` may change anything.
    """

    words = False
    lags = 0
    may_be_nan = ()
    quadratic = Quadratic.NONE
    linear = True
    has_missing = imputes = may_be_far_out = False
    n_features: int
    prior: object
    adapts_prior = False

    def __deepcopy__(self, memo):
        return self  # never changed in place

    @property
    def n_statistics(self):
        """Length P of s(x)."""
        return n_statistics(self.n_kernel_columns, self.quadratic, self.linear)

    @property
    def n_kernel_columns(self):
        """Columns of `kernel_rows`."""
        return self.n_features

    def kernel_rows(self, z):
        """Prepared rows as the kernels take them, in the layout of the family."""
        return z

    def with_missing(self):
        """The same family for rows in which entries are missing.

        Returns
        -------
        likelihood : Likelihood
            With the same prior; its ``from_complete(s)`` gives statistics (K, P) of this one as its own.

        Raises
        ------
        ValueError
            If there is none in these units.
        """
        raise ValueError(
            "X has missing values (NaN), but this model was fitted to complete data and cannot do "
            "without any column. Fill them in, or leave these rows out."
        )

    @abstractmethod
    def prepare(self, x):
        """Rows (n, D) of data in internal units: C-contiguous float32 or float64."""

    def prepare_means(self, means):
        """Means (K, D) in internal units, to compare prepared rows with."""
        return self.prepare(means)

    def farthest(self, z):
        """How far out prepared rows are at most, in standard deviations of the data.

        Rows that are too far out are refused. It is 0.0 for families whose rows have no units, as counts.
        """
        return largest_of(z)

    @abstractmethod
    def evidence(self, prior, s):
        """Log marginal likelihood of each component's data, the data term of the objective.

        ``c(tau + s, nu + n) - c(tau, nu) + n h`` for statistics ``s`` (..., P); shape (...); (2.95)
        with the sign of the errata.
        """

    def union_evidence(self, prior, s, first, second):
        """Evidence (n,) of the unions of pairs of components: rows ``first`` and ``second`` of ``s``."""
        step = max(1, _PAIR_NUMBERS // s.shape[1])  # more at a time would only add memory
        parts = (slice(m, m + step) for m in range(0, max(1, len(first)), step))
        return np.concatenate([self.evidence(prior, s[first[p]] + s[second[p]]) for p in parts])

    @abstractmethod
    def coefficients(self, prior, s):
        """``E_q[log p(x | k)] = coefficients[k] @ s(x)`` under the posterior given ``s`` (K, P)."""

    @abstractmethod
    def log_predictive(self, prior, s, z):
        """Log posterior predictive density (n, K) of prepared rows, in the data's units."""

    @abstractmethod
    def seeding_points(self, prior, s, z, *, whiten=True):
        """Points (n, m) whose squared distances stand for the family's divergence.

        Seeds of new components are drawn and refined among these by k-means++ and Lloyd steps, for
        the rows ``z`` of one component with statistics ``s`` (P,). With ``whiten`` false, columns are
        compared one by one: another geometry, which finds other seeds.
        """

    def imputed(self, prior, s, z):
        """Prepared rows whose holes are as expected of a component with statistics ``s`` (P,)."""
        return z

    @abstractmethod
    def attributes(self, prior, s):
        """Fitted attributes in the data's units: a dict of arrays with K rows each."""

    @abstractmethod
    def sample(self, attributes, labels, rng):
        """Rows drawn from the components ``labels``, in the data's units.

        ``attributes`` are all that `attributes` returns.
        """

    def sample_sequence(self, attributes, labels, rng):
        """Rows of one sequence whose components are ``labels``, one after the other; as `sample`."""
        return self.sample(attributes, labels, rng)

    def features(self, z):
        """Rows s(x) (n, P) of prepared rows, in their precision."""
        out = np.empty((len(z), self.n_statistics), dtype=z.dtype)
        statistics(self.kernel_rows(z), self.quadratic, self.linear, out)
        return out

    def log_table(self, coef, z):
        """``coef @ s(x)`` of prepared rows, (n, K), C-contiguous and in the rows' precision."""
        return self.features(z) @ coef.T.astype(z.dtype, copy=False)

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        """Fill ``s`` (J, P) with the statistics of rows under given shares (n, J).

        Parameters
        ----------
        z : ndarray, shape (n, D')
        shares : ndarray, shape (n, J)
            Sample weights included.
        coef : ndarray, shape (J, P), or None
            What the shares were found with, for families that fill in what rows do not show; without
            it they go by all the data.
        sparse : bool
            Most shares are 0.
        """
        shares = np.ascontiguousarray(shares, dtype=z.dtype)
        summarise(self.kernel_rows(z), shares, self.quadratic, self.linear, s, sparse)

    def local_step(
        self, coef, z, mass, weight, s, entropy, *, n_nonzero=None, n_threads=1, log_norm=None
    ):
        """Share rows among components; returns the shares (n, K) and fills ``s`` and ``entropy``.

        Parameters
        ----------
        coef : ndarray, shape (K, P)
            Log posterior weights are ``coef[k] @ s(x)``.
        z : ndarray, shape (n, D')
            Prepared rows.
        mass : ndarray, shape (n,), or None
            What of each row is shared out: 1, or in a restricted step the responsibility of the
            components that are replaced (4.12).
        weight : ndarray, shape (n,), or None
            Sample weights.
        s, entropy : ndarray, shape (K, P) and (K,), or None
            Written to.
        n_nonzero : int or None
            The L of L-sparse shares (Alg. 7.2); dense if None.
        """
        resp = np.empty((len(z), len(coef)), dtype=z.dtype)
        local_step(
            self.kernel_rows(z), np.ascontiguousarray(coef, dtype=z.dtype), self.quadratic,
            self.linear, mass, weight, resp, s, entropy, log_norm,
            len(coef) if n_nonzero is None else n_nonzero, n_threads,
        )  # fmt: skip
        return resp

    def likelihood_table(self, coef, z, floor, n_threads=1):
        """Likelihoods (n, K) of rows, each row over its sum, and the logarithms (n,) of the sums.

        They are no less than ``floor`` times the largest of a row. Arguments as in `local_step`.
        """
        table, log_norm = np.empty((len(z), len(coef))), np.empty(len(z))
        coef = np.ascontiguousarray(coef, dtype=z.dtype)
        for lo in range(0, len(z), _TABLE_ROWS):
            rows = slice(lo, lo + _TABLE_ROWS)
            own = table[rows]
            if own.dtype != z.dtype:
                own = np.empty(own.shape, dtype=z.dtype)
            local_step(
                self.kernel_rows(z[rows]), coef, self.quadratic, self.linear, None, None, own, None,
                None, log_norm[rows], len(coef), n_threads, floor,
            )  # fmt: skip
            np.maximum(own, floor, out=table[rows])
        return table, log_norm

    def update_prior(self, prior, s, n_iter):
        """The prior after ``n_iter`` steps of empirical Bayes on statistics ``s`` (K, P)."""
        return prior

    def prior_distance(self, old, new):
        """How far a prior has moved, on a log scale; remembered failures lapse beyond 0.7."""
        return 0.0

    def log_base(self, x):
        """Log density of each row's part that no component explains; shape (n,)."""
        return np.zeros(x.shape[0])
