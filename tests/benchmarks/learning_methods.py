"""Memoized beside stochastic learning, at fixed numbers of components (NIPS 2013, Sec. 4; thesis Sec. 3.6).

*Truth*: starts from the true components, in ever smaller batches. What share of them do three laps keep?
Stochastic steps average with the start (3.52), so that what a batch lacks is not forgotten.

*Toy runs*: starts at random, with more components than needed. What is lacking to the best ELBO of all
fits of the same data, in nats an observation? For three learning rates of the NIPS paper, (decay, offset).

*Texts*: a corpus once, in 20 batches by `partial_fit`, beside scikit-learn's LatentDirichletAllocation:
completion of held-out documents, each model by its own inference, in nats a hidden token.

    python -m tests.benchmarks.learning_methods --seeds 5
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation

from sklearn_bnp import HDPHMMVB, DPMixtureVB, GaussianObservation, HDPTopicVB

from . import chains, corpora, generators, report

RATES = {"a": (0.51, 10.0), "b": (0.51, 100.0), "c": (0.9, 10.0)}  # (0.5 itself does not converge)
LAPS = 20
N_CLUSTERS, ROWS_EACH = 20, 200
N_TEXT_BATCHES = 20


def stochastic(kind, *args, rate=(0.7, 10.0), **settings):
    """An estimator that learns by stochastic steps."""
    decay, offset = rate
    return kind(
        *args, learning_method="stochastic", learning_decay=decay, learning_offset=offset,
        proposals=None, **settings,
    )  # fmt: skip


# ------------------------------------------------------------------ starts from the truth


def kept_clusters(seed):
    """Rows: batch size, how fits start, share of the true clusters that are left."""
    rng = np.random.default_rng(seed)
    centers = 8.0 * rng.normal(size=(N_CLUSTERS, 4))
    y = rng.permutation(np.repeat(np.arange(N_CLUSTERS), ROWS_EACH))
    X = centers[y] + rng.normal(size=(len(y), 4))
    starts = {"means": {"means_init": centers}, "labels": {"init_params": np.eye(N_CLUSTERS)[y]}}
    for size in (10, 20, 100):
        for name, start in starts.items():
            model = stochastic(DPMixtureVB, N_CLUSTERS, batch_size=size, max_iter=3, **start)
            found = model.set_params(random_state=seed).fit(X).predict(X)
            yield "clusters", size, name, len(np.unique(found)) / N_CLUSTERS


def kept_states(seed):
    """The same of the states of sequences; sizes are of batches in sequences."""
    data = chains.toy(seed)
    labels = np.concatenate([np.asarray(z) for z in data.states])
    K = int(labels.max()) + 1
    for size in (1, 4):
        model = stochastic(
            HDPHMMVB, K, batch_size=size, max_iter=3, init_params=np.eye(K)[labels],
            random_state=seed,
        ).fit(data.sequences)  # fmt: skip
        found = np.concatenate(model.predict(data.sequences))
        agreeing = [np.bincount(found[labels == k], minlength=K).argmax() for k in range(K)]
        yield "states", size, "labels", len(set(agreeing)) / K


def kept_topics(seed):
    """The same of topics of documents."""
    corpus = corpora.bars(seed)
    for size in (5, 20, 100):
        model = stochastic(
            HDPTopicVB, len(corpus.phi), batch_size=size, max_iter=3, init_params=corpus.phi,
            random_state=seed,
        ).fit(corpus.train)  # fmt: skip
        matched = corpora.match_topics(model.components_, corpus.phi).n_matched
        yield "topics", size, "topics", matched / len(corpus.phi)


# ------------------------------------------------------------------ toy runs


def toy_estimators(seed, rows):
    """Name -> data, number of observations, estimator."""
    patches, bars, states = generators.toy_patches(seed, rows), corpora.bars(seed), chains.toy(seed)
    zero_mean = GaussianObservation(zero_mean=True)
    return {
        "patches, K = 25, 100 batches": (
            patches.X, rows,
            DPMixtureVB(25, observation=zero_mean, n_batches=100, random_state=seed),
        ),
        "bars, K = 25, 10 batches": (
            bars.train, bars.train.sum(), HDPTopicVB(25, n_batches=10, random_state=seed),
        ),
        "states, K = 25, 8 batches": (
            states.sequences, states.n_rows, HDPHMMVB(25, n_batches=8, random_state=seed),
        ),
    }  # fmt: skip


def toy_runs(seed, rows):
    """Rows: data, method, ELBO an observation after ``LAPS`` laps at the most."""
    methods = {"memoized": {}, "full": {"learning_method": "full", "n_batches": None}}
    for name, (decay, offset) in RATES.items():
        methods[f"stochastic {name}"] = {
            "learning_method": "stochastic", "learning_decay": decay, "learning_offset": offset,
        }  # fmt: skip
    for data, (X, n, estimator) in toy_estimators(seed, rows).items():
        for method, how in methods.items():
            model = clone(estimator).set_params(proposals=None, max_iter=LAPS, **how)
            yield data, method, model.fit(X).lower_bound_ / n


# ------------------------------------------------------------------ texts


def texts(corpus, K, seed):
    """Rows: corpus, K, model, completion after one pass and after five."""
    split = corpora.completion(corpus.heldout, seed)
    n = corpus.train.shape[0]
    order = np.random.default_rng(seed).permutation(n)
    batches = [corpus.train[rows] for rows in np.array_split(order, N_TEXT_BATCHES)]
    ours = {"memoize": False, "random_state": seed, "total_samples": n}
    models = {
        "HDPTopicVB": stochastic(HDPTopicVB, K, **ours),
        "HDPTopicVB, k-means++": stochastic(HDPTopicVB, K, init_params="k-means++", **ours),
        "HDPTopicVB, dirichlet": stochastic(HDPTopicVB, K, allocation="dirichlet", **ours),
        "scikit-learn": LatentDirichletAllocation(K, total_samples=n, random_state=seed),
    }
    for name, model in models.items():
        scores = []
        for lap in range(5):
            for batch in batches:
                model.partial_fit(batch)
            if lap in (0, 4):
                score = corpora.completion_score(split, model.components_, model.transform)
                scores.append(report.number(score))
        yield [corpus.name, K, name, *scores]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000, help="of toy patches")
    args = parser.parse_args()
    limits = report.start("learning_methods", args.threads)
    warnings.simplefilter("ignore")

    kept = {}
    for seed in range(args.seeds):
        for study in (kept_clusters, kept_states, kept_topics):
            for *setting, share in study(seed):
                kept.setdefault(tuple(setting), []).append(share)
    table = [[*key, report.number(min(shares), ".2f")] for key, shares in kept.items()]
    report.print_table(["kind", "batch", "start", "least share kept"], table, title="Truth")

    found = {}
    for seed in range(args.seeds):
        for data, method, value in toy_runs(seed, args.rows):
            found.setdefault(data, {}).setdefault(method, []).append(value)
    table = []
    for data, values in found.items():
        best = np.max([np.array(each) for each in values.values()], axis=0)
        for method, each in values.items():
            gap = best - np.array(each)
            table.append([data, method, report.number(np.median(gap)), report.number(gap.max())])
    report.print_table(["data", "method", "median gap", "largest"], table, title="Toy runs")

    table = []
    for corpus in (corpora.nips(), corpora.docstrings()):
        for K in (20, 50):
            table.extend(texts(corpus, K, 0))
    report.print_table(["corpus", "K", "model", "1 pass", "5 passes"], table, title="Texts")
    limits.restore_original_limits()


if __name__ == "__main__":
    main()
