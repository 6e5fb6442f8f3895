"""Dirichlet-process mixtures that find their own number of components."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple, Self

from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from ..distributed.recognition import are_chunks
from ..engine.proposal import Proposal
from ..estimator import base
from ..estimator.callbacks import FitCall
from ..estimator.observations import resolve_observation
from ..estimator.parameters import COUNT, HALF_LIFE, OF_LEARNERS, with_shared_text
from ..estimator.sample_weights import check_weights
from ..estimator.transactions import leaves_model_on_error
from ..estimator.validation import check_rows, check_units
from ..inputs.advice import has_nested, with_part
from ..inputs.batches import ArraySource, Batch
from ..inputs.moments import require_values
from ..inputs.types import Data, RandomState
from ..likelihood.base import ObservationModel
from . import setup
from .chunks import RowReader
from .predictor import MixturePredictor
from .weights import ALLOCATIONS, MixtureAllocation, allocation_from


class _Rows(NamedTuple):
    """Checked rows as one batch, and the `Reading` of a frame or None."""

    batch: Batch
    reading: object


@with_shared_text(
    components="components",
    units="rows",
    entry="row",
    heirs="those that take over its rows get new names too",
    proposals="`Birth`, `Merge`, `Delete`, `Regroup`, `Relocate` and `Oversplit`",
)
class DPMixtureVB(base.LearnerEstimator, MixturePredictor):
    """Dirichlet-process mixture model whose number of components is learned.

    It clusters rows and models their density. A fit starts from one component. It proposes to add
    components (births), to join some (merges) and to remove some (deletes). A proposal is accepted only if
    the evidence lower bound (ELBO) of the whole data rises, which is computed exactly. There are no methods
    ``aic`` and ``bic``, because the ELBO already charges for every component, and `fit` itself chooses the
    number of components by it. Parameters of the components' distribution, such as ``covariance_type``, are
    those of ``observation``.

    Parameters
    ----------
    $n_components
    observation : {"gaussian", "fixed_variance_gaussian", "bernoulli", "categorical", \
            "multinomial", "negative_binomial", "poisson"} or ObservationModel, default="gaussian"
        The likelihood: the kind of distribution that the rows of a component have. For columns of several
        kinds it is a `ColumnObservation`. Nested parameters may be set even if this is a name:
        ``set_params(observation__covariance_type="diag")``.
    allocation : {"dp", "pitman-yor", "dirichlet"} or MixtureAllocation, default="dp"
        Prior of the weights: a Dirichlet process, a Pitman-Yor process whose discount is learned, or a
        finite symmetric Dirichlet distribution. It may also be an object, such as `PitmanYorAllocation`
        with a given discount. Nested parameters may be set even if this is a name:
        ``set_params(allocation__discount=0.5)``.
    weight_concentration_prior : float, default=None
        For ``"dp"`` and ``"pitman-yor"`` the concentration gamma (1 if None); for ``"dirichlet"`` the
        parameter of each component (1 / K if None). Greater values favour more components. It must be
        None if ``allocation`` is an object, which has parameters of its own.
    $max_components
    $proposals
    $learning_method
    batch_size : int, default=None
        Number of rows in a batch. If it and ``n_batches`` are None, there are ten batches of at least 4096
        rows. It matters little for the result. A fit of a memory map holds 4096 rows at most, and sums over
        the rows of each batch; :doc:`/costs` has the formula of its memory.
    $n_batches
    n_nonzero_resp : int, default=None
        The greatest number L of components that may share a row: its other responsibilities are 0
        (L-sparse). All components may share a row if None. Of responsibilities in ``init_params``, the
        largest of each row are kept.
    $max_iter
    $tol
    n_init : int, default=1
        Number of fits with different random numbers, each with up to ``max_iter`` laps: first components
        if there are several, order of batches, and rows that births look at. The one with the highest
        ELBO is kept. Components that are given are the same in all fits; a callable is called for
        each.
    init_params : {"k-means++", "kmeans", "random", "random_from_data"}, callable, array, default="k-means++"
        Source of the first components:

        - "k-means++" draws rows of a sample that are far from each other (Bregman k-means++, Alg. 2.2),
          and makes three steps of k-means from them. "kmeans" makes up to 100 steps, until no row changes
          its component.
        - "random" and "random_from_data" are the same: some rows are drawn at random, and each row goes
          to the nearest of them. (In scikit-learn's mixtures, "random" draws responsibilities instead.)
        - Responsibilities of shape (n_samples, K): an array, or a callable
          ``(X, n_components, random_state)`` that returns one. Its columns are the components, whatever
          ``n_components`` is. With ``max_iter=0``, `fit` makes one global step on them. If the number of
          components is fixed (``proposals=None``, or the stochastic method), components keep the order
          of the columns.
    means_init : array-like of shape (n_components, n_features), default=None
        Initial means, in place of ``init_params``. If the number of components is fixed, they keep this
        order.
    $warm_start
    $memoize
    $max_batches
    $half_life
    $learning_decay
    $learning_offset
    $total_samples
    $random_state
    $n_jobs
    $verbose

    Attributes
    ----------
    n_components_ : int
        Number of components found. They are sorted by decreasing weight; but if their number is fixed,
        they keep the order of ``means_init`` or of given responsibilities.
    labels_ : ndarray of shape (n_samples,)
        The component of each row of the last call of `fit` or `partial_fit`, as `predict` returns it. After
        `partial_fit` it is found when it is first read; until then the model holds a copy of the batch.
        There are none after a fit of a memory map or of data in chunks: call `predict`, which reads such
        data in parts.
    weights_ : ndarray of shape (`n_components_`,)
        Expected weights.
    means_ : ndarray of shape (`n_components_`, n_features)
        Expected means: of ``"bernoulli"`` the probabilities of a 1, of ``"poisson"`` the rates, of
        ``"multinomial"`` the probabilities of the words.
    covariances_ : ndarray of shape (K, D, D), (K, D) or (K,)
        Gaussian observations only: inverses of ``precisions_``, for full, diagonal and spherical
        covariances. K is `n_components_`, and D n_features. For ``"fixed_variance_gaussian"`` they are the
        variances of the columns, of shape (K, D), and the same in each component.
    precisions_ : ndarray of shape (K, D, D), (K, D) or (K,)
        ``"gaussian"`` only: expected precisions.
    precisions_cholesky_ : ndarray of shape (K, D, D), (K, D) or (K,)
        ``"gaussian"`` only: Cholesky factors of ``precisions_``, as scikit-learn's mixtures have them.
    components_, exp_dirichlet_component_ : ndarray of shape (`n_components_`, n_features)
        ``"multinomial"`` only: the parameters of the Dirichlet posteriors, which are the prior plus the
        expected counts, and ``exp(E[log p(word | component)])``.
    probabilities_ : ndarray of shape (`n_components_`, n_features, n_categories)
        Categorical observations only, in place of ``means_``: expected probabilities.
    blocks_ : dict
        `ColumnObservation` only: a dict of attributes for each block, by the name of the block.
    categories_ : dict
        Frames only: the categories of each column that does not hold numbers, by the name of the column.
    discount_ : float
        Pitman-Yor process only: its discount, as given or learned.
    lower_bound_ : float
        The ELBO of the whole data, in nats.
    $component_ids_
    $lower_bounds_
    $elbo_terms_
    $history_
    $n_iter_
    $converged_
    $n_features_in_
    $feature_names_in_

    See Also
    --------
    HDPTopicVB : For texts, and for rows in groups, each of which mixes several components.
    HDPHMMVB : For rows whose order matters.
    sklearn.mixture.GaussianMixture : For a given number of components.
    sklearn.cluster.HDBSCAN : For clusters of any shape.

    References
    ----------
    M. C. Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics,
    and sequences, PhD thesis, Brown University, 2016, Chapters 2-4 and 7.

    M. C. Hughes and E. B. Sudderth, Memoized online variational inference for Dirichlet process
    mixture models, NIPS 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.3, size=(100, 2)) for c in (-3, 0, 3)])
    >>> DPMixtureVB(random_state=0).fit(X).n_components_
    3
    """

    _kind, _chunk_reader = setup.MIXTURE, RowReader
    _parameter_constraints = {
        **OF_LEARNERS,
        "half_life": [HALF_LIFE, None],
        "allocation": [StrOptions(set(ALLOCATIONS)), MixtureAllocation],
        "n_nonzero_resp": [COUNT, None],
        "init_params": [StrOptions(set(setup.SEEDINGS)), callable, "array-like"],
        "means_init": ["array-like", None],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        observation: str | ObservationModel = "gaussian",
        allocation: str | MixtureAllocation = "dp",
        weight_concentration_prior: float | None = None,
        max_components: int | None = None,
        proposals: Iterable[str | Proposal] | None = (
            "birth",
            "merge",
            "delete",
            "regroup",
            "relocate",
            "oversplit",
        ),
        learning_method: str = "memoized",
        batch_size: int | None = None,
        n_batches: int | None = None,
        n_nonzero_resp: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_init: int = 1,
        init_params: str | Callable[..., Any] | ArrayLike = "k-means++",
        means_init: ArrayLike | None = None,
        warm_start: bool = False,
        memoize: bool = True,
        max_batches: int | None = None,
        half_life: float | None = None,
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        total_samples: float | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.observation = observation
        self.allocation = allocation
        self.weight_concentration_prior = weight_concentration_prior
        self.max_components = max_components
        self.proposals = proposals
        self.learning_method = learning_method
        self.batch_size = batch_size
        self.n_batches = n_batches
        self.n_nonzero_resp = n_nonzero_resp
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init_params = init_params
        self.means_init = means_init
        self.warm_start = warm_start
        self.memoize = memoize
        self.max_batches = max_batches
        self.half_life = half_life
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.total_samples = total_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones of ``observation`` and ``allocation`` even if these are names.

        Parameters
        ----------
        **params : dict
            Parameters by name. ``observation__covariance_type`` and the like are those of the likelihood, and
            ``allocation__discount`` and the like those of the prior of the weights.

        Returns
        -------
        self : DPMixtureVB
            The estimator.
        """
        allocation = params.get("allocation", self.allocation)
        known = isinstance(allocation, str) and allocation in ALLOCATIONS
        if known and has_nested(params, "allocation"):
            params = with_part(params, "allocation", ALLOCATIONS[allocation]())
        return super().set_params(**params)

    @_fit_context(prefer_skip_nested_validation=True)
    @leaves_model_on_error
    def fit(self, X: Data, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn components and their number.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), dask collection or list of chunks
            Rows of data. A memory map is read batch by batch and never copied whole. Sparse rows are for
            ``"bernoulli"``, ``"multinomial"``, ``"negative_binomial"`` and ``"poisson"``. NaN stands for an
            entry that was not observed, where the likelihood allows it. Dask arrays and frames, and lists of
            delayed batches or of batch references, are worked on where they lie (:doc:`/distributed`).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight w counts as w equal rows. A row of weight 0 has no influence, even if it is far
            from all others.

        Returns
        -------
        self : DPMixtureVB
            The fitted estimator.

        $raises

        $warns
        """
        if are_chunks(X):
            return self._fit_chunks(X, sample_weight=sample_weight)
        rows, reading = check_rows(self, X, reset=not self._is_warm, min_rows=2)
        data = _Rows(Batch(None, rows, check_weights(sample_weight, rows.shape[0], "row")), reading)
        return self._fit(rows, data, FitCall(X, y, {"sample_weight": sample_weight}))

    @_fit_context(prefer_skip_nested_validation=True)
    @leaves_model_on_error
    def partial_fit(
        self,
        X: Data,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        batch_id: Hashable | None = None,
    ) -> Self:
        """Update the model with one batch.

        A new batch adds to the data seen so far, and a batch that was seen before replaces its earlier
        version. Several epochs over the same batches are memoized inference (Alg. 3.3); batches must then
        hold the same rows in each epoch, or be named by ``batch_id``. Proposals are made on the way, so that
        the number of components grows and shrinks. The first batch sets the units of the data, and should
        be like the others. After `fit`, batches add to the data of that fit.

        Parameters may be set between two calls. The prior of the weights, the proposals and
        ``max_components`` are then the new ones. The ELBO is that of the new prior, and may be lower than
        before. Another ``observation`` is an error.

        A few rows rarely pay for a new component. The latest batches are therefore kept with their rows, up
        to 20,000 rows or 2,000,000 numbers, and now and then laps go over all of them as in `fit`
        (:doc:`/streams`). Once a batch comes back, in a second epoch, these rows are not needed and are
        forgotten. Until then, a pickle of the estimator holds them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), dask collection or list of chunks
            Rows of the batch. The first batch has two or more. A dask collection, or a list of chunks, is
            one batch (:doc:`/distributed`).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight w counts as w equal rows. A row of weight 0 has no influence, even if it is far
            from all others.
        batch_id : hashable, default=None
            Name of the batch: a number, a str, a date or a tuple of them, so that `save` can save it. It is
            a hash of the batch's content if None.

        Returns
        -------
        self : DPMixtureVB
            The fitted estimator.

        $raises_later

        $warns_later
        """
        if self._is_begun:
            self._check_goes_on()
        if are_chunks(X):
            return self._partial_fit_chunks(X, batch_id, sample_weight=sample_weight)
        first = not self._is_begun
        rows, reading = check_rows(self, X, reset=first, min_rows=2 if first else 1)
        batch = Batch(None, rows, check_weights(sample_weight, rows.shape[0], "row"))
        return self._partial_fit(rows, _Rows(batch, reading), batch_id)

    def _start(self, X, data, rng, settings, *, streaming):
        """A `Start` from the data, or from the last fit."""
        batch = data.batch
        n_batches = 1 if streaming else settings.number_of_batches(batch.n_entries)
        if self._is_warm:
            return self._warm_start(ArraySource(batch.x, batch.weight, n_batches))
        resp = setup.given_responsibilities(settings, X, rng)
        source = ArraySource(batch.x, batch.weight, n_batches, resp)
        start = self._cold_start(source, data.reading, settings, streaming=streaming)
        if source.resp is None or not callable(self.init_params):
            return start
        return start._replace(again=partial(self._start_again, start, X, settings))

    def _start_again(self, start, X, settings, rng):
        """A `Start` like another one, with responsibilities that the user's function finds anew."""
        resp, before = setup.given_responsibilities(settings, X, rng), start.source
        source = ArraySource(before.x, before.weight, len(before), resp)
        return start._replace(source=source, statistics=self._seeds(settings, source, start.model))

    def _start_in_chunks(self, data, rng, settings, *, streaming):
        return self._cold_start(data.source, data.reading, settings, streaming=streaming)

    def _cold_start(self, source, reading, settings, *, streaming):
        """A `Start` from the data."""
        allocation = allocation_from(self.allocation, self.weight_concentration_prior)
        observation = resolve_observation(self.observation, reading)
        model = setup.bind_model(observation, allocation, source, streaming=streaming)
        return base.Start(model, source, self._seeds(settings, source, model))

    def _warm_start(self, source):
        """A `Start` from the last fit: its prior is that of the end of the fit, as it was adapted."""
        self._check_same_observation("warm_start=True")
        model, s = self._learner_.model, self._statistics
        likelihood = base.likelihood_for(model.likelihood, source.x)
        if likelihood is not model.likelihood:
            s = likelihood.from_complete(s)
        if likelihood.has_missing:
            require_values(source.batches())
        batches = (check_units(likelihood, batch) for batch in source.batches())
        if {batch.x.dtype for batch in batches} != {source.x.dtype}:
            source = source.in_double()
        allocation = allocation_from(self.allocation, self.weight_concentration_prior)
        model = model._replace(likelihood=likelihood, allocation=allocation)
        return base.Start(model, source, lambda rng: s, self._keeps_order)

    @staticmethod
    def _seeds(settings, source, model):
        return partial(setup.starting_statistics, settings, source, model.likelihood)

    def _present_batch(self, learner, batch):
        batch = base.ready_for(learner, batch, check_units)
        now = allocation_from(self.allocation, self.weight_concentration_prior)
        base.go_on_under(learner, lambda model: setup.under_allocation(model, now))
        return batch

    def _population(self, batch):
        return self.total_samples

    def _may_label(self, data):
        return True

    def _labels(self, data):
        return self._components_of(data.batch.x)

    def _to_publish(self, state, observation):
        return setup.published(state, self._keeps_order)
