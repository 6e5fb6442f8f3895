"""A proposal of one's own: near pairs of components are pooled, and split anew.

Two components may share the rows of two clusters in the wrong way, each with half of both. No birth and no
merge alone leads out of this. ``doc/add_a_proposal.rst`` explains the example.

    python examples/regroup_proposal.py
"""

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, Proposal, Sample, SplitTrial
from sklearn_bnp.engine import Failures, reassignment_loss
from sklearn_bnp.mixture import create


class Regroup(Proposal):
    """Replace each of the ``max_pairs`` nearest pairs of components by two others."""

    kind = "regroup"
    suits = ("mixture",)

    def __init__(self, max_pairs=5):
        self.max_pairs = max_pairs

    def reset(self):
        self._failures = Failures(change=0.1)  # a failure counts until the mass changes by 10 %

    def wants(self, totals):
        return totals.uids.tolist()  # which pairs are near is known only when the lap ends

    def plan(self, context):
        loss = reassignment_loss(context.model, context.totals)
        pairs = np.column_stack(np.triu_indices(len(loss), 1))
        order = np.argsort(np.minimum(loss, loss.T)[tuple(pairs.T)], kind="stable")
        trials = [self._trial(context, pair) for pair in pairs[order[: self.max_pairs]]]
        return [trial for trial in trials if trial is not None]

    def judged(self, trial, accepted, mass, gain):
        self._failures.judged(trial.removed, accepted, mass)

    def _trial(self, context, pair):
        totals = context.totals
        uids = tuple(totals.uids[pair].tolist())
        mass = totals.n[pair[0]]  # verdicts tell the mass of the first component
        samples = [context.samples.get(uid) for uid in uids]
        if any(sample is None for sample in samples) or self._failures.blocked(uids, mass):
            return None
        sample, s = self._pooled(samples, totals.n[pair]), totals.s[pair].sum(axis=0)
        others = np.delete(totals.s, pair, axis=0)
        new = create(context.model, sample, s, others, n_seeds=2, attempt=0, rng=context.rng)
        if new is None or new.gain <= 0:  # the pair is better as one component: a task for `Merge`
            self._failures.note(uids, mass)
            return None
        return SplitTrial(self.kind, uids, context.new_uids(len(new.coef)), new.coef)

    def _pooled(self, samples, n):
        rate = np.array([sample.total for sample in samples]) / n  # the denser one is weighted down
        z, mass = (np.concatenate([sample[i] for sample in samples]) for i in range(2))
        weight = np.repeat(rate.min() / rate, [len(sample.mass) for sample in samples])
        if samples[0].weight is not None:
            weight *= np.concatenate([sample.weight for sample in samples])
        return Sample(z, mass, weight)


def main():
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], 1000)
    X = rng.standard_normal((2000, 2)) * [4.0, 0.2]  # two long bars, one above the other,
    X[:, 1] += 2.0 * labels
    halves = np.eye(2)[(X[:, 0] > 0).astype(int)]  # which start as their left and right halves
    for name, proposals in {"no proposals": None, "regroup": (Regroup(),)}.items():
        model = DPMixtureVB(proposals=proposals, init_params=halves, random_state=0).fit(X)
        found, n_laps = adjusted_rand_score(labels, model.predict(X)), model.n_iter_
        print(f"{name:<13} K={model.n_components_}  Rand index {found:.3f}  {n_laps} laps")


if __name__ == "__main__":
    main()
