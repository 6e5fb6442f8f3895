"""
Rows that stay in their file
============================

A fit looks at one batch of rows at a time and remembers only sums, so that rows may stay in a file that is
mapped into memory. The result is that of the same rows in memory, to the last bit. Smaller batches need
less memory, and here they find the same components.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.inspection import ComponentsDisplay

# %%
# A file of rows
# --------------
# This one is small and temporary. What follows is the same for a file that is larger than the memory.

X, _ = make_blobs(20_000, n_features=4, centers=8, center_box=(-8, 8), random_state=4)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
np.save(path, X)
rows = np.load(path, mmap_mode="r")
print(type(rows).__name__, rows.shape, f"{rows.nbytes / 1e6:.1f} MB")

# %%
# The same fit of the file and of the array
# -----------------------------------------

of_file = DPMixtureVB(batch_size=2000, random_state=0).fit(rows)
of_array = DPMixtureVB(batch_size=2000, random_state=0).fit(X)
print("the same means, to the last bit:", np.array_equal(of_file.means_, of_array.means_))

ComponentsDisplay.from_estimator(of_file, X)

# %%
# Batches of several sizes
# ------------------------
# Each batch leaves its sums in the memo of the fit: one row of sums for each component.

sizes = [500, 2000, 20_000]
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for i, size in enumerate(sizes):
    model = DPMixtureVB(batch_size=size, random_state=0).fit(rows)
    bounds = [entry.lower_bound / len(X) for entry in model.history_]
    label = f"{size} rows: {model.n_components_} components"
    axes.plot(range(1, len(bounds) + 1), bounds, f"C{i}{'o^s'[i]}-", ms=12 - 4 * i, label=label)
    print(f"batches of {size:>6} rows: K = {model.n_components_}, ELBO {model.lower_bound_:.2f}")
axes.set(xlabel="lap", ylabel="bound on the evidence\n(nats per row)")
axes.xaxis.get_major_locator().set_params(integer=True)
axes.legend(title="batches of", loc="lower right")

# %%
# The file and the array give the same means, to the last bit. With batches of 500, 2000 and 20,000 rows the
# three curves lie on each other, with eight components and the same bound: the clusters are far apart, so
# that one lap settles them whatever the batches are.

del rows
folder.cleanup()
plt.show()
