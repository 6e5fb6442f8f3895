"""Prediction, scores and samples of sequences: scikit-learn's and hmmlearn's methods.

Design note. The chain has the expected probabilities ``startprob_`` and ``transmat_``, whatever is asked of
it. The weights ``exp E[log pi]`` of the local step of `fit` do not sum to one in a row, and the less a state
was seen, the less they do: as those of new sequences they would tell against rare states. States are
inferred from expected log likelihoods, as in `fit`. Densities, of `score_samples` and `decode`, are posterior
predictive.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from .._kernels import _forward_backward as kernel
from .._kernels.threads import threads_for_forward, threads_for_viterbi
from ..estimator.component_features import ComponentFeatures, in_containers
from ..estimator.lazy_methods import lazy_on_chunks, summed_over_chunks
from ..estimator.named_arguments import by_name
from ..estimator.observations import allows_missing, takes_sparse
from ..estimator.prediction import in_range, suited
from ..estimator.sample_weights import weighted_sums
from ..estimator.saved_state import SavedState
from ..estimator.summary import Summarised
from ..estimator.threads import threads
from ..estimator.validation import check_positive_integers, check_rows, checked_generator
from ..inputs.blas import blas_on_one_thread
from ..inputs.frames import with_categories
from ..inputs.groups import group_cuts
from ..inputs.rows import stacked
from ..inputs.types import Data, Floats, OfSequences, RandomState
from ..likelihood.autoregressive_gaps import are_whole
from ..likelihood.lags import lagged
from .batch import PreparedRows, parts
from .local import LOG_FLOOR, LOW_MEMORY_ROWS, ChainParams, chain_blocks, emission_table
from .sequences import (
    as_table,
    check_sequences,
    modelled,
    require_one_sequence,
    with_given_rows,
)
from .soundness import SEQUENCES, check_chains

# Size of the arrays (rows times states) that are worked on at a time, if sequences are not longer.
_BLOCK_NUMBERS = 4_000_000


class Message(NamedTuple):
    """State of `predict_next` in the middle of a sequence. Pass it on to the next call as it is.

    Attributes
    ----------
    proba : ndarray of shape (n_components,), or None
        Probabilities of the states at the last row; None as long as no row was modelled.
    rows : ndarray of shape (n_lags, n_features)
        The last rows, as many as the likelihood looks back to.
    """

    proba: np.ndarray | None
    rows: np.ndarray


class SequencePredictor(
    Summarised,
    SavedState,
    ComponentFeatures,
    DensityMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,
):
    """Inference for sequences under fitted states. `HDPHMMVB` derives from it and adds `fit`."""

    _check_state = check_chains
    _learner_kind = SEQUENCES

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = allows_missing(self.observation)
        tags.input_tags.sparse = takes_sparse(self.observation)
        return tags

    def _bring_up_to_date(self):
        # once, the weights of transitions of the fit's local step were kept beside the coefficients
        params = vars(self).pop("_params", None)
        if params is not None:
            names = tuple("_coef" if name == "_params" else name for name in self._published)
            vars(self).update(_coef=params.coef, _published=names)

    def _suited(self, x):
        """The `Fitted` model for rows ``x``; see `suited`."""
        return suited(self._model, self._statistics, self._coef, x)

    def _sequences(self, X, lengths, groups, **given):
        check_is_fitted(self)
        return check_sequences(self, X, lengths, groups, self._observation, reset=False, **given)

    def _blocks(self, batch):
        """Batches of whole sequences, one block after the other."""
        for first, last in pairwise(group_cuts(batch.indptr, self._block_rows())):
            yield batch.part(None, first, last)

    def _parts(self, batch):
        """Parts of the sequences of a batch; a long sequence has several, one after the other."""
        size = min(LOW_MEMORY_ROWS, self._block_rows()) if self.low_memory else self._block_rows()
        return (part for cuts in parts(batch.edges, size) for part in cuts)

    def _block_rows(self):
        return max(1, _BLOCK_NUMBERS // self.n_components_)

    def _own_columns(self):
        """How long visits of each state are, and where they end."""
        stays, K = np.diagonal(self.transmat_), self.n_components_
        leaves = self.transmat_ - np.diag(stays)
        out = leaves.sum(axis=1)
        ends = np.flatnonzero(out > 0)
        mean_visit, probability = np.full(K, np.inf), np.zeros(K)
        mean_visit[ends] = 1.0 / out[ends]
        probability[ends] = leaves[ends].max(axis=1) / out[ends]
        to = np.where(out > 0, leaves.argmax(axis=1), -1)
        return {"mean_visit": mean_visit, "next": to, "next_probability": probability}

    # ------------------------------------------------------------------ states

    def _log_rows(self):
        """Log expected probabilities (K + 1, K) of starts and transitions."""
        rows = np.vstack([self.startprob_, self.transmat_])
        return np.maximum(np.log(np.maximum(rows, np.finfo(float).tiny)), LOG_FLOOR)

    def _fill(self, out, batch, of_resp):
        """``out`` with ``of_resp(resp)`` of the responsibilities (n, K) of all modelled rows in it."""
        fitted, n_threads = self._suited(batch.x), threads(self.n_jobs)
        likelihood = fitted.likelihood
        params = ChainParams(fitted.coef, self._log_rows(), np.arange(self.n_components_))
        prepare, begin = partial(in_range, likelihood.prepare), 0
        for some in self._blocks(batch):
            with blas_on_one_thread():
                rows = PreparedRows(some, prepare, keep=not self.low_memory)
                for block in chain_blocks(
                    rows, likelihood, params, low_memory=self.low_memory, n_threads=n_threads
                ):
                    part = block.part
                    out[begin + part.begin : begin + part.end] = of_resp(block.resp)
            begin += rows.n_rows
        return out

    @lazy_on_chunks
    def predict_proba(
        self, X: Data, *, lengths: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> OfSequences:
        """Probability of each state at each row, given the whole sequence.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences, or the rows of all of them.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X.

        Returns
        -------
        resp : ndarray of shape (n_rows, n_components), or list of them
            One row for each row of X; one array for each sequence if X is a list. Rows that an
            autoregressive likelihood takes as given have the probabilities of the first row that it models.
        """
        sequences = self._sequences(X, lengths, groups)
        batch = sequences.batch
        resp = self._fill(np.empty((batch.n_entries, self.n_components_)), batch, np.asarray)
        return sequences.as_given(with_given_rows(resp, batch))

    @in_containers
    @by_name
    def transform(
        self, X: Data, *, lengths: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> OfSequences:
        """Probabilities of the states as features, the same as from `predict_proba`.

        Those of a row depend on the whole sequence, later rows included.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences, or the rows of all of them.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X.

        Returns
        -------
        resp : ndarray of shape (n_rows, n_components), or list of them
            As from `predict_proba`. After ``set_output``, a frame, or a list of frames.
        """
        return self.predict_proba(X, lengths=lengths, groups=groups)

    @by_name
    def fit_transform(
        self,
        X: Data,
        y: object = None,
        *,
        lengths: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> OfSequences:
        """Fit to X and return the probabilities of the states at its rows.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences, or the rows of all of them.
        y : array-like, default=None
            Not used, as in `fit`.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X.
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            As in `fit`.

        Returns
        -------
        resp : ndarray of shape (n_rows, n_components), or list of them
            As from `transform`.
        """
        fitted = self.fit(X, y, lengths=lengths, groups=groups, sample_weight=sample_weight)
        return fitted.transform(X, lengths=lengths, groups=groups)

    @lazy_on_chunks
    def predict(
        self, X: Data, *, lengths: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Any:
        """The state with the greatest probability at each row, given the whole sequence.

        The most probable path as a whole is found by `decode`.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences, or the rows of all of them.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X.

        Returns
        -------
        states : ndarray of shape (n_rows,), or list of them
            Positions of states, from 0 to ``n_components_ - 1``, in the form of `predict_proba`.
        """
        return self._states_of(self._sequences(X, lengths, groups))

    def _states_of(self, sequences):
        """The state of each row of checked sequences, in the form of `predict`."""
        batch = sequences.batch
        out = np.empty(batch.n_entries, dtype=np.intp)
        states = self._fill(out, batch, lambda resp: resp.argmax(axis=1))
        return sequences.as_given(with_given_rows(states, batch))

    @by_name
    def fit_predict(
        self,
        X: Data,
        y: object = None,
        *,
        lengths: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Fit to X and return the state of each row.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences, or the rows of all of them.
        y : array-like, default=None
            Not used. It may be labels that scikit-learn's tools pass on: one per row, or one per sequence
            if X is a list. Without ``lengths`` and ``groups``, another number of them is an error.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X.
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            As in `fit`.

        Returns
        -------
        states : ndarray of shape (n_rows,), or list of them
            As from `predict`.
        """
        fitted = self.fit(X, y, lengths=lengths, groups=groups, sample_weight=sample_weight)
        if hasattr(fitted, "labels_"):
            return fitted.labels_
        return fitted.predict(X, lengths=lengths, groups=groups)

    def predict_next(self, X: Data, message: Any = None) -> tuple[Floats, Any]:
        """Probability of each state at the last row of a running sequence.

        Each call takes the rows that have come since the last call. The probabilities are given the sequence
        so far, whereas those of `predict_proba` are given the whole sequence.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_features,)
            The next rows, or the next row. A row of a frame is a Series.
        message : Message, default=None
            The message that the last call returned; None at the beginning of a sequence.

        Returns
        -------
        proba : ndarray of shape (n_components,)
            Probabilities of the states. They are ``startprob_`` until an autoregressive likelihood has seen
            all rows that it takes as given.
        message : Message
            Message for the next call.
        """
        check_is_fitted(self)
        require_one_sequence(X)
        X, _ = check_rows(self, as_table(X), reset=False)
        lags = self._observation.lags
        message = Message(None, X[:0]) if message is None else self._checked(message)
        rows = stacked([message.rows, X])
        new = Message(message.proba, rows[max(0, rows.shape[0] - lags) :])
        if rows.shape[0] <= lags:
            return self.startprob_.copy(), new
        x, indptr = lagged(rows, np.array([0, rows.shape[0]]), lags)
        fitted = self._suited(x)  # lags may have gaps, too
        trans = np.ascontiguousarray(self.transmat_)
        first = self.startprob_ if message.proba is None else message.proba @ trans
        with blas_on_one_thread():
            z = in_range(fitted.likelihood.prepare, x)
            table = emission_table(fitted.likelihood, fitted.coef, z)
            kernel.forward(table, indptr, first[np.newaxis], trans, np.empty(len(table)), 1)
        return table[-1].copy(), new._replace(proba=table[-1].copy())

    def _checked(self, message):
        """Return the message; raise ValueError if it does not come from this model."""
        K, D, lags = self.n_components_, self.n_features_in_, self._observation.lags
        if isinstance(message, Message):
            known = message.proba is None or message.proba.shape == (K,)
            shape = message.rows.shape
            if known and len(shape) == 2 and shape[0] <= lags and shape[1] == D:
                return message
        raise ValueError(
            f"message={message!r} was not made by predict_next of this model, of {K} states and {D} "
            "features; begin anew with message=None."
        )

    # ------------------------------------------------------------------ densities

    def _densities(self, x):
        """Log predictive densities (T, K) of modelled rows in each state."""
        likelihood, s, _ = self._suited(x)
        z = in_range(likelihood.prepare, x)
        each = likelihood.log_predictive(self._model.prior, s, z)
        each += likelihood.log_base(x)[:, np.newaxis]
        return each

    def _log_prob(self, batch):
        """Log density (n,) of each modelled row, given the rows before it in its sequence; nan in gaps."""
        out, n_threads = np.empty(batch.n_entries), threads(self.n_jobs)
        trans = np.ascontiguousarray(self.transmat_)
        # weights (1, K) of the first state of a part whose sequence has begun before it
        message = None
        for part in self._parts(batch):
            x, indptr = modelled(batch.cut(part))
            table = self._densities(x)
            largest = table.max(axis=1)
            table -= largest[:, np.newaxis]
            np.exp(np.maximum(table, LOG_FLOOR, out=table), out=table)
            scale, first = np.empty(len(table)), message
            if part.offset == 0:
                first = np.tile(self.startprob_, (len(indptr) - 1, 1))
            most = threads_for_forward(*table.shape, n_threads)
            kernel.forward(table, indptr, first, trans, scale, most)
            message = table[-1:] @ trans
            own = out[part.begin : part.end]
            own[:] = np.log(scale) + largest
            if batch.lags:
                own[~are_whole(x)] = np.nan
        return out

    @lazy_on_chunks
    def score_samples(
        self, X: Data, *, lengths: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> OfSequences:
        """Log predictive density of each row given the rows before it in its sequence, in nats.

        Their sum is the log density of the sequence.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences, or the rows of all of them.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X.

        Returns
        -------
        log_prob : ndarray of shape (n_rows,), or list of them
            Log densities in the units of the data, in the form of `predict_proba`. They are nan for rows that
            an autoregressive or correlated likelihood takes as given: the first ones of a sequence, and
            those with missing entries in them or in the rows before.
        """
        sequences = self._sequences(X, lengths, groups)
        log_prob = self._log_prob(sequences.batch)
        return sequences.as_given(with_given_rows(log_prob, sequences.batch, fill=np.nan))

    def _score_sums(self, X, lengths=None, groups=None, sample_weight=None, **given):
        """Sum of the scores of rows that have one, and of their weights."""
        sequences = self._sequences(X, lengths, groups, sample_weight=sample_weight, **given)
        log_prob, weight = self._log_prob(sequences.batch), sequences.batch.weight
        is_modelled = ~np.isnan(log_prob)
        if weight is not None:
            weight = np.repeat(weight, sequences.batch.lengths)[is_modelled]
        return weighted_sums(log_prob[is_modelled], weight)

    @summed_over_chunks
    def score(
        self,
        X: Data,
        y: object = None,
        *,
        lengths: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean log predictive density per row, in nats; higher is better.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences, or the rows of all of them.
        y : array-like, default=None
            Not used. It may be labels that scikit-learn's tools pass on: one per row, or one per sequence
            if X is a list. Without ``lengths`` and ``groups``, another number of them is an error.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X.
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            A sequence of weight w counts as w equal sequences, as in `fit`.

        Returns
        -------
        score : float
            Weighted mean of `score_samples` over all rows that are modelled. Likelihoods that take other
            rows as given, such as autoregressions of another order, are scored by other rows.

        Raises
        ------
        ValueError
            If no row is modelled, because entries are missing.
        """
        total, n = self._score_sums(X, lengths, groups, sample_weight, y=y)
        if not n > 0:
            raise ValueError(
                f"X has no row to score: observation={self.observation!r} models rows without missing "
                "entries in them or in the rows before. Fill values in."
            )
        return float(total / n)

    @by_name
    def decode(
        self, X: Data, *, lengths: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> tuple[float, Any]:
        """Most probable paths of states, by the Viterbi algorithm.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_timesteps, n_features), or \
                {array-like, sparse matrix} of shape (n_rows, n_features)
            Sequences, or the rows of all of them.
        lengths : array-like of int, default=None
            Number of rows of X in each sequence, one after another.
        groups : array-like of shape (n_rows,), default=None
            The sequence of each row of X.

        Returns
        -------
        log_prob : float
            Log density of all sequences and paths together, in nats.
        states : ndarray of shape (n_rows,), or list of them
            States of the paths, in the form of `predict`.
        """
        sequences, n_threads = self._sequences(X, lengths, groups), threads(self.n_jobs)
        log_first = np.log(np.maximum(self.startprob_, np.finfo(float).tiny))
        log_trans = np.log(np.maximum(self.transmat_, np.finfo(float).tiny))
        log_prob, paths = 0.0, []
        for some in self._blocks(sequences.batch):
            indptr, each = some.edges, np.empty((some.n_entries, self.n_components_))
            for part in self._parts(some):
                each[part.begin : part.end] = self._densities(modelled(some.cut(part))[0])
            path, score = np.empty(len(each), dtype=np.intp), np.empty(len(indptr) - 1)
            first = np.tile(log_first, (len(score), 1))
            most = threads_for_viterbi(*each.shape, n_threads)
            kernel.viterbi(each, indptr, first, log_trans, path, score, most)
            log_prob += score.sum()
            paths.append(path)
        states = with_given_rows(np.concatenate(paths), sequences.batch)
        return float(log_prob), sequences.as_given(states)

    def sample(
        self, n_samples: int = 1, n_sequences: int = 1, random_state: RandomState = None
    ) -> tuple[Any, Any]:
        """Draw sequences from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows in each sequence.
        n_sequences : int, default=1
            Number of sequences.
        random_state : int, RandomState instance or None, default=None
            Seed. It is the estimator's own ``random_state`` if None.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), or list of them
            A sequence, or a list of them if ``n_sequences`` is more than 1. Columns that had categories in a
            frame hold these, and the dtype is then object.
        states : ndarray of shape (n_samples,), or list of them
            The states of the rows.
        """
        check_is_fitted(self)
        check_positive_integers(n_samples=n_samples, n_sequences=n_sequences)
        rng = checked_generator(self.random_state if random_state is None else random_state)
        likelihood = self._model.likelihood
        attributes = likelihood.attributes(self._model.prior, self._statistics)
        drawn = []
        for _ in range(n_sequences):
            states = self._path(n_samples, rng)
            rows = likelihood.sample(attributes, states, rng)
            drawn.append((with_categories(getattr(self, "_reading", None), rows), states))
        if n_sequences == 1:
            return drawn[0]
        return [x for x, _ in drawn], [states for _, states in drawn]

    def _path(self, n_samples, rng):
        """States (n_samples,) of a chain."""
        reach = np.cumsum(np.vstack([self.startprob_, self.transmat_]), axis=1)
        reach /= reach[:, -1:]
        path, row = np.empty(n_samples, dtype=np.intp), 0
        for t, u in enumerate(rng.random_sample(n_samples).tolist()):
            path[t] = np.searchsorted(reach[row], u, side="right")
            row = path[t] + 1
        return path
