"""A proposal of one's own: components are split at the mean of a column that is known to matter.

Births look for new components in all columns alike. If you know that one column tells kinds of rows apart,
such as the reading of one sensor, you can propose to split each component there.
``doc/add_a_proposal.rst`` explains the example.

    python examples/split_proposal.py
"""

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, Proposal, SplitTrial
from sklearn_bnp.engine import Failures


class SplitAtColumn(Proposal):
    """Split components of at least ``min_rows`` rows at their mean of one column."""

    kind = "split"
    suits = ("mixture",)

    def __init__(self, column=0, min_rows=20):
        self.column = column
        self.min_rows = min_rows

    def reset(self):
        self._failures = Failures(change=0.1)  # a failure counts until the mass changes by 10 %

    def wants(self, totals):
        sizes = zip(totals.uids.tolist(), totals.n.tolist(), strict=True)
        return [uid for uid, n in sizes if not self._failures.blocked(uid, n)]

    def plan(self, context):
        room = context.max_components - len(context.totals.uids)
        trials = [
            self._trial(context, uid) for uid in self.wants(context.totals)[: int(min(room, 100))]
        ]
        return [trial for trial in trials if trial is not None]

    def judged(self, trial, accepted, mass, gain):
        self._failures.judged(trial.removed[0], accepted, mass)

    def _trial(self, context, uid):
        sample = context.samples.get(uid)
        if sample is None or sample.mass.sum() < self.min_rows:
            return None
        likelihood, x = context.model.likelihood, sample.z[:, self.column]
        own = sample.mass if sample.weight is None else sample.mass * sample.weight
        above = x > np.average(x, weights=own)
        s = np.empty((2, likelihood.n_statistics))  # statistics of both parts of the sample
        likelihood.summarise(sample.z, np.column_stack([above, ~above]) * own[:, np.newaxis], s)
        if s[:, -1].min() <= 0:
            return None
        coef = likelihood.coefficients(context.model.prior, s)
        coef[:, -1] += np.log(s[:, -1])
        return SplitTrial(self.kind, (uid,), context.new_uids(2), coef)


def main():
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], 1000)
    X = rng.standard_normal((2000, 2)) * [4.0, 0.2]  # two long bars, one above the other,
    X[:, 1] += 2.0 * labels
    halves = np.eye(2)[(X[:, 0] > 0).astype(int)]  # which start as their left and right halves
    for name, proposals in {
        "merge": ("merge",),
        "split, merge": (SplitAtColumn(1), "merge"),
    }.items():
        model = DPMixtureVB(proposals=proposals, init_params=halves, random_state=0).fit(X)
        found, n_laps = adjusted_rand_score(labels, model.predict(X)), model.n_iter_
        print(f"{name:<13} K={model.n_components_}  Rand index {found:.3f}  {n_laps} laps")


if __name__ == "__main__":
    main()
