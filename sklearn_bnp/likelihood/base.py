"""Observation models and likelihoods: the base classes of a family of distributions.

Design note
-----------
(a) An `ObservationModel` holds what a user sets. It is a scikit-learn estimator, so that its parameters
    can be searched over. Given the moments of the data, its `bind` returns a `Likelihood`.
(b) A `Likelihood` is a conjugate exponential family. Rows are prepared once (centred and scaled, for
    instance); everything after that happens on statistics. Its methods are pure functions of a prior
    and of statistics, so that trying another model costs no more than computing its statistics.
(c) ``E[log p(x | k)]`` must be linear in s(x). Then the steps over rows are the same for all families:
    they are the row kernels of `row_kernels.py`, which a family has by inheritance.
(d) A prior is a value of its own, because empirical Bayes changes it while the family stays.
(e) Abilities that only some families have are declared as class data. Callers ask for the declaration, never
    for the class of a family or for the presence of a method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .._kernels._responsibilities import n_statistics
from ..inputs.advice import ExplainedParameters
from ..inputs.types import Floats, Integers
from .leaving_out import change_of_evidence, pairs_with_shares
from .row_kernels import DenseRows

# Steps of empirical Bayes for one component alone.
_STEPS_ALONE = 10


class ObservationModel(ExplainedParameters, BaseEstimator, ABC):
    """Parameters of a likelihood and of its prior, as a user sets them.

    A subclass stores the arguments of ``__init__`` unchanged, as all scikit-learn estimators do, and
    defines `bind`. Its abilities are attributes of the class, or properties where they depend
    on parameters.

    Attributes
    ----------
    takes_sparse : bool
        Whether rows may be sparse. `Likelihood.prepare` is then given a `scipy.sparse.csr_array`, and
        returns one.
    allows_missing : bool
        Whether entries of rows may be NaN, which stands for a missing value. The likelihood then declares
        ``has_missing`` or ``allows_missing``.
    takes_words : bool
        Whether `HDPTopicVB` may be given counts of words without ``groups``. The likelihood then declares
        ``words``.
    zeros_say_nothing : bool
        Whether a row of zeros is equally probable under all components, as the counts of an empty text
        are. Topic models leave such rows out, and otherwise rows of which everything is missing.
    needs_covariance : bool
        Whether `bind` needs the covariances of the columns, and not only their variances.
    needs_step : bool
        Whether `bind` needs the steps to which columns were recorded.
    scales_rows : bool
        Whether rows are modelled in standard deviations of the data. A few values that are far out may then
        hide all others; if steps are needed as well, there is a warning of them.
    needs_increments : bool
        Whether `bind` needs the differences between successive rows of sequences.
    needs_codes : bool
        Whether `bind` needs the codes of categories that columns hold.
    lags : int
        How many earlier rows the density of a row depends on. A family with lags is for sequences alone.

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, ObservationModel, PoissonObservation
    >>> observation = PoissonObservation()
    >>> isinstance(observation, ObservationModel)
    True
    >>> model = DPMixtureVB(observation=observation)
    """

    takes_sparse = allows_missing = takes_words = zeros_say_nothing = False
    needs_covariance = needs_step = needs_increments = needs_codes = False
    scales_rows = True
    lags = 0

    def for_sequences(self) -> ObservationModel:
        """The model to use for sequences, in place of this one.

        Rows of a sequence are like the rows before them, for which other defaults may be better.

        Returns
        -------
        observation : ObservationModel
            This model, unless a subclass has other defaults for sequences.
        """
        return self

    def for_frame(self, frame: Any, columns: Any) -> ObservationModel:
        """The model to use for some columns of a pandas or polars frame.

        Parameters
        ----------
        frame : FrameColumns
            The frame. Its ``numbers(columns)`` says that the columns are used as numbers; its
            ``categories(columns)`` returns how many categories each of them has.
        columns : ndarray of int
            The columns that this model is for.

        Returns
        -------
        observation : ObservationModel
            This model, unless a subclass depends on the contents of the columns.
        """
        frame.numbers(columns)
        return self

    def used_columns(self, n_features: int) -> Any:
        """The columns of the data that the model uses.

        Parameters
        ----------
        n_features : int
            Columns of the data.

        Returns
        -------
        columns : ndarray of int, shape (m,), or None
            None, the default, if all of them are used.
        """
        return None

    @abstractmethod
    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood, with its prior, for data with these moments.

        Parameters
        ----------
        moments : Moments
            Moments of all the data, or of the first batch of a stream.
        streaming : bool
            Whether these are the moments of a first batch. Later batches may differ, so a column must
            not be taken for constant because it is constant in a few rows.

        Returns
        -------
        likelihood : Likelihood
            The family, scaled to these data.

        Raises
        ------
        ValueError
            If a parameter does not fit the data. The message names the parameter, its value and the
            remedy.
        """


class LastPrior:
    """A function of the prior that remembers its value for the last prior it was called with.

    The prior changes once a lap, and a function of it is needed for every candidate. The value is no part
    of the state: it is left out of pickles.
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


class Likelihood(DenseRows, ABC):
    """A conjugate exponential family, scaled to the data. Nothing changes it once it is made.

    A family defines the abstract methods below, and sets ``prior`` and ``n_features``. Its statistics are
    ``s(x) = [z, 1]`` of a prepared row z, unless it sets ``quadratic`` and ``linear``
    (``DenseRows``). A family with another layout of rows derives from it first:
    ``class MyFamily(SparseRows, Likelihood)``.

    Attributes
    ----------
    prior : object
        The prior before any empirical Bayes; an immutable value, such as a NamedTuple of arrays.
    n_features : int
        Columns of prepared rows.
    adapts_prior : bool
        Whether `update_prior` may change anything.
    adapts_late : bool
        Whether topics have to settle before `update_prior` is of use: as long as they are alike, it would
        find a prior that keeps them so. The family then has ``learning_nothing()``, which returns the same
        family with its prior as it is.
    standardised : bool or ndarray of bool, shape (n_features,)
        Whether the columns of prepared rows are in standard deviations of the data. Rows that are more than
        1e7 of them away are refused. False for columns without a scale, such as counts.
    spread_of_means : float or ndarray, shape (n_features,)
        How far from the origin a prior of means that is fixed expects them, as a standard deviation of
        prepared rows. It does not fit later rows of a stream that are much farther away. Infinite if there
        is no such prior, or if it is learned.
    copies_tell : bool
        Whether equal rows are evidence of a component, as they are in discrete data. Equal rows of
        continuous columns are copies, which have the same noise. For these it is False, and births count
        equal rows once.
    may_be_far_out : bool
        Whether even rows of the data that the family was bound to may be so far away, because the scale
        was found from other numbers than these rows. They are then checked as well.
    may_be_nan : tuple of str
        Names of attributes that may hold NaN or infinite values. A fit fails if any other attribute is
        not finite. The name of an entry of a dict is ``"attribute_.key"``.
    lags : int
        How many earlier rows the density of a row depends on. All rows but those of `sample` are then
        lagged rows: the row itself, followed by these, the last one first.
    has_missing : bool
        Whether rows may have missing entries. The family then has ``imputed(prior, s, z)``: prepared rows
        whose missing entries are as expected under a component with statistics ``s`` (P,).
    imputes : bool
        Whether statistics are those of rows whose missing entries were imputed under given
        coefficients. The statistics of a row then depend on the component that explains it.
    allows_missing : bool
        Whether the family has ``with_missing()``: the same family, with the same prior, for rows with missing
        entries, whose ``from_complete(s)`` turns statistics (K, P) of this family into its own.
    words : bool
        Whether entries of documents are word types with counts, and not rows of data. The family
        then has ``word_table(prior, s)``, the table (V, K) of ``exp E[log p(word | k)]``.
    leaves_out : bool
        Whether births may use `log_predictive_without`, when they look for new components. By default
        they may unless the family imputes: the evidence of a component with an imputed row, less that
        without the row, is not the density of the row's observed entries. A family that imputes and
        defines the method itself sets this to True. A family for which it is too slow sets it to False.
    fast_unions : bool
        Whether the family has ``union_evidence(prior, s, first, second)``, the evidence (M,) of unions of
        components ``first[m]`` and ``second[m]`` of ``s``, which is faster than `evidence` of sums.
    joins_types : bool
        Whether a family of ``words`` has ``with_one_rest(prior, types)``: the family in which all types but
        some ``types`` (U,) are one type, the last, and its prior. Searches for topics then work with few
        types.

    Examples
    --------
    The statistics of two rows of counts, of which the last one is the number of rows:

    >>> import numpy as np
    >>> from sklearn_bnp import Likelihood, PoissonObservation
    >>> from sklearn_bnp.likelihood import Moments
    >>> X = np.array([[2.0, 0.0], [1.0, 3.0]])
    >>> moments = Moments(2, np.ones(2), X.mean(axis=0), X.var(axis=0), precision=1e-16)
    >>> likelihood = PoissonObservation().bind(moments)
    >>> isinstance(likelihood, Likelihood)
    True
    >>> s = likelihood.features(likelihood.prepare(X)).sum(axis=0)
    >>> s.tolist()
    [3.0, 3.0, 2.0]
    """

    prior: object
    adapts_prior = adapts_late = False
    standardised = copies_tell = True
    spread_of_means, may_be_far_out = np.inf, False
    may_be_nan = ()
    lags = 0
    has_missing = imputes = allows_missing = False
    words = fast_unions = joins_types = False

    def __deepcopy__(self, memo):
        return self  # never changed in place

    @property
    def leaves_out(self) -> bool:
        """Whether rows may be left out of components, by default unless the family imputes."""
        return not self.imputes

    @property
    def n_statistics(self) -> int:
        """Length P of s(x).

        Returns
        -------
        n_statistics : int
            The last statistic is always 1, so that ``s[:, -1]`` are the counts of components.
        """
        return n_statistics(self.n_kernel_columns, self.quadratic, self.linear)

    # ------------------------------------------------------------------ rows

    @abstractmethod
    def prepare(self, x: Any) -> Any:
        """Rows as the family works with them.

        Parameters
        ----------
        x : ndarray or csr_array, shape (n, D)
            Rows of data, in any type of numbers.

        Returns
        -------
        z : ndarray or csr_array, shape (n, n_features)
            Prepared rows, float32 or float64 and C-contiguous.

        Raises
        ------
        ValueError
            If the family cannot explain a row.
        """

    def prepare_means(self, means: ArrayLike) -> Floats:
        """Means of components that a user gave, to be compared with prepared rows.

        Parameters
        ----------
        means : ndarray, shape (K, D)
            Means in the data's units.

        Returns
        -------
        z : ndarray, shape (K, n_features)
            Prepared means. The default is `prepare`, which suits families whose means are possible rows.
        """
        return self.prepare(means)

    def of_vectors(self) -> Likelihood:
        """The family with prepared rows that are vectors, whose differences and means make sense.

        Returns
        -------
        likelihood : Likelihood
            Its statistics are those of this family. The default is this family itself.
        """
        return self

    def spanning(self, prior: Any, others: Any) -> tuple[Likelihood, Any]:
        """The likelihood for all data of several models of this family, which are combined.

        Parameters
        ----------
        prior : object
            The prior, as this model has learned it.
        others : list of Likelihood
            Likelihoods of the other models, of the same class or of one with the same statistics.

        Returns
        -------
        likelihood : Likelihood
            It knows all values that any of them knows. The default is this likelihood itself.
        prior : object
            The prior in its terms.
        """
        return self, prior

    def log_base(self, x: Any) -> Floats:
        """The part of each row's log density that no component explains.

        Parameters
        ----------
        x : ndarray or csr_array, shape (n, D)
            Rows of data, not prepared.

        Returns
        -------
        log_base : ndarray, shape (n,)
            It is added to the scores of rows. It changes no decision and is not in the objective.
        """
        return np.zeros(x.shape[0])

    # ------------------------------------------------------------------ components

    @abstractmethod
    def evidence(self, prior: Any, s: Any) -> Floats:
        """Log marginal likelihood of the rows of each component: the data term of the objective.

        It is ``c(tau + s, nu + n) - c(tau, nu) + n h`` with the log normaliser c of the prior; Hughes (2016),
        (2.95) with the sign of the errata.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (..., P)
            Statistics of components.

        Returns
        -------
        evidence : ndarray, shape (...)
            In the data's units, with all constants; 0 for statistics that are 0.
        """

    @abstractmethod
    def coefficients(self, prior: Any, s: Any) -> Floats:
        """Coefficients of the expected log likelihood.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (K, P)
            Statistics of components.

        Returns
        -------
        coef : ndarray, shape (K, P)
            ``E_q[log p(x | k)] = coef[k] @ s(x)`` under the posterior q given ``s[k]``. It is the gradient of
            `evidence`.
        """

    @abstractmethod
    def log_predictive(self, prior: Any, s: Any, z: Any) -> Floats:
        """Log posterior predictive densities.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (K, P)
            Statistics of components.
        z : ndarray or csr_array, shape (n, n_features)
            Prepared rows.

        Returns
        -------
        log_density : ndarray, shape (n, K)
            Densities in the data's units, with the parameters of components integrated out.
        """

    @property
    def log_cell(self) -> float:
        """Log volume of the cell that a row lies in if it was recorded in steps, in the data's units.

        Returns
        -------
        log_cell : float
            0, the default, for rows that are discrete.
        """
        return 0.0

    def log_probability(self, prior: Any, s: Any, z: Any) -> Floats:
        """Log probabilities of rows under one component, of families whose ``copies_tell`` is true.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (P,)
            Statistics of the component.
        z : ndarray or csr_array, shape (n, n_features)
            Prepared rows.

        Returns
        -------
        log_probability : ndarray, shape (n,)
            How probable it is that a row is equal to each of these. The default is the predictive density
            times the volume of a cell.
        """
        return self.log_predictive(prior, s[np.newaxis], z)[:, 0] + self.log_cell

    def leaving_out_work(self, z: Any) -> int:
        """How many special functions `log_predictive_without` needs for each component.

        Births do without it where there are too many, as they cost more than products of matrices.

        Parameters
        ----------
        z : ndarray or csr_array, shape (n, n_features)
            Prepared rows.

        Returns
        -------
        work : int
            Their number; 0 if products of matrices are most of the work.
        """
        return 0

    def log_predictive_without(self, prior: Any, s: Any, z: Any, shares: Any) -> Floats:
        """Log posterior predictive densities of rows, each without what it adds to the components.

        A row is compared with the component as it would be if the row had no share in it. See
        ``leaving_out.py``.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (K, P)
            Statistics of components, which hold the rows in the given shares.
        z : ndarray or csr_array, shape (n, n_features)
            Prepared rows.
        shares : ndarray, shape (n, K)
            How much of each row each component has, weights included. Shares below 0.01 are not taken
            out.

        Returns
        -------
        log_density : ndarray, shape (n, K)
            As `log_predictive`, which it is for shares of 0. The default is right for families whose
            ``features`` of a row do not depend on the component: they do not impute.
        """
        out = self.log_predictive(prior, s, z)
        for i, k, r in pairs_with_shares(shares, self.n_statistics):
            out[i, k] += self.change_without(prior, s, k, z, i, r)
        return out

    def change_without(self, prior: Any, s: Any, k: int, z: Any, i: Integers, r: Floats) -> Floats:
        """How `log_predictive` of some pairs changes when the rows' own shares are taken out.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (K, P)
            Statistics of components.
        k : ndarray of int, shape (m,)
            The component of each pair.
        z : ndarray or csr_array, shape (n, n_features)
            Prepared rows.
        i : ndarray of int, shape (m,)
            The row of each pair; sorted.
        r : ndarray, shape (m,)
            How much of the row the component has.

        Returns
        -------
        change : ndarray, shape (m,)
            In nats. The default finds it from `evidence`; families may have closed forms.
        """
        return change_of_evidence(self, prior, s[k], z[i], r)

    @abstractmethod
    def attributes(self, prior: Any, s: Any) -> dict[str, Any]:
        """Fitted attributes of an estimator.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (K, P)
            Statistics of components.

        Returns
        -------
        attributes : dict of str -> ndarray
            Arrays in the data's units, with K rows each, by names that end in an underscore.
        """

    @abstractmethod
    def sample(self, attributes: Any, labels: Integers, rng: np.random.RandomState) -> Any:
        """Draw rows from components.

        Parameters
        ----------
        attributes : dict
            The dict that `attributes` returned.
        labels : ndarray of int, shape (n,)
            The component of each row. With ``lags``, rows are those of one sequence, in order.
        rng : RandomState
            Source of random numbers.

        Returns
        -------
        x : ndarray, shape (n, D)
            Rows in the data's units.
        """

    def expected_rows(self, attributes: Any, shares: Any) -> Any:
        """Rows to be expected of documents that have shares of several components.

        Parameters
        ----------
        attributes : dict
            The dict that `attributes` returned.
        shares : ndarray, shape (n, K)
            Shares of the components.

        Returns
        -------
        x : ndarray, shape (n, D)
            Means in the data's units, ``shares @ means_``. A family whose columns have no means overrides
            this, as that of categories does, for which it is the code of the most probable one.
        """
        return shares @ attributes["means_"]

    @abstractmethod
    def seeding_points(self, prior: Any, s: Any, z: Any, *, whiten: bool = True) -> Floats:
        """Points whose squared distances stand for the divergence of the family.

        New components are seeded by k-means++ and Lloyd steps among these points.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (P,)
            Statistics of the component that the rows are from.
        z : ndarray or csr_array, shape (n, n_features)
            Prepared rows.
        whiten : bool
            Whether the component should be about round and of unit size. If false, columns are compared
            one by one: another geometry, which finds other seeds.

        Returns
        -------
        points : ndarray, shape (n, m)
            Points without NaN, in the precision of ``z``.
        """

    # ------------------------------------------------------------------ empirical Bayes

    def update_prior(self, prior: Any, s: Any, n_iter: int) -> Any:
        """The prior after some steps of empirical Bayes.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (K, P)
            Statistics of components.
        n_iter : int
            Number of steps. No step may lower the sum of `evidence`.

        Returns
        -------
        prior : object
            The new prior; the same object if nothing changes.
        """
        return prior

    def prior_alone(self, prior: Any, s: Any) -> Any:
        """The prior that suits a component that is all there is.

        One component is compared with several under it. It differs from that of `update_prior` if new
        components could not be found under it.

        Parameters
        ----------
        prior : object
            A prior of this family.
        s : ndarray, shape (1, P)
            Statistics of the component.

        Returns
        -------
        prior : object
            A prior for which `evidence` is no lower; the same object if nothing changes.
        """
        return self.update_prior(prior, s, _STEPS_ALONE)

    def prior_distance(self, old: Any, new: Any) -> float:
        """How far a prior has moved.

        Parameters
        ----------
        old, new : object
            Priors of this family.

        Returns
        -------
        distance : float
            On a log scale. Proposals that failed are tried again once it is more than 0.7.
        """
        return 0.0
