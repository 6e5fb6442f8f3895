"""
Rows in groups: kinds of cells, and how samples differ
======================================================

Rows often come in groups, each of which mixes the same clusters in shares of its own: cells in samples of
blood, visits of customers, patches of images. `~sklearn_bnp.HDPTopicVB` with ``groups`` finds the clusters,
their number, and their shares in each group. Where clusters overlap, rows are labelled better than by a
mixture that knows of no groups: what is common in a group is more probable there.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import mannwhitneyu

from sklearn_bnp import DPMixtureVB, HDPTopicVB
from sklearn_bnp.inspection import ComponentsDisplay

# %%
# Cells of 40 samples
# -------------------
# Two markers are measured on 40 to 160 cells of each sample. There are four kinds of cells, two of which
# overlap. The last kind is more common in the 20 samples of ill people.

rng = np.random.default_rng(0)
is_ill = np.repeat([False, True], 20)
healthy, ill = [1.6, 1.2, 0.8, 0.2], [1.2, 0.8, 0.6, 1.2]
shares = np.concatenate([rng.dirichlet(healthy, size=20), rng.dirichlet(ill, size=20)])

samples = np.repeat(np.arange(40), rng.integers(40, 161, size=40))  # the sample of each cell
kinds = np.array([rng.choice(4, p=shares[sample]) for sample in samples])
centers = np.array([[0.0, 0.0], [2.2, 0.8], [-3.0, 4.0], [3.5, 5.0]])
cells = centers[kinds] + rng.normal(size=(len(kinds), 2))

# %%
# With and without groups
# -----------------------
# ``groups`` says which sample each row belongs to. Rows of a sample need not be adjacent.

model = HDPTopicVB(observation="gaussian", random_state=0).fit(cells, groups=samples)
mixture = DPMixtureVB(random_state=0).fit(cells)


def matched(labels):
    """The component that matches each true kind, and the part of the cells that are in it."""
    counts = np.zeros((4, labels.max() + 1))
    np.add.at(counts, (kinds, labels), 1)
    rows, columns = linear_sum_assignment(-counts)
    return columns, counts[rows, columns].sum() / len(kinds)


of_kind, right = matched(model.predict(cells, groups=samples))
_, right_without = matched(mixture.predict(cells))
print(f"with groups: {model.n_components_} kinds, {right:.1%} of the cells in the right one")
print(
    f"without:     {mixture.n_components_} kinds, {right_without:.1%} of the cells in the right one"
)

display = ComponentsDisplay.from_estimator(model, cells, groups=samples)

# %%
# Shares in each sample
# ---------------------
# ``transform`` has the shares of the group of each row. One row of each sample is enough. These shares can be
# compared between samples, or be features of a classifier of samples.

first = np.unique(samples, return_index=True)[1]
found = model.transform(cells, groups=samples)[first]

figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
order = np.lexsort([-found[:, of_kind[3]], is_ill])
bottom = np.zeros(40)
for k in range(model.n_components_):
    axes[0].bar(range(40), found[order, k], bottom=bottom, width=1.0, color=f"C{k}")
    bottom += found[order, k]
axes[0].axvline(19.5, color="k")
axes[0].set(xlabel="samples: healthy, then ill", ylabel="shares of the components", ylim=(0, 1))
axes[0].set(xlim=(-0.5, 39.5), xticks=[])
for kind, k in enumerate(of_kind):
    axes[1].scatter(shares[:, kind], found[:, k], s=12, color=f"C{k}")
axes[1].axline((0, 0), slope=1, color="0.6", lw=0.8)
axes[1].set(xlabel="true share in the sample", ylabel="share that was found", aspect="equal")

for k in of_kind:
    difference = found[is_ill, k].mean() - found[~is_ill, k].mean()
    p = mannwhitneyu(found[is_ill, k], found[~is_ill, k]).pvalue
    print(f"component {k}: share of ill minus healthy {difference:+.2f}, p = {p:.2g}")

# %%
# The kind that is more common in ill people stands out. The test has one number for each sample, and not one
# for each cell: cells of one sample are alike, and to count them all as independent would make any difference
# look certain.

# %%
# A new sample
# ------------
# Ids of groups hold within one call, so a new sample may have any id. If its cells are few, the shares are
# drawn to those that are expected of any sample.

new = centers[[3, 3, 0, 3, 2, 3, 3, 0]] + rng.normal(size=(8, 2))
share = model.transform(new, groups=np.zeros(8))[0]
print(f"share of the last kind in 8 new cells, 5 of which are of it: {share[of_kind[3]]:.2f}")

plt.show()
