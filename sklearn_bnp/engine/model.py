"""The protocol of models, through which the engine knows them, and the base class of all models.

Design note
-----------
(a) A model is a likelihood with its prior, and an *allocation model*, the prior of the components' weights.
    It is a value that is never changed: a global step returns another model.
(b) The statistics of the data are in a `StatBag`, the *totals*. Given these, q(phi), the posterior of the
    components' parameters, is always at its optimum, so that the objective is a function of the model and
    of the totals, and proposals are judged without a pass over the data.
(c) Global parameters that have no closed-form optimum (the sticks of hierarchical models) are fields of the
    model. They are kept for the components of the totals, by uid, and any method may be called with totals
    of other components.
(d) To write a model, derive from `BaseModel`, give it the methods of `Model` that are missing, and pass it to
    `Learner`. The three models of the package are ``mixture/model.py``, ``topics/model.py`` and
    ``hmm/model.py``; the latter two share ``hdp/model.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import entr

from .edits import BlindUnion


class Model(Protocol):
    """The methods and fields of a model that the engine and the proposals use; immutable.

    Attributes
    ----------
    likelihood : Likelihood
        The family of the components.
    allocation : object
        The prior of the components' weights. The engine does not use it. Proposals written for one kind
        of model may.
    prior : object
        The likelihood's prior as it stands, after empirical Bayes.
    stream_rounds : int
        Largest number of rounds of proposals on a new batch of a stream. Each round may split the
        components that the round before has found.
    settled_gain : float
        Concentrations that wait until components have settled are learned once a lap without accepted trials
        gains less than so many times ``tol`` an observation, even if trials are planned. With 0, they are
        learned when the fit would otherwise end.
    pool_rows : int
        Rows of the latest batches of a stream that are kept, at the most, for laps over them together.
    leaves_behind : bool
        Whether the extra of a part holds what should stay beside its rows if these lie elsewhere; see
        ``left_behind.py``.
    sampling : type
        Class that draws the samples for proposals, from all batches in one pass; see ``mixture/sampling.py``.
    """

    likelihood: object
    allocation: object
    prior: object
    stream_rounds: int
    settled_gain: float
    pool_rows: int
    leaves_behind: bool
    sampling: type

    # ------------------------------------------------------------------ local step

    def coefficients(self, totals):
        """Parameters of the local step.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data.

        Returns
        -------
        params : object
            Handed to `local_pass` as it is, together with the uids of ``totals``.
        """

    def local_pass(
        self, batch, params, uids, observers=(), *, carry=None, lap=0, n_nonzero=None, n_threads=1
    ):
        """Local and summary step of a batch.

        Parameters
        ----------
        batch : object
            A batch of the model's source. If it brings responsibilities, these are summarised and no local
            step is made.
        params : object
            Parameters that `coefficients` returned.
        uids : ndarray of int, shape (K,)
            Components of the totals from which ``params`` came.
        observers : sequence of Observer
            The method ``observe(block)`` of each is called with every block of rows. The class of blocks is
            the model's own. A block has the responsibilities ``resp`` and the ``uids`` of their columns.
        carry : object
            The value that the method `carry` returned.
        lap : int
            Number of laps that have ended.
        n_nonzero : int or None
            Largest number of components that may share a row; any number if None.
        n_threads : int
            Number of threads. No bit of the result may depend on it.

        Returns
        -------
        bag : StatBag
            Statistics of the batch, listed as ``uids``.
        """

    def carry(self, statistics, batch_id):
        """The part of a batch's statistics from which the next local pass over a part of it starts.

        Parameters
        ----------
        statistics : StatBag or None
            Statistics of the batch from its last visit, with all edits made since; None if it is new.
        batch_id : object
            Name of the part.

        Returns
        -------
        carry : object
            A value that can be pickled; None if there is nothing. Like a batch, it has a method ``joined``,
            for several side by side, and ``part(first, last)``.
        """

    # ------------------------------------------------------------------ streams

    def own_components(self, totals, bags, gains, new_uids, n_most):
        """Trials in which the rows that new batches of a stream gave to a component become a new component.

        Parameters
        ----------
        totals : StatBag
            Statistics of the whole data, the new batches included.
        bags : dict of object to StatBag
            Statistics of each new batch by its name, listed as ``totals``.
        gains : ndarray, shape (K,)
            Change of the "data" term by each of these new components, from `engine.stream_news.gains`.
        new_uids : callable
            ``new_uids(n)`` returns names for n new components.
        n_most : float
            Largest number of trials.

        Returns
        -------
        trials : list of KnownTrial
        """

    def small_unions(self, totals, least):
        """Trials in which components of which a stream has forgotten nearly all rows join others.

        Parameters
        ----------
        totals : StatBag
            Statistics of all that is remembered.
        least : float
            Mass of one row; components of less are joined.

        Returns
        -------
        trials : list of KnownTrial
        """

    # ------------------------------------------------------------------ objective

    def elbo_terms(self, totals, evidence=None):
        """The objective in nats, as a dict of the terms "data", "entropy" and "allocation".

        Parameters
        ----------
        totals : StatBag
            Statistics under any responsibilities.
        evidence : ndarray, shape (K,), or None
            Evidence of each component, if it is known.

        Returns
        -------
        terms : dict of str to float
            They add up to a lower bound of the log evidence.
        """

    def elbo(self, totals, evidence=None):
        """The objective in nats, the sum of `elbo_terms`."""

    def allocation_term(self, totals):
        """The term "allocation" of `elbo_terms`, a float."""

    def replacement_gains(self, totals, replacements, fixed):
        """Change of the objective by each of several replacements of components.

        Each replacement is judged by itself, against the totals as they are.

        Parameters
        ----------
        totals : StatBag
        replacements : list of pairs
            Uids that go, and the `StatBag` of the components that take their place. An uid may be in
            both.
        fixed : ndarray, shape (n_replacements,)
            Change of the "data" term, and of the entropies in ``totals.entropy``.

        Returns
        -------
        gains : ndarray, shape (n_replacements,)
            Exact changes, at parameters of the model that are chosen for each replacement.
        """

    def union_gains(self, totals, groups):
        """Estimated change of the allocation term by each of several unions.

        Merges choose their candidates by it, which `replacement_gains` then judges. An estimate may therefore
        be wrong. It should be too high rather than too low, since a union that is not tried is never made.

        Parameters
        ----------
        totals : StatBag
        groups : list of sequences of int
            Rows of ``totals`` that become one component. Models for which `Merge` joins pairs only need
            support no more than two rows a group.

        Returns
        -------
        gains : ndarray, shape (n_groups,)
        """

    def least_union_entropies(self, bag, i, j):
        """Lower bounds of what the entropy of rows that are gone changes by, for unions of pairs.

        Parameters
        ----------
        bag : StatBag
        i, j : ndarray of intp, shape (M,)
            Rows of ``bag``.

        Returns
        -------
        changes : ndarray, shape (M,)
            0 where one of the two has no rows: the union is then the other one under another name.
        """

    def union_slack(self, bag, i, j):
        """Nats by which the objective may be too low after unions of pairs in rows that are gone.

        Parameters
        ----------
        bag : StatBag
        i, j : ndarray of intp, shape (M,)
            Rows of ``bag``.

        Returns
        -------
        slack : ndarray, shape (M,)
            How far the objective may exceed the one with the bounds of `blind_union`; infinite where nothing
            is known.
        """

    def blind_union(self, groups):
        """An edit that joins groups of components in the statistics of rows that are gone.

        Parameters
        ----------
        groups : list of pairs
            Uids that go, and the uid that takes their place, which may be one of them.

        Returns
        -------
        edit : object
            Its method ``replay(bag, batch_id)`` returns the statistics after the unions, with lower bounds
            for entropies.
        """

    # ------------------------------------------------------------------ global step

    def updated(self, totals):
        """The model after the global step of its own parameters; it never lowers the objective.

        Components on trial stop being so: what `adopting` said of retired components is forgotten.
        """

    def blended(self, totals, rate):
        """The model after a global step of stochastic learning.

        Parameters
        ----------
        totals : StatBag
            Statistics that are averaged over steps. Their ``extra`` is the result of `Extra.averaged`.
        rate : float
            Learning rate in (0, 1]: the weight of the batch in the average.
        """

    def in_order(self, totals):
        """The totals with their components in the model's order, and the model for these.

        The model is the one after the global step, and after steps that are made once a lap.
        """

    def after_replacement(self, totals, removed, new):
        """Totals in which components ``new`` have taken the place of ``removed``, and the model for them.

        They are in order, as from `in_order`. The objective changes by what `replacement_gains` finds, or by
        more.
        """

    def released(self):
        """The model that learns what it left alone until the first convergence; itself if that is nothing."""

    def with_adapted_prior(self, totals, n_iter):
        """The model after ``n_iter`` steps of empirical Bayes on the likelihood's prior."""

    def alone(self, totals):
        """The model under the prior that suits the component of ``totals``, which is all there is."""

    def with_likelihood(self, likelihood):
        """The model with another likelihood, whose statistics are linear in the present one's."""

    # ------------------------------------------------------------------ components on trial

    def adopting(self, totals, retired, concentrations=None):
        """The model for a lap with components on trial.

        Parameters
        ----------
        totals : StatBag
            It lists components on trial with the statistics that they start from, and retired ones.
        retired : dict of int to tuple of int
            Components that no row may go to during the lap -> components on trial in their place.
        concentrations : dict of str to float or None, default=None
            Concentrations to begin with, of those that are learned.

        Returns
        -------
        model : Model
            Its `coefficients` give no weight to retired components. It need not be updated before the
            lap ends.
        """


@dataclass(frozen=True, eq=False)
class BaseModel:
    """Base class of models: a likelihood, an allocation model, a prior, and the methods that models share.

    Parameters
    ----------
    likelihood : Likelihood
    allocation : object
    prior : object
        The likelihood's prior as it stands, after empirical Bayes.
    """

    likelihood: object
    allocation: object
    prior: object

    pool_rows: ClassVar[int] = 0
    leaves_behind: ClassVar[bool] = False

    def after_replacement(self, totals, removed, new):
        return self.in_order(totals.replaced(removed, new))

    def _replace(self, **changes):
        """The model with other values of some fields, as of a NamedTuple."""
        return replace(self, **changes)

    def elbo_terms(self, totals, evidence=None):
        """The objective in three terms, in nats; see `Model.elbo_terms`.

        Hughes (2016), (3.18), (5.29), (6.22), at the optimum of all factors but those of the sticks.
        """
        if evidence is None:
            evidence = self.likelihood.evidence(self.prior, totals.s)
        return {
            "data": float(np.sum(evidence)),
            "entropy": self._entropy(totals),
            "allocation": self.allocation_term(totals),
        }

    def elbo(self, totals, evidence=None):
        """The objective in nats, the sum of `elbo_terms`."""
        return sum(self.elbo_terms(totals, evidence).values())

    @property
    def given_allocation(self):
        """The prior of the components' weights as it was given, without what was learned of it."""
        return self.allocation

    def carry(self, statistics, batch_id):
        """None: rows start anew at each visit."""
        return None

    def own_components(self, totals, bags, gains, new_uids, n_most):
        """No trials; see `Model.own_components`."""
        return []

    def small_unions(self, totals, least):
        """No trials; see `Model.small_unions`."""
        return []

    def least_union_entropies(self, bag, i, j):
        """Lower bounds (M,) from the members' shares of all rows, as in `edits.union_row`."""
        n, entropy = np.maximum(bag.n, 0.0), bag.entropy
        loss = np.maximum(entr(n[i]) + entr(n[j]) - entr(n[i] + n[j]), 0.0)
        return -np.minimum(loss, entropy[i] + entropy[j])

    def union_slack(self, bag, i, j):
        """Nats (M,) up to the entropy of both components, which that of the union does not exceed."""
        return -self.least_union_entropies(bag, i, j)

    def blind_union(self, groups):
        """One union after the other, each with a bound of its entropy."""
        return BlindUnion(tuple(groups))

    def released(self):
        """The model itself: it waits for nothing."""
        return self

    @staticmethod
    def _entropy(totals):
        """Entropy of the responsibilities, a float."""
        return float(np.sum(totals.entropy))

    def blended(self, totals, rate):
        """The model after a global step of stochastic learning, on totals that are averages."""
        return self.updated(totals)

    def with_adapted_prior(self, totals, n_iter):
        """The model after ``n_iter`` steps of empirical Bayes on the likelihood's prior."""
        return self._replace(prior=self.likelihood.update_prior(self.prior, totals.s, n_iter))

    def alone(self, totals):
        """The model under the prior that suits one component alone."""
        return self._replace(prior=self.likelihood.prior_alone(self.prior, totals.s))

    def with_likelihood(self, likelihood):
        """The model with another likelihood."""
        return self._replace(likelihood=likelihood)
