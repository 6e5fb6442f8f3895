"""
Customers: numbers, counts, categories and missing values
=========================================================

A table of customers has columns of several kinds, and a tenth of its entries is missing. A
`~sklearn_bnp.ColumnObservation` gives each kind its own likelihood, and missing entries are integrated out:
nothing is encoded, scaled or imputed. One fit finds the four kinds of customers.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import ColumnObservation, DPMixtureVB, GaussianObservation

# %%
# A table of customers
# --------------------
# Four kinds of customers differ in age and income, in their purchases and calls, and in how they pay.

rng = np.random.default_rng(0)
N = 1500
kind = rng.choice(4, size=N, p=[0.4, 0.3, 0.2, 0.1])
ages, incomes = np.array([24, 43, 67, 38])[kind], np.array([25, 52, 34, 110])[kind]
payments = np.array(["card", "invoice", "wallet"])
odds = np.array([[0.2, 0.0, 0.8], [0.7, 0.2, 0.1], [0.2, 0.8, 0.0], [0.9, 0.1, 0.0]])
table = pd.DataFrame(
    {
        "age": rng.normal(ages, 5.0),
        "income": rng.normal(incomes, 0.15 * incomes),
        "purchases": rng.poisson(np.array([3.0, 8.0, 2.0, 15.0])[kind]).astype(float),
        "calls": rng.poisson(np.array([0.5, 1.0, 4.0, 0.2])[kind]).astype(float),
        "payment": [rng.choice(payments, p=odds[k]) for k in kind],
    }
)
table = table.mask(rng.random(table.shape) < 0.1)
print(table.head(8).round(1).to_string())

# %%
# Fit
# ---
# Columns in one Gaussian block may be correlated within a cluster; here the block is diagonal.

columns = ColumnObservation(
    [
        ("person", GaussianObservation("diag"), ["age", "income"]),
        ("counts", "poisson", ["purchases", "calls"]),
        ("payment", "categorical", ["payment"]),
    ]
)
model = DPMixtureVB(observation=columns, random_state=0).fit(table)
labels = model.predict(table)
print(f"{model.n_components_} clusters")
print(f"adjusted Rand index with the true kinds: {adjusted_rand_score(kind, labels):.2f}")

# %%
# The clusters as a table
# -----------------------
# ``means_`` has the means of all columns that have one, and ``blocks_`` the attributes of each block.

categories = list(model.categories_["payment"])
probabilities = model.blocks_["payment"]["probabilities_"][:, 0]
numbers = [name for name in table if name != "payment"]
summary = pd.DataFrame(model.means_[:, :4], columns=numbers)
summary.insert(0, "weight", model.weights_)
summary[categories] = probabilities
print(summary.round(2).to_string())

# %%
# A panel for each column. The colour is the cluster, in all panels.

K = model.n_components_
figure, axes = plt.subplots(1, 3, figsize=(9, 3.6), layout="constrained")
for k in range(K):
    rows = table[labels == k]
    axes[0].scatter(rows["age"], rows["income"], s=8, color=f"C{k}", linewidths=0, alpha=0.6)
axes[0].set(xlabel="age", ylabel="income (thousands)")
for panel, names, values, title in (
    (axes[1], ["purchases", "calls"], model.means_[:, 2:4], "mean count per year"),
    (axes[2], categories, probabilities, "probability of the payment"),
):
    for k in range(K):
        panel.bar(
            np.arange(len(names)) + 0.8 * (k + 0.5) / K - 0.4, values[k], 0.8 / K, color=f"C{k}"
        )
    panel.set_xticks(range(len(names)), names)
    panel.set_ylabel(title)
figure.legend(
    [plt.Rectangle((0, 0), 1, 1, color=f"C{k}") for k in range(K)],
    [f"cluster {k}: {weight:.0%}" for k, weight in enumerate(model.weights_)],
    loc="outside upper center", ncols=K,
)  # fmt: skip

# %%
# The four clusters are the four kinds of customers, and the table reads like their description: the young
# with a wallet, the middle-aged, the old who call and pay by invoice, and the few with high incomes.

plt.show()
