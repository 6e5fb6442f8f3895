"""Is a model combined of ten parts as good as one fit of all? Bound, held-out score, K and CPU.

Data are cut into parts, each of which is fitted alone; `combine` makes one model of these; one fit is made
of all data; and fits go over all data for some laps, from the combined model. Bound and score are in nats a
token or a row. For documents the score is the held-out completion.

    python -m tests.benchmarks.combined bars lda20 chains
    python -m tests.benchmarks.combined mnist nips

Seed 0; doc/combining.rst has what is to be learned from it. NIPS takes the longest, as
laps from the combined model have 1,308 topics.
"""

from __future__ import annotations

from copy import deepcopy
from time import process_time
from typing import NamedTuple

import numpy as np

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, combine

from . import report
from .corpora import bars, completion, completion_score, fold_in, lda, nips

LAPS = (1, 5, 10, 50)
N_CHAIN_ROWS = 100


class Problem(NamedTuple):
    """Data as a list of parts, what fits them, how they are joined, their size, and the held-out score."""

    make: object
    parts: list
    joined: object
    size: float
    score: object


def of_documents(corpus, n_parts):
    """Parts of whole documents."""
    X = corpus.train.tocsr()
    cuts = np.array_split(np.arange(X.shape[0]), n_parts)
    split = completion(corpus.heldout[:60], 0)

    def score(model):
        phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
        prior = model.doc_topic_prior_ * model.topic_probs_
        return completion_score(split, phi, fold_in(phi, prior, 200))

    return Problem(
        lambda: HDPTopicVB(random_state=0, max_iter=50), [X[cut] for cut in cuts],
        lambda parts: X, float(X.sum()), score,
    )  # fmt: skip


def chains(n_states=6, spread=3.0, stay=0.9, n_sequences=20, n_parts=10):
    """Sequences of overlapping Gaussian states, with four more that are held out."""
    rng = np.random.default_rng(1)
    trans = (1 - stay) * rng.dirichlet(np.full(n_states, 0.5), n_states) + stay * np.eye(n_states)
    means = np.random.default_rng(5).normal(scale=spread, size=(n_states, 2))

    def sequence():
        states = [rng.integers(n_states)]
        while len(states) < N_CHAIN_ROWS:
            states.append(rng.choice(n_states, p=trans[states[-1]]))
        return means[states] + rng.normal(size=(N_CHAIN_ROWS, 2))

    X = [sequence() for _ in range(n_sequences)]
    heldout = [sequence() for _ in range(4)]
    step = n_sequences // n_parts
    return Problem(
        lambda: HDPHMMVB(random_state=0), [X[i : i + step] for i in range(0, n_sequences, step)],
        lambda parts: X, n_sequences * N_CHAIN_ROWS,
        lambda model: model.score(heldout),
    )  # fmt: skip


def mnist(n_rows=20_000, n_parts=10):
    """Images in 50 principal components, full covariances."""
    with np.load(report.data_file("mnist_pca50.npz")) as data:
        X, heldout = (data[name].astype(float) for name in ("X_train", "X_test"))
    return Problem(
        lambda: DPMixtureVB(random_state=0), np.array_split(X[:n_rows], n_parts),
        np.concatenate, n_rows, lambda model: model.score(heldout[:5000]),
    )  # fmt: skip


PROBLEMS = {
    "bars": lambda: of_documents(bars(0, n_docs=2000), 10),
    "lda20": lambda: of_documents(lda(0), 10),
    "nips": lambda: of_documents(nips(0), 10),
    "chains": chains,
    "chains, near": lambda: chains(8, 1.5, 0.8),
    "mnist": mnist,
}


def rows_of(problem):
    """Rows of the table: the parts, the combined model, the fit of all, and laps from the combined model."""

    def timed(step):
        start = process_time()
        return step(), process_time() - start

    def row(name, model, seconds):
        bound, score = model.lower_bound_ / problem.size, problem.score(model)
        return (name, model.n_components_, f"{bound:.4f}", f"{score:.4f}", f"{seconds:.1f}")

    fits, seconds = timed(lambda: [problem.make().fit(x) for x in problem.parts])
    bound = sum(model.lower_bound_ for model in fits) / problem.size
    score = np.mean([problem.score(model) for model in fits])
    K = "-".join(str(f([model.n_components_ for model in fits])) for f in (min, max))
    yield "parts, mean score", K, f"{bound:.4f}", f"{score:.4f}", f"{seconds:.1f}"
    model, seconds = timed(lambda: combine(fits))
    yield row("combined", model, seconds)
    everything = problem.joined(problem.parts)
    yield row("fit of all", *timed(lambda: problem.make().fit(everything)))
    for laps in LAPS:
        later = deepcopy(model).set_params(warm_start=True, max_iter=laps)
        later, seconds = timed(lambda later=later: later.fit(everything))
        yield row(f"combined, {later.n_iter_} laps", later, seconds)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("problems", nargs="+", choices=sorted(PROBLEMS))
    args = parser.parse_args()
    limits = report.start("combined", args.threads)
    header = ("model", "K", "bound", "held out", "CPU s")
    with limits:
        for name in args.problems:
            report.print_table(header, rows_of(PROBLEMS[name]()), name)


if __name__ == "__main__":
    main()
