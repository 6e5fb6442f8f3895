"""
How long visits last
====================

A Markov model assumes that a visit to a state ends with the same probability at each step, however long it
has lasted. `~sklearn_bnp.HDPHMMVB` finds the states of a machine and the lengths of their visits. Two states
of the machine last as the model assumes. The third runs a program of 25 steps, and there only the mean
length is right.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.inspection import StatesDisplay

# %%
# A machine
# ---------
# It is idle until an order comes, works through a program of about 25 steps, and sometimes jams until
# somebody comes. Its current and its temperature are measured.

NAMES = ["idle", "program", "jam"]
LEVELS = np.array([[0.0, 0.0], [5.0, 2.0], [1.5, 5.0]])
RNG = np.random.default_rng(0)


def length(state):
    """Steps of a visit."""
    if NAMES[state] == "program":
        return RNG.integers(23, 28)
    return RNG.geometric(1 / 40 if NAMES[state] == "idle" else 1 / 8)


def day(n_orders=25):
    """Measurements (n, 2), and the state at each step."""
    visits = []
    for _ in range(n_orders):
        visits += [0, 1] + ([2, 1] if RNG.random() < 0.4 else [])
    states = np.repeat(visits, [length(state) for state in visits])
    return LEVELS[states] + RNG.normal(size=(len(states), 2)), states


days, truth = zip(*[day() for _ in range(3)], strict=True)
days = list(days)

# %%
# Fit
# ---
# A state is named by the level that is nearest to its mean.

model = HDPHMMVB(random_state=0).fit(days)
nearest = np.linalg.norm(model.means_[:, np.newaxis] - LEVELS, axis=2).argmin(axis=1)
found = [NAMES[k] for k in nearest]
right = np.mean(nearest[np.concatenate(model.predict(days))] == np.concatenate(truth))
print(f"{model.n_components_} states: {', '.join(found)}; {right:.1%} of the steps are right")

display = StatesDisplay.from_estimator(model, days, kind=["sequence", "transitions"])
display.axes_["sequence"].set(xlim=(0, 400), ylabel="measurement")

# %%
# Lengths of visits
# -----------------
# Bars are the visits that were found. Lines are what the model expects, from the probability to stay.

lengths = display.durations()
stay = np.diag(model.transmat_)
print(f"{'state':<10}{'visits':>7}{'mean':>7}{'expected':>10}{'deviation':>11}{'expected':>10}")
for k, name in enumerate(found):
    mean, deviation = 1 / (1 - stay[k]), np.sqrt(stay[k]) / (1 - stay[k])
    print(
        f"{name:<10}{len(lengths[k]):>7}{lengths[k].mean():>7.1f}{mean:>10.1f}"
        f"{lengths[k].std():>11.1f}{deviation:>10.1f}"
    )
figure, axes = plt.subplots(1, len(found), figsize=(9, 3), layout="constrained")
for k, panel in enumerate(axes):
    edges = np.arange(0, lengths[k].max() + 6, 5)
    panel.hist(lengths[k], edges, color=f"C{k}", alpha=0.6, label="found")
    expected = len(lengths[k]) * (stay[k] ** edges[:-1] - stay[k] ** edges[1:])
    panel.stairs(expected, edges, color="k", label="expected")
    panel.set(title=f"state {k}: {found[k]}", xlabel="steps")
axes[0].set_ylabel("visits")
axes[0].legend()

# %%
# When will it end?
# -----------------
# The chance that a visit which has lasted so long will be over within five more steps. To the model, no age
# makes an end more likely.

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for k, name in enumerate(found):
    ages = [a for a in range(0, 45, 3) if np.sum(lengths[k] > a) >= 10]
    ends = [np.mean(lengths[k][lengths[k] > a] <= a + 5) for a in ages]
    axes.plot(ages, ends, "o", color=f"C{k}", label=f"{name}: visits")
    axes.axhline(1 - stay[k] ** 5, color=f"C{k}", ls="--", label=f"{name}: model")
axes.set(xlabel="steps so far", ylabel="chance to end within\nfive steps", ylim=(-0.04, 1.05))
figure.legend(loc="outside right center", fontsize="small")

# %%
# The three states and nearly all their steps are found, whatever the lengths of visits. Visits to *idle*
# and *jam* last as the model expects. For *program*, only the mean is right: the model expects many visits
# of a few steps, and gives an end the same chance at all ages, where really none ends before 23 steps and
# all do by 27. For predictions of what comes next, such a program should be cut into several states, or a
# column should say how long it has run.

plt.show()
