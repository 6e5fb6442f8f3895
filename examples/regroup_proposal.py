"""A proposal of one's own, outside the package: two components are pooled and split anew.

Births split, merges join; neither helps where two components share out the same rows in the wrong
way. ``doc/add_a_proposal.rst`` goes through it.

    python examples/regroup_proposal.py
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.engine.affinity import reassignment_loss
from sklearn_bnp.engine.failures import Failures
from sklearn_bnp.engine.proposal import Proposal
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.engine.trials import SplitTrial
from sklearn_bnp.mixture.creation import create


class Regroup(Proposal):
    """Replace the two components of a pair by two others.

    Parameters
    ----------
    max_pairs : int, default=5
        Pairs a lap, the nearest ones first.
    """

    kind = "regroup"

    def __init__(self, max_pairs=5):
        self.max_pairs = max_pairs

    def reset(self):
        """Forget all failures: a pair is tried again once its mass has changed by 10 %."""
        self._failures = Failures(change=0.1)

    def wants(self, totals):
        """Rows of every component: which pairs are near is only known at the end of the lap."""
        return totals.uids.tolist() if len(totals.uids) > 1 else []

    def plan(self, context):
        """A split trial for each of the nearest pairs for which two successors were found."""
        totals, trials = context.totals, []
        for i, j in self._nearest_pairs(context):
            pair = tuple(totals.uids[[i, j]].tolist())
            mass = totals.n[i]
            sample = self._pooled(context, pair, totals.n[[i, j]])
            if sample is None or self._failures.blocked(pair, mass):
                continue
            pooled, others = totals.s[i] + totals.s[j], np.delete(totals.s, [i, j], axis=0)
            attempt = self._failures.count(pair, mass)
            creation = create(context.model, sample, pooled, others, 2, attempt, context.rng)
            if creation is None or creation.gain <= 0:  # nothing, or a task for a merge
                self._failures.note(pair, mass)
                continue
            created = context.new_uids(len(creation.coef))
            trials.append(SplitTrial(self.kind, pair, created, creation.coef))
        return trials

    def _nearest_pairs(self, context):
        """Positions of pairs by increasing loss of explaining one's rows by the other."""
        loss = reassignment_loss(context.model, context.totals)
        i, j = np.triu_indices(len(loss), 1)
        best = np.argsort(np.minimum(loss[i, j], loss[j, i]), kind="stable")[: self.max_pairs]
        return list(zip(i[best].tolist(), j[best].tolist(), strict=True))

    def _pooled(self, context, pair, n):
        """One `Sample` of both components' rows, which may have been drawn at different rates."""
        parts = [context.samples.get(uid) for uid in pair]
        if any(part is None for part in parts):
            return None
        rate = np.array([part.total for part in parts]) / n
        weight = np.repeat(rate.min() / rate, [len(part.z) for part in parts])
        if parts[0].weight is not None:
            weight *= np.concatenate([part.weight for part in parts])
        z, mass = (
            np.concatenate(pieces) for pieces in zip(*(part[:2] for part in parts), strict=True)
        )
        return Sample(z, mass, weight)

    def judged(self, trial, accepted, mass, gain):
        """The scheduler's verdict: remember failures."""
        if not accepted:
            self._failures.note(trial.removed, mass)


def two_bars(n_rows, rng):
    """Two long parallel bars; k-means halves them across, not along."""
    labels = rng.integers(2, size=n_rows)
    X = rng.standard_normal((n_rows, 2)) * [4.0, 0.2]
    X[:, 1] += 2.0 * labels - 1.0
    return X, labels


def main():
    X, labels = two_bars(2000, np.random.default_rng(0))
    halves = np.eye(2)[(X[:, 0] > 0).astype(int)]
    for name, proposals in {
        "no proposals": None,
        "regroup": (Regroup(),),
        "all": ("birth", "merge", "delete", Regroup()),
    }.items():
        model = DPMixtureVB(proposals=proposals, init_params=halves, random_state=0).fit(X)
        rand = adjusted_rand_score(labels, model.predict(X))
        accepted = sum(lap.accepted.get("regroup", 0) for lap in model.history_)
        print(
            f"{name:<13} K={model.n_components_}  ELBO {model.lower_bound_:.1f}  "
            f"adjusted Rand index {rand:.3f}  {accepted} regroups in {model.n_iter_} laps"
        )


if __name__ == "__main__":
    main()
