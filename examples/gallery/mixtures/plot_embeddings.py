"""
Clusters of images of digits
============================

Images are first reduced to a few numbers each, here by PCA, and these are clustered, as embeddings of a
network would be. `~sklearn_bnp.DPMixtureVB` finds 31 components, several for the ways in which a digit is
written, and in most of them nearly all images show the same digit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from sklearn_bnp import DPMixtureVB

# %%
# Rows
# ----
# 1797 images of 8 x 8 pixels, in ten principal components.

images, digit = load_digits(return_X_y=True)
pca = PCA(10, random_state=0)
X = pca.fit_transform(images)
print(f"{pca.explained_variance_ratio_.sum():.0%} of the variance is kept")

# %%
# Fit
# ---

model = DPMixtureVB(random_state=0).fit(X)
labels = model.predict(X)
K = model.n_components_
counts = confusion_matrix(digit, labels)[:10, :K]
print(f"{K} components")
print(f"adjusted Rand index with the digits: {adjusted_rand_score(digit, labels):.2f}")
print(
    f"rows in a component where their digit is the most common: {counts.max(axis=0).sum() / len(X):.0%}"
)

# %%
# Mean images
# -----------
# The mean of each component, taken back to pixels. Components are ordered by their most common digit, which
# stands above each image with its part of the component.

order = np.argsort(counts.argmax(axis=0), kind="stable")
means = pca.inverse_transform(model.means_)
rows = -(-K // 7)
figure, axes = plt.subplots(rows, 7, figsize=(8, 1.4 * rows), layout="constrained")
for panel in axes.flat:
    panel.set_axis_off()
for panel, k in zip(axes.flat, order, strict=False):
    panel.imshow(means[k].reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
    share = counts[:, k].max() / max(counts[:, k].sum(), 1)
    panel.set_title(f"{counts[:, k].argmax()}: {share:.0%}", fontsize=9)

# %%
# Digits and components
# ---------------------

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
image = axes.imshow(counts[:, order], cmap="Blues", aspect="auto")
axes.set_xticks(range(K), order, fontsize=8)
axes.set_yticks(range(10))
axes.set(xlabel="component", ylabel="digit")
figure.colorbar(image, label="images")

# %%
# The components are ways to write digits, not digits: the adjusted Rand index with ten digits is only 0.51,
# but 94 % of images are in a component where their digit is the most common. Zeros to fives are nearly
# pure. Eights are the weak place: some of the small components where they are the most common are mixed
# with other digits.

plt.show()
