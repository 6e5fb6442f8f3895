"""Nats that the objective would lose if a component were joined with another, from the statistics alone.

Design note
-----------
(a) All statistics of a union but its entropy follow from those of its members. Of the entropy there are a
    lower and an upper bound, and so there are of the loss. They agree where no row is shared.
(b) The greatest loss is exact for what is kept: it is the change of the objective when the union is made in
    these statistics, as when models are combined or a stream forgets.
(c) Pairs are chosen by estimates, as merges choose theirs, and the loss of the best pair of each component is
    then found exactly, at parameters of the model that suit the union.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .affinity import near_pairs, reassignment_loss, union_evidence

# Pairs are of a component and one of so many nearest ones; see `near_pairs`.
_N_NEIGHBORS = 8


class MergeLosses(NamedTuple):
    """The best merge of each component. Positions are -1, and losses NaN, where there is no other component.

    Attributes
    ----------
    neighbor : ndarray of intp, shape (K,)
        Position of the component that would explain its rows best.
    partner : ndarray of intp, shape (K,)
        Position of the component with which a union would lose least.
    least, most : ndarray, shape (K,)
        Bounds of what this union would lose, in nats. Negative numbers are gains.
    """

    neighbor: np.ndarray
    partner: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def nothing(cls, n_components):
        """Of components that cannot be joined."""
        nobody, nothing = np.full(n_components, -1), np.full(n_components, np.nan)
        return cls(nobody, nobody.copy(), nothing, nothing.copy())

    def listed(self, order):
        """Return the losses in another order of components: ``order`` (K,) are their present positions."""
        place = np.append(np.argsort(order), -1)  # the last one stands for nobody
        return MergeLosses(
            place[self.neighbor[order]],
            place[self.partner[order]],
            self.least[order],
            self.most[order],
        )

    @classmethod
    def of_pairs(cls, neighbor, pairs, gains, found):
        """From the best of all pairs.

        Parameters
        ----------
        neighbor : ndarray of intp, shape (K,)
        pairs : ndarray of intp, shape (M, 2)
        gains : ndarray, shape (M,)
            By which the best pair of each component is chosen.
        found : callable
            ``found(pair)`` returns the least and the greatest loss of a pair.
        """
        out, known = cls.nothing(len(neighbor)), {}
        for k in range(len(neighbor)):
            own = np.flatnonzero((pairs == k).any(axis=1))
            best = int(own[np.argmax(gains[own])])
            if best not in known:
                known[best] = found(tuple(pairs[best].tolist()))
            out.partner[k] = pairs[best].sum() - k
            out.least[k], out.most[k] = known[best]
        return out._replace(neighbor=neighbor)


def merge_losses(model, totals):
    """`MergeLosses` of the components of ``totals`` under a `Model`."""
    K = len(totals.uids)
    if K < 2:
        return MergeLosses.nothing(K)
    loss = reassignment_loss(model, totals)
    near = near_pairs(model, totals, _N_NEIGHBORS, loss)
    np.fill_diagonal(loss, np.inf)
    i, j = np.nonzero(np.triu(near, 1))
    pairs = np.column_stack([i, j])
    own = model.likelihood.evidence(model.prior, totals.s)
    union = union_evidence(model.likelihood, model.prior, totals.s, i, j)
    gains = union - own[i] - own[j] + model.least_union_entropies(totals, i, j)
    gains = gains + model.union_gains(totals, pairs.tolist())
    value = model.elbo(totals, own)

    def found(pair):
        most = value - _after_union(model, totals, pair)
        slack = model.union_slack(totals, *(np.array([k]) for k in pair))[0]
        return most - slack, most

    return MergeLosses.of_pairs(np.argmin(loss, axis=1), pairs, gains, found)


def _after_union(model, totals, pair):
    """The objective after the union of a pair of components, in nats."""
    members = tuple(totals.uids[list(pair)].tolist())
    after = model.blind_union([(members, members[0])]).replay(totals, None)
    after, there = model.in_order(after)
    return there.elbo(after)
