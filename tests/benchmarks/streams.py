"""Which estimator for a stream that never ends: three that keep no rows, on two streams of documents.

*Clusters*: documents of 50 rows, each of three of 12 clusters in 4 columns; half of the clusters appear
only in the second half of the stream. *Pixels*: crops of scikit-learn's two photographs, rows (x, y, L,
a, b). Both in epochs, and scored on documents that come after: the mean log predictive density of rows, for
a mixture of all of them, and for topics of a fifth of each document's rows given the others.

`DPMixtureVB` (``memoize=False``) knows no documents; `HDPTopicVB` (``memoize=False``) is stochastic and
has the number of topics that it is told: here, what `MemoryBoundedTopicVB` found.

    python -m tests.benchmarks.streams
"""

from __future__ import annotations

import pickle
import warnings

import numpy as np

from sklearn_bnp import DPMixtureVB, GaussianObservation, HDPTopicVB, MemoryBoundedTopicVB

from . import images, report


def cluster_epochs(n_epochs, seed):
    """Rows and documents of each epoch, and of one more, which is like the last."""
    rng = np.random.default_rng(seed)
    centers = 6.0 * rng.standard_normal((12, 4))
    for epoch in range(n_epochs + 1):
        there = 6 if 2 * epoch < n_epochs else 12
        labels = [rng.choice(rng.choice(there, 3, replace=False), 50) for _ in range(20)]
        labels = np.concatenate(labels)
        yield centers[labels] + rng.standard_normal((len(labels), 4)), np.repeat(np.arange(20), 50)


def pixel_epochs(n_epochs, seed):
    """The same of pixels of crops."""
    rng = np.random.default_rng(seed)
    for _ in range(n_epochs + 1):
        yield images.documents(images.colour_crops(8, rng, size=80, step=4))


def measure(name, model, epochs, test, groups, *, of_documents, passes_groups):
    """A row of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with report.Clock() as clock:
            for X, own in epochs:
                model.partial_fit(X, **({"groups": own} if passes_groups else {}))
    alone = np.nan if of_documents else model.score(test)
    together = model.score(test, groups=groups) if of_documents else np.nan
    size = len(pickle.dumps(model)) / 1e3
    return [name, model.n_components_, report.number(alone), report.number(together),
            f"{size:.0f}", f"{clock.cpu:.1f}"]  # fmt: skip


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--memory-bound", type=int, default=20_000)
    args = parser.parse_args()
    limits = report.start("streams", args.threads)
    for title, make in {"clusters": cluster_epochs, "pixels": pixel_epochs}.items():
        *epochs, (test, groups) = make(args.epochs, 0)
        observation = GaussianObservation(resolution=None)
        n_documents = sum(len(np.unique(own)) for _, own in epochs)
        bounded = MemoryBoundedTopicVB(
            args.memory_bound, observation=observation, max_components=60,
            target_points=sum(len(X) for X, _ in epochs), target_documents=n_documents, tol=1e-4,
        )  # fmt: skip
        rows = [
            measure("MemoryBoundedTopicVB", bounded, epochs, test, groups,
                    of_documents=True, passes_groups=True),
        ]  # fmt: skip
        mixture = DPMixtureVB(observation=observation, memoize=False, max_components=60)
        rows.append(measure("DPMixtureVB", mixture, epochs, test, groups,
                            of_documents=False, passes_groups=False))  # fmt: skip
        topics = HDPTopicVB(
            bounded.n_components_, observation=observation, learning_method="stochastic",
            memoize=False, total_samples=n_documents, init_params="k-means++", random_state=0,
        )  # fmt: skip
        rows.append(measure("HDPTopicVB, stochastic", topics, epochs, test, groups,
                            of_documents=True, passes_groups=True))  # fmt: skip
        report.print_table(
            ["estimator", "K", "score", "with documents", "kB pickled", "cpu s"], rows, title=title
        )
    limits.unregister()


if __name__ == "__main__":
    main()
