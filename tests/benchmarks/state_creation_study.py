"""Successors of one state: how many are found, how pure, at what gain and cost.

Each case draws sequences from a true chain, takes some of its states (all, if not said otherwise) as
one state's runs, and lets `create_states` split them once; the states that are not split stay, with
their true rows. The prior is the one a model would have that far: empirical Bayes with the target
as one state. Of a target that holds many states some may be left to further births.

Columns: true states among the target's rows; how many were found, over the seeds; mean purity of the
rows that each found state holds, and how much of each true state stays in one; mean gain a row; in
how many seeds the gain is at least that of the true partition (or of one state), but for 0.001
nats a row; the worst shortfall; median CPU milliseconds. Rows of AR(1) cases have no states, but a
chain of states does explain them better than one Gaussian: "found 1" is not to be expected there.

    python -m tests.benchmarks.state_creation_study --seeds 10 --cases toy null
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import NamedTuple

import numpy as np

from sklearn_bnp.hmm.creation import create_states
from sklearn_bnp.hmm.nested_chain import Chain, NestedModel
from sklearn_bnp.hmm.nested_links import NestedSettings
from sklearn_bnp.hmm.sampling import StateSample
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood import BernoulliObservation, GaussianObservation
from sklearn_bnp.likelihood.seeding import summaries

from .report import data_file

MOST_ROWS = 4000


class Runs(NamedTuple):
    """Rows (n, D) of sequences with edges ``indptr``, their true states, and those in the target."""

    x: np.ndarray
    indptr: np.ndarray
    truth: np.ndarray
    target: tuple


def chain_labels(rng, n_sequences, length, trans, start=None):
    """Labels (n_sequences * length,) of independent chains, all steps at once."""
    K = len(trans)
    reach = np.cumsum(trans, axis=1)
    start = np.full(K, 1.0 / K) if start is None else start
    z = np.empty((length, n_sequences), dtype=int)
    z[0] = rng.choice(K, n_sequences, p=start)
    for t in range(1, length):
        z[t] = np.minimum(
            (reach[z[t - 1]] < rng.random_sample((n_sequences, 1))).sum(axis=1), K - 1
        )
    return z.T.ravel()


def sticky(K, stay):
    return np.full((K, K), (1 - stay) / max(1, K - 1)) * (1 - np.eye(K)) + stay * np.eye(K)


def gaussians(rng, labels, K, spread, D=2):
    """Rows of K Gaussians whose means lie on a circle, ``spread`` of their scale apart."""
    angle = 2 * np.pi * np.arange(K) / K
    radius = spread / (2 * np.sin(np.pi / K)) if K > 1 else 0.0
    means = np.zeros((K, D))
    means[:, :2] = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    factor = rng.standard_normal((K, D, D)) * 0.3 + np.eye(D)
    return means[labels] + np.einsum(
        "nij,nj->ni", factor[labels], rng.standard_normal((len(labels), D))
    )


def edges(n_sequences, length):
    return np.arange(n_sequences + 1) * length


def toy(K, stay, spread, D=2, n_sequences=32, length=1000, target=None):
    def draw(rng):
        labels = chain_labels(rng, n_sequences, length, sticky(K, stay))
        x = gaussians(rng, labels, K, spread, D)
        return Runs(x, edges(n_sequences, length), labels, tuple(target or range(K)))

    return draw


def noise(D):
    """Independent rows and columns."""

    def draw(rng):
        x = rng.standard_normal((4000, D))
        return Runs(x, edges(4, 1000), np.zeros(4000, dtype=int), (0,))

    return draw


def rare(share, stay=0.9):
    """Two states, one of them with few rows."""

    def draw(rng):
        trans = np.array([[1 - (1 - stay) * share / (1 - share), 0.0], [1 - stay, stay]])
        trans[0, 1] = 1 - trans[0, 0]
        labels = chain_labels(rng, 4, 1000, trans, np.array([1 - share, share]))
        return Runs(gaussians(rng, labels, 2, 6.0), edges(4, 1000), labels, (0, 1))

    return draw


def scattered(K, spread):
    """Runs of one row each."""

    def draw(rng):
        labels = rng.randint(K, size=2000)
        return Runs(gaussians(rng, labels, K, spread), edges(2000, 1), labels, tuple(range(K)))

    return draw


def autoregressive(phi):
    """No states at all, but rows next to each other are alike."""

    def draw(rng):
        x = rng.standard_normal((1000, 4, 2))
        for t in range(1, 1000):
            x[t] = phi * x[t - 1] + np.sqrt(1 - phi**2) * x[t]
        x = x.transpose(1, 0, 2).reshape(-1, 2)
        return Runs(x, edges(4, 1000), np.zeros(4000, dtype=int), (0,))

    return draw


def bits(K, stay, D=12):
    """Binary columns."""

    def draw(rng):
        labels = chain_labels(rng, 8, 500, sticky(K, stay))
        p = rng.beta(0.6, 0.6, size=(K, D))
        x = (rng.random_sample((len(labels), D)) < p[labels]).astype(float)
        return Runs(x, edges(8, 500), labels, tuple(range(K)))

    return draw


def mocap(rng):
    with np.load(data_file("mocap6.npz")) as data:
        x, indptr, truth = data["X"], data["doc_range"], data["TrueZ"]
    truth = np.unique(truth, return_inverse=True)[1]
    return Runs(x.astype(float), indptr.astype(np.int64), truth, tuple(range(truth.max() + 1)))


class Case(NamedTuple):
    name: str
    draw: object
    observation: object = None
    stickiness: float = 50.0


FULL, DIAG = GaussianObservation(), GaussianObservation("diag")
CASES = [
    Case("toy .98", toy(8, 0.98, 6.0), FULL),
    Case("toy .98 kappa 0", toy(8, 0.98, 6.0), FULL, 0.0),
    Case("toy .9", toy(8, 0.9, 6.0), FULL),
    Case("toy .9 D4", toy(8, 0.9, 6.0, D=4), FULL),
    Case("toy .9 diag", toy(8, 0.9, 6.0), DIAG),
    Case("toy .5", toy(8, 0.5, 6.0), FULL),
    Case("sixteen", toy(16, 0.9, 8.0), FULL),
    Case("sixteen D4", toy(16, 0.95, 8.0, D=4), FULL),
    Case("thirty", toy(30, 0.95, 6.0, D=4), FULL),
    Case("overlap 2.5", toy(8, 0.95, 2.5), FULL),
    Case("overlap 1.5", toy(8, 0.98, 1.5), FULL),
    Case("null full", toy(1, 1.0, 0.0, n_sequences=4), FULL),
    Case("null full small", toy(1, 1.0, 0.0, n_sequences=4, length=25), FULL),
    Case("null full D10", noise(10), FULL),
    Case("null diag", noise(2), DIAG),
    Case("null spherical", noise(2), GaussianObservation("spherical")),
    Case("null kappa 0", toy(1, 1.0, 0.0, n_sequences=4), FULL, 0.0),
    Case("null scattered", scattered(1, 0.0), FULL),
    Case("null bits", bits(1, 1.0), BernoulliObservation()),
    Case("null of 8", toy(8, 0.95, 6.0, target=(3,)), FULL),
    Case("AR(1) .5", autoregressive(0.5), FULL),
    Case("AR(1) .9", autoregressive(0.9), FULL),
    Case("two of 8", toy(8, 0.95, 6.0, target=(0, 1)), FULL),
    Case("three of 8", toy(8, 0.95, 6.0, target=(0, 3, 5)), FULL),
    Case("two near of 8", toy(8, 0.95, 2.0, target=(0, 1)), FULL),
    Case("two short of 8", toy(8, 0.95, 6.0, n_sequences=2, length=200, target=(0, 1)), FULL),
    Case("rare .01", rare(0.01), FULL),
    Case("rare .01 .5", rare(0.01, 0.5), FULL),
    Case("rare .003", rare(0.003), FULL),
    Case("scattered 4", scattered(4, 6.0), FULL),
    Case("scattered 2 near", scattered(2, 3.5), FULL),
    Case("bits 4", bits(4, 0.95), BernoulliObservation()),
    Case("bits 8", bits(8, 0.9), BernoulliObservation()),
    Case("mocap6", mocap, FULL),
    Case("mocap6 diag", mocap, DIAG),
]


class Outcome(NamedTuple):
    found: int
    true: int
    purity: float
    whole: float
    gain: float
    oracle: float
    seconds: float


def cut_runs(runs, rng):
    """The target's runs in the sequences, in random order, up to so many rows; their rows."""
    inside = np.isin(runs.truth, runs.target)
    ends = np.zeros(len(inside), dtype=bool)
    ends[runs.indptr[1:] - 1] = True
    first = inside & ~np.concatenate([[False], inside[:-1] & ~ends[:-1]])
    last = inside & ~np.concatenate([inside[1:] & ~ends[:-1], [False]])
    pairs = np.column_stack([np.flatnonzero(first), np.flatnonzero(last) + 1])
    pairs = pairs[rng.permutation(len(pairs))]
    keep = np.cumsum(pairs[:, 1] - pairs[:, 0]) <= MOST_ROWS
    pairs = np.sort(pairs[keep | (np.arange(len(pairs)) == 0)], axis=0)
    rows = np.concatenate([np.arange(a, b) for a, b in pairs])
    return rows, np.concatenate([[0], np.cumsum(pairs[:, 1] - pairs[:, 0])]).astype(np.int64)


def problem(case, seed):
    """Likelihood, adapted prior, sample, settings and truth of its rows."""
    rng = np.random.RandomState(seed)
    runs = case.draw(rng)
    likelihood = case.observation.bind(
        column_moments([Batch(None, runs.x, None)], covariance=case.observation.needs_covariance)
    )
    z = likelihood.prepare(runs.x)
    rows, indptr = cut_runs(runs, rng)
    inside = np.isin(runs.truth, runs.target)
    stay = np.setdiff1d(np.unique(runs.truth), runs.target)
    shares = np.column_stack([inside] + [runs.truth == k for k in stay]).astype(float)
    s = summaries(likelihood, z, shares)
    prior = likelihood.update_prior(likelihood.prior, s, 20)
    settings = NestedSettings(1.0, case.stickiness, s[1:])
    sample = StateSample(np.ascontiguousarray(z[rows]), indptr)
    return likelihood, prior, sample, settings, runs.truth[rows]


def oracle_gain(likelihood, prior, sample, settings, truth):
    """The gain of the true partition after some passes."""
    labels = np.unique(truth, return_inverse=True)[1]
    J = labels.max() + 1
    model = NestedModel(likelihood, prior, sample, settings)
    chain = model.labelled(summaries(likelihood, sample.z, np.eye(J)[labels]), labels)
    model.adapt(chain.s, 10)
    chain = model.iterate(chain, 10, 0.0)
    model.adapt(chain.s, 5)
    return model.gain(chain, prior) if len(chain.s) > 1 else 0.0


def run(case, seed, n_most):
    likelihood, prior, sample, settings, truth = problem(case, seed)
    rng = np.random.RandomState(seed + 1000)
    begin = time.process_time()
    nested = NestedModel(likelihood, prior, sample, settings, lenient=True)
    found = create_states(nested, n_most, rng)
    seconds = time.process_time() - begin
    oracle = oracle_gain(likelihood, prior, sample, settings, truth) / sample.total
    n_true = len(np.unique(truth))
    if found is None:
        return Outcome(1, n_true, np.bincount(truth).max() / len(truth), 1.0, 0.0, oracle, seconds)
    model = NestedModel(likelihood, prior, sample, settings)
    model.adapt(found.s, 5)
    labels = model.pass_over(Chain(*found[:2])).resp.argmax(axis=1)
    table = np.zeros((truth.max() + 1, len(found.s)))
    np.add.at(table, (truth, labels), 1)
    purity, whole = table.max(axis=0).sum() / len(truth), table.max(axis=1).sum() / len(truth)
    gain = found.gain / sample.total
    return Outcome(len(found.s), n_true, purity, whole, gain, oracle, seconds)


def report(case, outcomes):
    found = Counter(o.found for o in outcomes)
    true = sorted({o.true for o in outcomes})
    mean = np.mean([o[2:5] for o in outcomes], axis=0)
    good = sum(o.gain >= max(o.oracle, 0.0) - 1e-3 for o in outcomes)
    worst = min(o.gain - max(o.oracle, 0.0) for o in outcomes)
    print(
        f"{case.name:<18} {'/'.join(map(str, true)):<5} "
        f"{' '.join(f'{k}x{n}' for k, n in sorted(found.items())):<26} {mean[0]:.3f} {mean[1]:.3f} "
        f"{mean[2]:8.4f} {good:>3}/{len(outcomes)} {worst:8.4f} "
        f"{1000 * np.median([o.seconds for o in outcomes]):7.1f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=40, help="the most successors")
    parser.add_argument("--cases", nargs="*", help="those whose names contain one of these")
    options = parser.parse_args()
    print(
        "case               true  found x seeds              pure  whole     gain  good     worst      ms"
    )
    for case in CASES:
        if not options.cases or any(part in case.name for part in options.cases):
            report(case, [run(case, seed, options.most) for seed in range(options.seeds)])


if __name__ == "__main__":
    main()
