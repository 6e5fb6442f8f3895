"""The datasets that scikit-learn ships, under every likelihood that suits their columns: which K?

No family is true of real columns, so there is no true number either: where a family fits badly, many
components stand for the shape of few clusters. A number is sensible if it predicts rows that were held
out about as well as any other does, and if it takes no more components for that than it must. So
numbers that are set (``proposals=None``) are fitted beside the one that is found, to the same rows. For
Gaussians scikit-learn's mixtures are there too, the number chosen by BIC.

Targets: of what the best set number gains over a single component, on rows held out, at least 0.85;
and at most 1.5 times the components of the least set number that predicts so well.

    python -m tests.benchmarks.real_columns
    python -m tests.benchmarks.real_columns --data iris wine --seeds 10
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from . import report

DATA = ("iris", "wine", "breast_cancer", "digits")
KINDS = ("full", "diag", "spherical")
# In data that scikit-learn's mixtures are fitted to.
_MOST_NUMBERS = 50_000


class Suited(NamedTuple):
    """A likelihood for a dataset, and the rows as it takes them."""

    title: str
    X: np.ndarray
    observation: Callable[[], Any]


def bundled(name: str) -> tuple[np.ndarray, list[Suited]]:
    """Labels of a dataset of scikit-learn, and what suits it."""
    import sklearn_bnp as bnp

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    suited = [Suited(kind, X, lambda kind=kind: bnp.GaussianObservation(kind)) for kind in KINDS]
    if name != "digits":  # whose columns have one unit, as one variance for all of them wants
        suited[2] = suited[2]._replace(X=StandardScaler().fit_transform(X))
    suited.append(Suited("fixed variance", X, bnp.FixedVarianceGaussianObservation))
    if name == "digits":
        return y, [
            *suited,
            Suited("poisson", X, bnp.PoissonObservation),
            Suited("multinomial", X, bnp.MultinomialObservation),
            Suited("bernoulli, x > 7", (X > 7).astype(float), bnp.BernoulliObservation),
        ]
    quartiles = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    codes = np.sum(quartiles[:, np.newaxis] < X, axis=0).astype(float)
    return y, [*suited, Suited("categorical, quartiles", codes, bnp.CategoricalObservation)]


def fitted(suited: Suited, rows=slice(None), *, seed=0, **parameters):
    """A mixture of some of the rows."""
    from sklearn_bnp import DPMixtureVB

    model = DPMixtureVB(observation=suited.observation(), random_state=seed, **parameters)
    report.fit_timed(model, suited.X[rows])
    return model


class Heldout(NamedTuple):
    """Scores of rows held out, in nats a row, means over the folds."""

    found: float  # number of components that were found
    score: float
    scores: dict[int, float]  # of each number that was set; 1 is among them

    @property
    def share(self) -> float:
        """What the number found gains over 1, of what the best of those that were set gains."""
        return (self.score - self.scores[1]) / (max(self.scores.values()) - self.scores[1])

    @property
    def needed(self) -> float:
        """The least number set that predicts as well; infinite if none does."""
        return min((K for K, score in self.scores.items() if score >= self.score), default=np.inf)


def heldout(suited: Suited, numbers, n_splits=3, seed=0) -> Heldout:
    """The number found beside ``numbers`` that are set, on the same folds."""
    folds = list(KFold(n_splits, shuffle=True, random_state=seed).split(suited.X))

    def means(**parameters):
        models = [fitted(suited, train, seed=seed, **parameters) for train, _ in folds]
        scores = [m.score(suited.X[test]) for m, (_, test) in zip(models, folds, strict=True)]
        return np.mean([m.n_components_ for m in models]), np.mean(scores)

    found, score = means()
    return Heldout(found, score, {K: means(n_components=K, proposals=None)[1] for K in numbers})


def best_by_bic(X, kinds, numbers=(*range(1, 13), 20, 40)):
    """Covariance type and labels of scikit-learn's mixture with the least BIC."""
    X, found = StandardScaler().fit_transform(X), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for kind in kinds:
            for K in numbers:
                model = GaussianMixture(K, covariance_type=kind, random_state=0).fit(X)
                found.append((model.bic(X), kind, model.predict(X)))
    return min(found, key=lambda one: one[0])[1:]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="of the fits to all rows")
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    args = parser.parse_args()
    limits = report.start("real_columns", args.threads)
    rows, targets = [], []
    for name in args.data:
        y, every = bundled(name)
        numbers = (1, 2, 3, 5, 8, 12, 20, 40, 80) + ((120, 160) if name == "digits" else ())
        for suited in every:
            models = [fitted(suited, seed=seed) for seed in range(args.seeds)]
            aris = [adjusted_rand_score(y, model.predict(suited.X)) for model in models]
            tried = [K for K in numbers if len(y) // 4 >= K]
            held = heldout(suited, tried)
            tally = report.tally([model.n_components_ for model in models])
            row = [name, suited.title, tally, f"{np.median(aris):.3f}", f"{held.share:.2f}"]
            rows.append([*row, f"{held.found:.0f}", f"{held.needed:.0f}"])
            good = held.share >= 0.85 and held.found <= 1.5 * held.needed
            shown = f"{held.share:.2f}, {held.found:.0f} for {held.needed:.0f}"
            targets.append((f"{name}, {suited.title}", shown, ">= 0.85, <= 1.5 x", good))
        if every[0].X.size > _MOST_NUMBERS:  # it would take many minutes
            continue
        for kinds in (("full", "diag", "spherical", "tied"), *((kind,) for kind in KINDS)):
            kind, labels = best_by_bic(every[0].X, kinds)
            ari = f"{adjusted_rand_score(y, labels):.3f}"
            title = f"scikit-learn, {kind}" + (", best of all" if len(kinds) > 1 else "")
            rows.append([name, title, str(len(np.unique(labels))), ari, "", "", ""])
    report.print_table(["data", "model", "K", "ARI", "share", "K of folds", "needed"], rows)
    report.print_targets(targets)
    limits.unregister()


if __name__ == "__main__":
    main()
