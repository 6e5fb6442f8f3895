"""Default priors on the columns of scikit-learn's own datasets: is the number of components sensible?

What that means is in `tests/benchmarks/real_columns.py`, which measures it with more care.
"""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tests.benchmarks.real_columns import DATA, best_by_bic, bundled, fitted, heldout

SUITED = {name: bundled(name) for name in DATA}
SHORT = {
    ("iris", "full"),
    ("iris", "diag"),
    ("iris", "fixed variance"),
    ("wine", "full"),
    ("wine", "categorical, quartiles"),
}
QUICK = SHORT - {("iris", "full"), ("iris", "fixed variance")}
CASES = [
    pytest.param(
        name, suited, id=f"{name}-{suited.title}",
        marks=[] if (name, suited.title) in QUICK else [pytest.mark.slow],
    )
    for name, (_, every) in SUITED.items()
    for suited in every
]  # fmt: skip


@pytest.mark.extended
@pytest.mark.parametrize(("name", "suited"), CASES)
def test_the_number_found_predicts_as_well_as_any(name, suited):
    """On rows held out it gains what the best number set gains over one component, with no more of them."""
    numbers = (1, 2, 4, 8) if (name, suited.title) in SHORT else (1, 4, 16, 40, 80, 160)
    held = heldout(suited, [k for k in numbers if k <= len(suited.X) // 4])
    # of 60 rows a fold, scores of neighbouring numbers differ by a tenth of the gain
    assert held.share > 0.8, held
    assert 1 < held.found <= 1.5 * held.needed, held


@pytest.mark.quarter
@pytest.mark.parametrize("n_seeds", [3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "numbers", "least"), [("iris", {3}, 0.85), ("wine", {3, 4}, 0.8)])
def test_clusters_are_the_classes(name, numbers, least, n_seeds):
    """Told nothing, no worse than scikit-learn's mixtures with the number and the kind chosen by BIC.

    Of wine, the best bound found, -3345.6, has four components; that of the three classes is -3352.0.
    """
    y, every = SUITED[name]
    _, labels = best_by_bic(every[0].X, ("full", "diag"), range(1, 6))
    peer = adjusted_rand_score(y, labels)
    found = []
    for seed in range(n_seeds):
        model = fitted(every[0], seed=seed)
        found.append(adjusted_rand_score(y, model.predict(every[0].X)))
        assert model.n_components_ in numbers
    assert np.mean(found) > max(least, peer)  # of single seeds one may be a little below
    assert min(found) > least - 0.05


@pytest.mark.slow
def test_digits_are_told_apart():
    """Ten digits in 64 columns, some of which never change."""
    y, every = SUITED["digits"]
    model = fitted(every[0])
    labels = model.predict(every[0].X)
    assert 10 <= model.n_components_ <= 13
    assert adjusted_rand_score(y, labels) > 0.8
    # a few odd rows may be by themselves
    assert np.sum(np.bincount(labels) > 100) == 10
