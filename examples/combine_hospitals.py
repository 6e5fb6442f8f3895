"""Three hospitals cluster their own patients, and `combine` makes one model. No patient's row travels.

Two kinds of patients are everywhere, and each hospital has one kind of its own. Each fits its rows alone
and saves the model; the files are all that leaves the house. The combined model has the kinds of all
hospitals, and is about as good as one fit of all rows, which is made here for comparison. A fourth hospital
then sends its rows by `partial_fit`.

    python examples/combine_hospitals.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import sklearn_bnp
from sklearn_bnp import DPMixtureVB, combine

KINDS = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0], [4.0, -8.0], [-8.0, 4.0]])
SEEN = [[0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 1, 5]]  # kinds that each hospital has


def patients(hospital, rng, n_rows=400):
    """Rows of a hospital."""
    return KINDS[rng.choice(SEEN[hospital], n_rows)] + rng.standard_normal((n_rows, 2))


def main():
    rng = np.random.default_rng(0)
    rows = [patients(hospital, rng) for hospital in range(4)]
    heldout = np.concatenate([patients(hospital, rng, 200) for hospital in range(3)])

    with tempfile.TemporaryDirectory() as folder:
        for hospital in range(3):
            model = DPMixtureVB(random_state=hospital).fit(rows[hospital])
            model.save(Path(folder) / f"hospital_{hospital}.bnp")
            print(
                f"hospital {hospital}: {model.n_components_} kinds, score {model.score(heldout):.3f}"
            )
        models = [sklearn_bnp.load(path) for path in sorted(Path(folder).iterdir())]

    model, whole = combine(models), DPMixtureVB(random_state=0).fit(np.concatenate(rows[:3]))
    for name, one in (("combined", model), ("fit of all rows", whole)):
        bound = one.lower_bound_ / 1200
        print(
            f"{name}: {one.n_components_} kinds, ELBO {bound:.3f} a row, score {one.score(heldout):.3f}"
        )

    model.partial_fit(rows[3])
    print(f"after hospital 3: {model.n_components_} kinds")


if __name__ == "__main__":
    main()
