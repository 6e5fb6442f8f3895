"""
Counts that vary more than Poisson counts
=========================================

Counts of transcripts, animals, purchases or visits vary more from row to row than a Poisson distribution
allows. A mixture of Poisson components then cuts each cluster into several, so that each part varies no more
than its mean. `~sklearn_bnp.NegativeBinomialObservation` has a second number for each column, its size, which
says by how much counts vary. It is learned with the clusters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB

# %%
# Three kinds of customers
# ------------------------
# How often 600 customers bought from six departments. Customers of one kind have the same means, but one buys
# more and another less than that: each rate is a mean times a Gamma factor of its own. So counts are negative
# binomial. The last three departments vary more than the first three.

rng = np.random.default_rng(0)
means = np.array([[3, 20, 5, 8, 2, 30], [12, 6, 5, 2, 9, 30], [3, 6, 25, 8, 20, 4]], dtype=float)
sizes = np.array([6, 6, 6, 2, 2, 2], dtype=float)
kinds = rng.integers(3, size=600)
rates = means[kinds] * rng.gamma(sizes, 1.0 / sizes, size=(600, 6))
counts = rng.poisson(rates)

# %%
# Two likelihoods
# ---------------
# The same data under both. Both objectives leave out the same factorials, so that ``lower_bound_`` says which
# likelihood explains the counts better.

models = {}
for name in ("poisson", "negative_binomial"):
    model = models[name] = DPMixtureVB(observation=name, random_state=0).fit(counts)
    agreement = adjusted_rand_score(kinds, model.predict(counts))
    print(
        f"{name}: {model.n_components_} components, agreement with the kinds {agreement:.2f},",
        end=" ",
    )
    print(f"lower bound {model.lower_bound_:.0f}")

# %%
# Sizes and means
# ---------------
# All components share the size of a column: the rows of ``sizes_`` are equal. The variance of a count with
# mean m is ``m + m ** 2 / size``.

model = models["negative_binomial"]
print("sizes that were learned:", np.round(model.sizes_[0], 1))

figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
for (name, fitted), color in zip(models.items(), ("C1", "C0"), strict=True):
    labels = fitted.predict(counts)
    members = [counts[labels == k] for k in np.unique(labels)]
    mean, variance = np.array([(rows.mean(axis=0), rows.var(axis=0)) for rows in members]).swapaxes(
        0, 1
    )
    axes[0].scatter(mean, variance, s=14, color=color, alpha=0.6, label=name)
axes[0].plot([1, 100], [1, 100], "k--", lw=0.8, label="Poisson counts")
axes[0].set(xlabel="mean of a column in a component", ylabel="variance", xscale="log", yscale="log")
axes[0].set(xlim=(0.5, 100), ylim=(0.3, 1000))
axes[0].legend()
for k in range(model.n_components_):
    axes[1].plot(model.means_[k], "o-", color=f"C{k}")
axes[1].set(xlabel="department", ylabel="mean of a component", yscale="log")

# %%
# On the left, the components of the Poisson mixture lie near the line where the variance is the mean: it cut
# clusters until that was so. Those of the negative binomial mixture lie above it, and are the three kinds.

plt.show()
