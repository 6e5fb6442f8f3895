"""
States of a sequence that is still running
==========================================

A machine is watched, one row of measurements at a time. ``predict_next`` says after each row in which state
the machine is, from the rows so far. It knows a change some rows late. ``predict_proba``, which looks at
the whole sequence in hindsight, finds most changes to the row.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.inspection import StatesDisplay

# %%
# A machine with four states, whose measurements overlap.

RNG = np.random.default_rng(0)
LEVELS = np.array([[0.0, 0.0], [1.6, 0.0], [0.0, 1.6], [1.6, 1.6]])


def measurements(n_rows=400):
    """Rows, and the state at each of them."""
    states = np.repeat(
        RNG.permutation(np.arange(n_rows // 10) % 4), RNG.integers(15, 60, n_rows // 10)
    )
    states = states[:n_rows]
    return LEVELS[states] + 0.8 * RNG.normal(size=(n_rows, 2)), states


train = [measurements()[0] for _ in range(12)]
model = HDPHMMVB(random_state=0).fit(train)
print(f"{model.n_components_} states")

# %%
# A new sequence, row by row
# --------------------------
# Each call takes the rows since the last call and a message, which sums up all rows before them.

new, truth = measurements(250)
message, running = None, []
for row in new:
    proba, message = model.predict_next(row, message)
    running.append(proba)
running = np.reshape(running, (len(new), -1))
hindsight = model.predict_proba(new)

# %%
# The first panel shows the rows, over the states found in hindsight. The others show the probabilities of
# the states in the same colours. Dotted lines are the true changes.

figure, axes = plt.subplots(3, 1, figsize=(8, 6.5), sharex=True, layout="constrained")
StatesDisplay.from_estimator(model, new, kind="sequence", ax=axes[:1])
axes[0].set(xlabel="", title="", ylabel="measurement")
changes = np.flatnonzero(np.diff(truth)) + 0.5
steps = np.arange(len(new))
for panel, values, title in (
    (axes[1], running, "row by row"),
    (axes[2], hindsight, "in hindsight"),
):
    panel.stackplot(
        steps, values.T, colors=[f"C{k}" for k in range(model.n_components_)], alpha=0.6
    )
    panel.vlines(changes, 0, 1, color="k", ls=":", lw=1)
    panel.set(ylabel=f"probability,\n{title}", ylim=(0, 1))
axes[2].set_xlabel("step")
axes[2].margins(x=0)

# %%
# How late is it?
# ---------------
# A state is matched to the level that is nearest to its mean. Over 20 new sequences, the part of rows that
# are assigned to their true state, by the number of rows since the last change:

nearest = np.linalg.norm(model.means_[:, np.newaxis] - LEVELS, axis=2).argmin(axis=1)
right = {"row by row": [], "in hindsight": []}
ages = []
for _ in range(20):
    X, states = measurements()
    message, path = None, []
    for row in X:
        proba, message = model.predict_next(row, message)
        path.append(np.argmax(proba))
    right["row by row"].append(nearest[path] == states)
    right["in hindsight"].append(nearest[model.predict(X)] == states)
    start = np.maximum.accumulate(np.where(np.diff(states, prepend=-1) != 0, np.arange(len(X)), 0))
    ages.append(np.arange(len(X)) - start)
ages = np.concatenate(ages)
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for name, values in right.items():
    values = np.concatenate(values)
    axes.plot(range(15), [values[ages == age].mean() for age in range(15)], "o-", label=name)
axes.set(
    xlabel="rows since the last change", ylabel="part of rows in their\ntrue state", ylim=(0, 1.03)
)
axes.legend(loc="lower right")

# %%
# With overlapping measurements, one row of a new state does not suffice: of the first rows after a change,
# a fifth is assigned to the new state row by row, and more than four fifths in hindsight. Five rows later
# both are right nineteen times out of twenty.

plt.show()
