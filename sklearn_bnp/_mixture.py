"""Dirichlet-process mixtures that find their own number of components."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from ._base import (
    batch_length,
    check_responsibilities,
    check_rows,
    check_weight,
    resolve_allocation,
    resolve_observation,
    resolve_proposals,
    threads,
)
from ._predictor import MixturePredictor
from .core.batches import ArraySource, Batch, column_moments
from .core.initialize import seeded_statistics
from .core.learner import Learner
from .core.local import blas_on_one_thread
from .core.model import Model
from .core.progress import Progress
from .core.stochastic import fit_stochastic, stochastic_step
from .core.streaming import stream_batch

# By default data are cut into this many batches, of at least this many rows.
_DEFAULT_BATCHES, _LEAST_BATCH = 10, 4096


class DPMixtureVB(MixturePredictor):
    """Dirichlet-process mixture model whose number of components is learned.

    Memoized variational inference with birth, merge and delete proposals, each accepted only if the
    exact evidence lower bound (ELBO) of the whole data rises. There are no ``aic`` and ``bic``
    methods, on purpose: the ELBO already pays for every parameter, and choosing the number of
    components is what `fit` does with it.

    Parameters
    ----------
    n_components : int, default=1
        How many components to start from; how many there always are if ``proposals`` is None.
    observation : {"gaussian", "bernoulli"} or ObservationModel, default="gaussian"
        The likelihood. Nested parameters may be set even if this is a name:
        ``set_params(observation__covariance_type="diag")``.
    allocation : {"dp", "dirichlet"}, default="dp"
        Prior of the weights: a Dirichlet process, or a finite symmetric Dirichlet distribution.
    weight_concentration_prior : float, default=None
        For ``"dp"`` the concentration gamma (1 if None); for ``"dirichlet"`` the parameter of each
        component (1 / K if None). Greater values favour more components.
    max_components : int, default=None
        Births do not lead beyond this number.
    proposals : tuple of str or Proposal, or None, default=("birth", "merge", "delete")
        How the number of components may change. None: never.
    learning_method : {"memoized", "full", "stochastic"}, default="memoized"
        Memoized (Alg. 3.3), one batch of everything (Alg. 3.1), or stochastic (Alg. 3.2)
        inference. The stochastic method makes no proposals.
    batch_size : int, default=None
        Rows a batch; by default ten batches of at least 4096 rows.
    n_batches : int, default=None
        Number of batches, instead of ``batch_size``.
    n_nonzero_resp : int, default=None
        At most this many components share a row (the L of L-sparse responsibilities); all if None.
    max_iter : int, default=200
        Laps through the data, at the most.
    tol : float, default=1e-5
        A fit has converged when a lap raises the ELBO by less than this, in nats an observation, and no
        proposal is under way.
    n_init : int, default=1
        Fits from different initialisations, of which the one with the highest ELBO is kept.
    init_params : {"k-means++", "random"}, callable or ndarray, default="k-means++"
        Where the first components come from: Bregman k-means++ (Alg. 2.2), rows drawn at random, a
        callable ``(X, n_components, random_state) -> resp``, or responsibilities of shape
        (n_samples, n_components). With responsibilities and ``max_iter=0``, `fit` is one global step
        on them.
    means_init : array-like of shape (n_components, n_features), default=None
        Initial means, instead of ``init_params``.
    warm_start : bool, default=False
        Start from the components of the previous call to `fit`.
    memoize : bool, default=True
        Whether `partial_fit` keeps statistics of each batch, so that a batch seen again replaces what it
        left behind. False is for streams that never end: memory does not grow.
    learning_decay : float, default=0.7
        Decay of the stochastic method's learning rate ``(learning_offset + t) ** -learning_decay``.
    learning_offset : float, default=10.0
        Delay of the same.
    total_samples : int, default=None
        Size of the population that `partial_fit` of the stochastic method sees samples of; the number
        of rows seen so far if None.
    random_state : int, RandomState instance or None, default=None
        Seed of initialisation, of the order of batches and of the proposals.
    n_jobs : int, default=None
        Threads for the kernels. The result does not depend on it.
    verbose : int, default=0
        Show one live line a lap if 1.

    Attributes
    ----------
    n_components_ : int
        Number of components found. They are sorted by decreasing weight.
    weights_ : ndarray of shape (n_components_,)
        Expected weights.
    means_ : ndarray of shape (n_components_, n_features)
        Expected means.
    covariances_ : ndarray
        Gaussian observations only: inverses of ``precisions_``; (K, D, D), (K, D) or (K,) for full,
        diagonal and spherical covariances.
    precisions_ : ndarray
        Expected precision matrices.
    precisions_cholesky_ : ndarray
        Their Cholesky factors, as scikit-learn's mixtures have them.
    lower_bound_ : float
        The ELBO of the whole data, in nats.
    lower_bounds_ : list of float
        The ELBO after each lap.
    elbo_terms_ : dict
        Its terms: data, entropy, allocation.
    history_ : list of Lap
        What each lap did: lap, n_components, lower_bound, seconds, proposal_seconds, tried, accepted.
    n_iter_ : int
        Laps made.
    converged_ : bool
        Whether the fit converged.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if they were all strings.

    References
    ----------
    M. C. Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics, and
    sequences, PhD thesis, Brown University, 2016, Chapters 2-4 and 7.

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

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "observation": "no_validation",
        "allocation": "no_validation",
        "weight_concentration_prior": "no_validation",
        "max_components": [Interval(Integral, 1, None, closed="left"), None],
        "proposals": "no_validation",
        "learning_method": [StrOptions({"memoized", "full", "stochastic"})],
        "batch_size": "no_validation",
        "n_batches": "no_validation",
        "n_nonzero_resp": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "means_init": ["array-like", None],
        "warm_start": ["boolean"],
        "memoize": ["boolean"],
        "learning_decay": [Interval(Real, 0.5, 1, closed="right")],
        "learning_offset": [Interval(Real, 0, None, closed="left")],
        "total_samples": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components=1,
        *,
        observation="gaussian",
        allocation="dp",
        weight_concentration_prior=None,
        max_components=None,
        proposals=("birth", "merge", "delete"),
        learning_method="memoized",
        batch_size=None,
        n_batches=None,
        n_nonzero_resp=None,
        max_iter=200,
        tol=1e-5,
        n_init=1,
        init_params="k-means++",
        means_init=None,
        warm_start=False,
        memoize=True,
        learning_decay=0.7,
        learning_offset=10.0,
        total_samples=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
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
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.total_samples = total_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def set_params(self, **params):
        """Set parameters, nested ones of ``observation`` even if that is a name.

        Parameters
        ----------
        **params : dict
            Estimator parameters.

        Returns
        -------
        self : DPMixtureVB
            The estimator.
        """
        if "observation" in params:
            self.observation = params.pop("observation")
        if isinstance(self.observation, str) and any(k.startswith("observation__") for k in params):
            self.observation = resolve_observation(self.observation)
        return super().set_params(**params)

    # ------------------------------------------------------------------ learning

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learn components and their number.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of data; a memory map is read batch by batch and never copied whole.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight w counts as w equal rows.

        Returns
        -------
        self : DPMixtureVB
            The fitted estimator.
        """
        X = check_rows(self, X, reset=True, min_rows=2)
        weight = check_weight(sample_weight, X)
        if self.n_components > len(X):
            raise ValueError(
                f"n_components={self.n_components} is more than n_samples={len(X)}; start from fewer "
                "components."
            )
        rng = check_random_state(self.random_state)
        with blas_on_one_thread():
            resp = self._given_responsibilities(X, rng)
            source = ArraySource(X, weight, self._batch_length(len(X)), resp)
            model = self._model_for(source)
            best = None
            for _ in range(self.n_init):
                learner = self._learner(model, rng)
                self._run(learner, source, resp)
                if best is None or learner.lower_bound > best.lower_bound:
                    best = learner
        best.forget_batches()
        self._publish(best)
        return self

    def _run(self, learner, source, resp):
        """One fit from one initialisation."""
        learner.start(self._first_statistics(learner.model.likelihood, source, learner.rng, resp))
        with Progress(self.verbose, self.max_iter, type(self).__name__) as progress:
            if self.learning_method == "stochastic" and self.max_iter > 0:
                fit_stochastic(
                    learner,
                    source,
                    self.max_iter,
                    self.learning_decay,
                    self.learning_offset,
                    progress.show,
                )
            else:
                learner.fit(source, self.max_iter, self.tol, progress.show)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, *, sample_weight=None, batch_id=None):
        """Update the model with one batch.

        A batch seen before replaces what it left behind; a new one adds to it. Looping over the same
        batches for several epochs is memoized inference (Alg. 3.3). Proposals run inside, so
        that the number of components grows and shrinks on the way.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the batch.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight w counts as w equal rows.
        batch_id : hashable, default=None
            Name of the batch; by default a hash of its content.

        Returns
        -------
        self : DPMixtureVB
            The fitted estimator.
        """
        first = not hasattr(self, "_learner_")
        X = check_rows(self, X, reset=first, min_rows=max(2, self.n_components) if first else 1)
        weight = check_weight(sample_weight, X)
        batch = Batch(batch_id, X, weight)
        if batch_id is None:
            batch = batch._replace(batch_id=batch.content_hash())
        with blas_on_one_thread():
            learner = self._learner_ if not first else self._first_learner(X, weight)
            if self.learning_method == "stochastic":
                stochastic_step(
                    learner, batch, self.total_samples, self.learning_decay, self.learning_offset
                )
            else:
                stream_batch(learner, batch, memoize=self.memoize)
        self._publish(learner)
        return self

    def _first_learner(self, X, weight):
        rng = check_random_state(self.random_state)
        source = ArraySource(X, weight, len(X))
        learner = self._learner(
            self._bind(column_moments_of(source, self._observation()), streaming=True), rng
        )
        resp = self._given_responsibilities(X, rng)
        learner.start(self._first_statistics(learner.model.likelihood, source, rng, resp))
        return learner

    @property
    def _continues(self):
        return self.warm_start and hasattr(self, "_learner_")

    def _model_for(self, source):
        """Model in the units of the data, or the present one for a warm start."""
        if not self._continues:
            return self._bind(column_moments_of(source, self._observation()), streaming=False)
        model = self._learner_.model
        if self.means_.shape[1] != source.x.shape[1]:
            raise ValueError(
                f"warm_start=True: X has {source.x.shape[1]} features, but the previous fit had "
                f"{self.means_.shape[1]}; set warm_start=False."
            )
        return model

    def _observation(self):
        return resolve_observation(self.observation)

    def _bind(self, moments, *, streaming):
        likelihood = self._observation().bind(moments, streaming=streaming)
        allocation = resolve_allocation(self.allocation, self.weight_concentration_prior)
        return Model(likelihood, allocation, likelihood.prior)

    def _learner(self, model, rng):
        stochastic = self.learning_method == "stochastic"
        return Learner(
            model,
            [] if stochastic else resolve_proposals(self.proposals),
            rng,
            max_components=np.inf if self.max_components is None else self.max_components,
            n_nonzero=self.n_nonzero_resp,
            n_threads=threads(self.n_jobs),
        )

    def _batch_length(self, n_rows):
        length = batch_length(
            self.batch_size, self.n_batches, n_rows, _DEFAULT_BATCHES, _LEAST_BATCH
        )
        return n_rows if self.learning_method == "full" else length

    def _given_responsibilities(self, X, rng):
        """Responsibilities set by the user, or None."""
        if isinstance(self.init_params, str):
            return None
        resp = self.init_params
        if callable(resp):
            resp = resp(X, self.n_components, rng)
        return check_responsibilities(resp, len(X))

    def _first_statistics(self, likelihood, source, rng, resp):
        if resp is not None:
            return np.zeros((resp.shape[1], likelihood.n_statistics))
        if self._continues:
            return self._learner_.totals.s
        means = self.means_init
        if means is not None:
            means = check_array(means, dtype=np.float64, input_name="means_init")
            if means.shape != (self.n_components, self.n_features_in_):
                raise ValueError(
                    f"means_init has shape {means.shape}; it must be (n_components, n_features) = "
                    f"({self.n_components}, {self.n_features_in_})."
                )
        return seeded_statistics(
            likelihood, source, self.n_components, rng, means=means,
            spread=isinstance(self.init_params, str) and self.init_params == "k-means++",
        )  # fmt: skip

    def _publish(self, learner):
        """Fitted attributes, all at once: a failed fit leaves the model as it was."""
        model, totals = learner.model, learner.totals
        attributes = {
            "_learner_": learner,
            "_coef": learner.coef,
            "weights_": model.allocation.weights(totals.n),
            "n_components_": len(totals.uids),
            "lower_bound_": learner.lower_bound,
            "elbo_terms_": model.elbo_terms(totals),
            "lower_bounds_": [lap.lower_bound for lap in learner.history],
            "history_": list(learner.history),
            "n_iter_": len(learner.history),
            "converged_": learner.converged,
            **model.likelihood.attributes(model.prior, totals.s),
        }
        for name, value in attributes.items():
            setattr(self, name, value)


def column_moments_of(source, observation):
    """Moments of a source's columns, as far as the likelihood asks for them."""
    batches = [source.batch(i) for i in range(len(source))]
    return column_moments(batches, covariance=observation.needs_covariance)
