"""The one place where laws touch the package's inside."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import DPMixtureVB
from sklearn_bnp._kernels._responsibilities import Quadratic
from sklearn_bnp.engine import streaming
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.state import LearnerSettings, LearnerState, ScheduleState
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.task import LocalTask, Purpose
from sklearn_bnp.engine.trials import Policy
from sklearn_bnp.inputs.batches import ArraySource
from sklearn_bnp.likelihood.negative_binomial import NegativeBinomialLikelihood
from tests.reference import mixtures, overdispersed

from .families import ALLOCATIONS, cells_of


class Given(NamedTuple):
    """A model after one global step on given responsibilities.

    Attributes
    ----------
    estimator : DPMixtureVB
    model : Model
        Likelihood, allocation and prior, as adapted to these responsibilities.
    twin : object
        Twin of the likelihood under that prior.
    z, weight, resp : ndarray
        Prepared rows, weights of ones if none were given, responsibilities (n, K).
    features : ndarray, shape (n, P)
        s(x) of each row.
    s : ndarray, shape (K, P)
        Statistics, with components in the order of ``resp``.
    """

    estimator: DPMixtureVB
    model: object
    twin: object
    z: np.ndarray
    weight: np.ndarray
    resp: np.ndarray
    features: np.ndarray

    @property
    def s(self):
        return (self.weight[:, np.newaxis] * self.resp).T @ self.features

    @property
    def totals(self):
        """`StatBag` of the statistics and entropies that the twins find."""
        uids = np.arange(self.resp.shape[1])
        return StatBag(uids, self.s, mixtures.entropies(self.resp, self.weight))

    @property
    def order(self):
        """Components by decreasing count, the order that the twins of stick-breaking priors are in."""
        return np.argsort(-self.s[:, -1], kind="stable")


def estimator(family, allocation=ALLOCATIONS[0], **parameters):
    """A `DPMixtureVB` for a family, of the registry, and an allocation."""
    observation = clone(family.observation)
    return DPMixtureVB(observation=observation, **{**allocation.parameters, **parameters})


def quiet_fit(model, X, **kwargs):
    """`fit` of so few laps that it need not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **kwargs)


def random_resp(rng, n, K, concentration=0.5):
    """Soft responsibilities; counts of the components differ clearly."""
    return rng.dirichlet(concentration * np.arange(1, K + 1), size=n)


def one_hot(labels, K=None):
    return np.eye(labels.max() + 1 if K is None else K)[labels]


def given(family, X, resp, weight=None, allocation=ALLOCATIONS[0], **parameters):
    """`Given` for one global step on ``resp``."""
    fitted = estimator(
        family, allocation, init_params=resp, max_iter=0, proposals=None, **parameters
    )
    fitted.fit(X, sample_weight=weight)
    model = fitted._learner_.model
    z = model.likelihood.prepare(X)
    return Given(
        fitted, model, family.twin(model.likelihood, model.prior), z,
        np.ones(len(X)) if weight is None else weight, resp, features_of(model.likelihood, z),
    )  # fmt: skip


def features_of(likelihood, z):
    """s(x) of prepared rows, from the twin."""
    blocks = getattr(likelihood, "blocks", None)
    if isinstance(likelihood, NegativeBinomialLikelihood):
        given = None if likelihood.learns_size else likelihood.prior.r
        return overdispersed.statistics(z, likelihood.kernel_rows(z), given)
    # tests of families check their rows
    if blocks is None and likelihood.quadratic == Quadratic.NONE:
        plain = mixtures.statistics(likelihood.kernel_rows(z), "NONE", True)
        return _blurred(likelihood, z, plain)
    if blocks is None:
        plain = mixtures.statistics(z, likelihood.quadratic.name, likelihood.linear)
        return _blurred(likelihood, z, plain)
    edges = np.cumsum([block.likelihood.n_features for block in blocks])[:-1]
    parts = zip(blocks, np.split(z, edges, axis=1), strict=True)
    own = [features_of(block.likelihood, x)[:, :-1] for block, x in parts]
    return np.column_stack([*own, np.ones(len(z))])


def _blurred(likelihood, z, plain):
    """Statistics ``plain`` of prepared rows, with variances of their cells in those of squares."""
    noise = cells_of(likelihood)(z)
    if not noise.any():
        return plain
    variances = np.zeros_like(plain)
    for row, own in zip(variances, noise, strict=True):
        square = own.sum(keepdims=True) if likelihood.shape.rows_a_point > 1 else own
        if likelihood.quadratic == Quadratic.FULL:
            square = np.diag(own)[np.triu_indices(len(own))]
        row[: len(square)] = square
    return plain + variances


def totals_of(fitted):
    """Totals and model behind an estimator."""
    return fitted._learner_.totals, fitted._learner_.model


def fresh_learner(model, proposals=(), seed=0, **settings):
    """A `Learner` that has not started, with proposals that remember nothing."""
    for proposal in proposals:
        proposal.reset()
    schedule = ScheduleState(tuple(proposals))
    return Learner(LearnerState(model, seed, schedule), LearnerSettings(**settings))


def learner_for(family, X, *, resp, proposals=(), n_batches=1, seed=0, weight=None, **parameters):
    """A `Learner` before its first lap, and the batches it is to visit.

    It starts from the statistics of ``resp`` and from the prior before any empirical Bayes; keywords
    are `LearnerSettings`, and ``allocation``.
    """
    allocation = parameters.pop("allocation", ALLOCATIONS[0])
    model = given(family, X, resp, weight, allocation).model
    model = model._replace(prior=model.likelihood.prior)
    learner = fresh_learner(model, proposals, seed, **parameters)
    w = np.ones(len(X)) if weight is None else weight
    features = features_of(model.likelihood, model.likelihood.prepare(X))
    learner.start((w[:, np.newaxis] * resp).T @ features)
    return learner, ArraySource(X, weight, n_batches)


def shuffled(learner, source):
    """Batches of a source, in the random order of the learner's lap."""
    order = learner.rng(Purpose.ORDER).permutation(len(source))
    return (source.batch(i) for i in order)


def on_trial(learner):
    """Trials whose components are in the model for a lap."""
    return [t for t in learner.scheduler.trials if t.policy is Policy.WITH_LAP]


def findings_of(learner, trial):
    """Batch id -> what a trial's probe found in the lap under way."""
    return learner.scheduler._findings[learner.scheduler.trials.index(trial)]


def finding_of(
    probe, blocks, uids, *, model=None, part=None, seed=(0,), statistics=None, rows=None
):
    """What a probe finds in blocks that are shown to its observer one after the other."""
    task = LocalTask(model, None, np.asarray(uids), part, (probe,), seed=seed)
    observer = type(probe).observer([probe], task)
    for block in blocks:
        observer.observe(block)
    if rows is not None:
        observer.revisit(rows)
    [finding] = observer.finish(statistics)
    return finding


def totals_under(learner, memo):
    """Sum of what the memory holds, as the learner's components."""
    return memo.total(learner.totals.uids, learner.totals.s.shape[1])


def assert_totals_are_the_memory(model):
    """Each row that a stream remembers counts once, and the bound is that of the totals."""
    state = model._learner_
    memory = state.memo.copy().total(state.totals.uids, state.totals.s.shape[1])
    np.testing.assert_allclose(state.totals.s, memory.s, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(state.model.elbo(memory), model.lower_bound_, rtol=1e-9)


def rises_over_pools(monkeypatch):
    """A list that will hold the rise of the bound, relative to it, in each later lap over a pool."""
    learn, rises = streaming._learn, []

    def noted(learner, first=None):
        n = len(learner.history)
        learn(learner, first)
        bounds = [lap.lower_bound for lap in learner.history[n:]]
        rises.extend(np.diff(bounds[1:]) / abs(bounds[-1]))

    monkeypatch.setattr(streaming, "_learn", noted)
    return rises
