"""
Hospitals that keep their patients' rows
========================================

Three hospitals cluster their own patients, and only the fitted models leave the house.
`~sklearn_bnp.combine` makes one model of them, which has the kinds of patients of all hospitals. It is about
as good as a fit of all rows together, which nobody is allowed to make; here it is made for comparison. A
fourth hospital then adds its rows.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sklearn_bnp
from sklearn_bnp import DPMixtureVB, combine

# %%
# The hospitals
# -------------
# Two kinds of patients are everywhere. Each hospital has one more, which the others have never seen.

KINDS = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0], [4.0, -8.0], [-8.0, 4.0]])
SEEN = [[0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 1, 5]]  # kinds that each hospital has
RNG = np.random.default_rng(0)


def patients(hospital, n_rows=400):
    """Rows of a hospital."""
    return KINDS[RNG.choice(SEEN[hospital], n_rows)] + RNG.normal(size=(n_rows, 2))


rows = [patients(hospital) for hospital in range(4)]
heldout = np.concatenate([patients(hospital, 200) for hospital in range(3)])

# %%
# Each alone, then together
# -------------------------
# A model is saved as a file. The file has sums of rows, and no row.

with tempfile.TemporaryDirectory() as folder:
    for hospital in range(3):
        path = Path(folder) / f"hospital_{hospital}.bnp"
        DPMixtureVB(random_state=hospital).fit(rows[hospital]).save(path)
        print(f"hospital {hospital}: {path.stat().st_size:,} bytes")
    alone = [sklearn_bnp.load(path) for path in sorted(Path(folder).iterdir())]

combined = combine(alone)
everything = DPMixtureVB(random_state=0).fit(np.concatenate(rows[:3]))
print(f"\n{'model':<14}{'kinds':>6}{'bound a row':>13}{'held-out score':>16}")
for name, model, n_rows in (
    *((f"hospital {i}", one, 400) for i, one in enumerate(alone)),
    ("combined", combined, 1200),
    ("all rows", everything, 1200),
):
    bound = model.lower_bound_ / n_rows
    print(f"{name:<14}{model.n_components_:>6}{bound:>13.3f}{model.score(heldout):>16.3f}")

# %%
# What each model knows
# ---------------------
# Points are new patients of all three hospitals, in the colour of their kind in the model. Crosses are
# patients whom the model has not expected: their log density is below -12.

figure, axes = plt.subplots(2, 2, figsize=(8, 7), sharex=True, sharey=True, layout="constrained")
titles = [*(f"hospital {i} alone" for i in range(3)), "combined"]
for panel, model, title in zip(axes.flat, [*alone, combined], titles, strict=True):
    unknown = model.score_samples(heldout) < -12
    labels = np.where(unknown, -1, model.predict(heldout))
    kinds = np.linalg.norm(model.means_[:, np.newaxis] - KINDS, axis=2).argmin(axis=1)
    for k in np.argsort(kinds):
        panel.plot(
            *heldout[labels == k].T, ".", ms=4, color=f"C{kinds[k]}", label=f"kind {kinds[k]}"
        )
    if unknown.any():
        panel.plot(*heldout[unknown].T, "kx", ms=4, label="not expected")
    panel.set_title(f"{title}: {unknown.mean():.0%} not expected")
    panel.legend(loc="lower left", fontsize="small")
for panel in axes[1]:
    panel.set_xlabel("feature 0")
for panel in axes[:, 0]:
    panel.set_ylabel("feature 1")

# %%
# A fourth hospital
# -----------------
# The combined model goes on learning: the fourth hospital's rows are a batch of ``partial_fit``.

new = patients(3, 200)
before = combined.score(new)
combined.partial_fit(rows[3])
print(f"new patients of hospital 3: score {before:.2f} before, {combined.score(new):.2f} after")
print(f"{combined.n_components_} kinds")

# %%
# To each hospital alone, a fifth of all patients is news. The combined model has the five kinds of the three
# hospitals, and its held-out score is that of the fit of all rows to three digits, though it has seen no row.
# The patients of the fourth hospital, who were not expected, get a sixth kind.

plt.show()
